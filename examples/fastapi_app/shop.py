"""A FastAPI app whose background tasks outlive it.

    uvicorn shop:app

The app's own process also works and fires schedules; `role="web"` leaves that to `drumline run shop:drum`.
"""

import os
from typing import Annotated

from fastapi import BackgroundTasks, Depends, FastAPI

from drumline import Context, Drumline, Tasks
from drumline.web import Bearer

drum = Drumline()


@drum.task(queue="mail", max_attempts=6, timeout="30s")
async def send_receipt(ctx: Context, order: int) -> str:
    await ctx.progress(0.5, "writing")
    return f"receipt of order {order}"


@drum.task
def bind_book(order: int) -> str:  # a plain function runs in a thread, and may block
    return f"book of order {order}"


@drum.schedule(cron="0 2 * * *", timezone="Europe/Berlin")
async def close_the_day() -> None: ...


app = FastAPI()
drum.install(app, auth=Bearer({os.environ["SHOP_TOKEN"]: ("ann", "admin")}))


@app.post("/orders/{order}")
async def take_order(order: int, background_tasks: BackgroundTasks) -> dict[str, int]:
    background_tasks.add_task(send_receipt, order)  # stored before the client has its answer
    return {"order": order}


@app.post("/books/{order}")
async def order_book(order: int, tasks: Annotated[Tasks, Depends(drum.tasks)]) -> dict[str, str]:
    return {"job": tasks.add_task(bind_book, order)}


@app.post("/tracked/{order}")
async def track_receipt(order: int) -> dict[str, str]:
    job = await send_receipt.using(key=f"receipt-{order}").enqueue(order)
    return {"follow": f"/track/{job.tracking_token}"}
