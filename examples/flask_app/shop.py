"""A Flask app that enqueues; `drumline run shop:drum` works.

flask --app shop run
"""

from flask import Flask, Response, jsonify

from drumline import Drumline, JobNotFound

drum = Drumline()
app = Flask(__name__)


@drum.task(queue="mail")
def send_receipt(order: int) -> str:
    return f"receipt of order {order}"


@app.post("/orders/<int:order>")
def take_order(order: int) -> tuple[Response, int]:
    # A key, so that a client that asks twice gets one receipt.
    job = send_receipt.using(key=f"receipt-{order}").enqueue_sync(order)
    return jsonify(job=job.id), 202


@app.get("/jobs/<job_id>")
def show_job(job_id: str) -> tuple[Response, int]:
    try:
        job = drum.sync.jobs.get(job_id)
    except JobNotFound:
        return jsonify(error="there is no such job"), 404
    result = drum.sync.wait(job) if job.state == "done" else None
    return jsonify(state=job.state, result=result), 200
