"""Jobs: find, look at, enqueue, cancel, retry, discard, reschedule; one by its id, or many by a filter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.responses import Response

from drumline.client import Jobs
from drumline.model.job import Enqueued, Job
from drumline.model.options import PRIVATE
from drumline.model.query import Answer, JobFilter
from drumline.model.redact import Redactor
from drumline.model.view import enqueued_json
from drumline.web.access import UserRole
from drumline.web.answers import Refusal, answer_json
from drumline.web.api.bodies import Bulk, Enqueue, Reason, Reschedule, given
from drumline.web.api.reading import FILTERS, PAGING, read_body, read_filter, read_id, read_paging, read_query
from drumline.web.api.schemas import ANSWER, ANSWERS, JOB, JOBS, NEW_JOB, schema_of
from drumline.web.show import redactor_of, show_job, show_line
from drumline.web.site import Ask, Entry, Handle

__all__ = ["JOB_ENTRIES"]

# The most jobs that one request acts on; a filter that fits more is applied again.
MOST_AT_ONCE = 10_000

Act = Callable[[Jobs, tuple[str, ...], str], Awaitable[dict[str, Answer]]]


async def list_jobs(ask: Ask) -> Response:
    """Jobs that fit, newest first. A page may be short while there is more: `next` tells."""
    query = read_query(ask, (*FILTERS, *PAGING))
    after, limit = read_paging(query)
    store = await ask.web.drum.store()
    where = read_filter(dict(query))
    page = await store.jobs(where, after=after, limit=limit)
    shown = [show_job(ask.web.drum, job) for job in page.items if where.shows(job.queue)]
    return answer_json({"jobs": shown, "next": page.next})


async def show_one(ask: Ask) -> Response:
    """All that is stored of one job: its attempts and log lines too."""
    client = ask.web.client(ask.who)
    job = await client.jobs.read(read_id(ask))
    redact = redactor_of(ask.web.drum, job)
    lines = [show_line(redact, line) for line in await client.jobs.logs(job.id)]
    return answer_json({**show_job(ask.web.drum, job), "logs": lines})


async def enqueue(ask: Ask) -> Response:
    """Make a job of a task that is known by its registered name: 201, or 200 if it stood already."""
    body = read_body(ask, Enqueue)
    drum = ask.web.drum
    task = drum.find_task(body.task)
    call = task.using(origin=f"http {ask.who}", **given(body.options)).call_json(msgspec.json.encode(body.args))
    (handle,) = await drum.enqueue_many([call], act=ask.web.client(ask.who).act("enqueue"))
    shown = enqueued_json(call.job, Enqueued(handle.id, handle.state, handle.created, handle.replaced))
    redact = Redactor(shown["args"], task.definition.codec.signature.secrets)
    shown = {name: redact.args(value) if name == "args" else redact.value(value) for name, value in shown.items()}
    ask.tell("enqueued job %s of task %s", handle.id, body.task)
    return answer_json(shown, 201 if handle.created else 200)


def _one(verb: str, act: Act) -> Handle:
    async def handle(ask: Ask) -> Response:
        reason = read_body(ask, Reason).reason
        return await _act_on_one(ask, verb, lambda jobs, job_id: act(jobs, (job_id,), reason))

    return handle


async def reschedule(ask: Ask) -> Response:
    """Move a waiting job to another time."""
    body = read_body(ask, Reschedule)
    wish: dict[str, Any] = {"at": body.at, "delay": body.delay, "reason": body.reason}
    return await _act_on_one(ask, "rescheduled", lambda jobs, job_id: jobs.reschedule(job_id, **wish))


async def _act_on_one(ask: Ask, verb: str, act: Callable[[Jobs, str], Awaitable[dict[str, Answer]]]) -> Response:
    job_id = read_id(ask)
    answer = (await act(ask.web.client(ask.who).jobs, job_id))[job_id]
    match answer:
        case Answer.NOT_FOUND:
            raise Refusal(404, "no such job is stored: the id is wrong, or its retention is over")
        case Answer.REFUSED:
            raise Refusal(409, "the job is in a state in which it cannot be " + verb)
        case Answer.KEY_TAKEN:
            raise Refusal(409, "another job holds its unique key")
        case Answer.APPLIED | Answer.REQUESTED:
            ask.tell("%s job %s", verb, job_id)
            return answer_json({"id": job_id, "answer": answer.value}, 202 if answer is Answer.REQUESTED else 200)


def _many(verb: str, act: Act) -> Handle:
    async def handle(ask: Ask) -> Response:
        body = read_body(ask, Bulk)
        jobs = ask.web.client(ask.who).jobs
        ids, more = await _choose(jobs, body)
        answers = await act(jobs, tuple(ids), body.reason) if ids else {}
        ask.tell("%s %d jobs", verb, len(answers))
        return answer_json({"answers": {job_id: answer.value for job_id, answer in answers.items()}, "more": more})

    return handle


async def _choose(jobs: Jobs, body: Bulk) -> tuple[list[str], bool]:
    """The jobs that are meant, and whether there are more of them."""
    where = JobFilter() if body.filter is None else read_filter(given(body.filter))
    if bool(body.ids) != where.is_empty:
        message = "give ids, or a filter that is not empty, but not both"
        raise Refusal(422, message, problems=(("ids", message),))
    if body.ids:
        return list(dict.fromkeys(body.ids)), False
    found: list[str] = []
    async for job in jobs.select(where):
        if _is_public(job):
            found.append(job.id)
        if len(found) > MOST_AT_ONCE:
            break
    return found[:MOST_AT_ONCE], len(found) > MOST_AT_ONCE


def _is_public(job: Job) -> bool:
    return not job.queue.startswith(PRIVATE)


def _cancel(jobs: Jobs, ids: tuple[str, ...], reason: str) -> Awaitable[dict[str, Answer]]:
    return jobs.cancel(*ids, reason=reason)


def _retry(jobs: Jobs, ids: tuple[str, ...], reason: str) -> Awaitable[dict[str, Answer]]:
    return jobs.retry(*ids, reason=reason)


def _discard(jobs: Jobs, ids: tuple[str, ...], reason: str) -> Awaitable[dict[str, Answer]]:
    return jobs.discard(*ids, reason=reason)


def _entries(name: str, verb: str, act: Act, role: UserRole) -> tuple[Entry, Entry]:
    many = Entry(
        method="POST",
        path=f"/api/jobs/{name}",
        role=role,
        handle=_many(verb, act),
        summary=f"{name.capitalize()} many jobs.",
        body=schema_of(Bulk),
        answers={200: ANSWERS},
    )
    one = Entry(
        method="POST",
        path=f"/api/jobs/{{id}}/{name}",
        role=role,
        handle=_one(verb, act),
        summary=f"{name.capitalize()} a job.",
        body=schema_of(Reason),
        answers={200: ANSWER, 202: ANSWER, 409: {}},
    )
    return many, one


JOB_ENTRIES = (
    Entry(
        method="GET",
        path="/api/jobs",
        role=UserRole.VIEWER,
        handle=list_jobs,
        summary="Jobs that fit, newest first.",
        query=(*FILTERS, *PAGING),
        answers={200: JOBS},
    ),
    Entry(
        method="POST",
        path="/api/jobs",
        role=UserRole.OPERATOR,
        handle=enqueue,
        summary="Enqueue a job of a registered task.",
        body=schema_of(Enqueue),
        needs_body=True,
        answers={200: NEW_JOB, 201: NEW_JOB, 404: {}, 409: {}},
    ),
    *_entries("cancel", "cancelled", _cancel, UserRole.OPERATOR),
    *_entries("retry", "retried", _retry, UserRole.OPERATOR),
    *_entries("discard", "discarded", _discard, UserRole.ADMIN),
    Entry(
        method="POST",
        path="/api/jobs/{id}/reschedule",
        role=UserRole.OPERATOR,
        handle=reschedule,
        summary="Move a waiting job to another time.",
        body=schema_of(Reschedule),
        needs_body=True,
        answers={200: ANSWER, 409: {}},
    ),
    Entry(
        method="GET",
        path="/api/jobs/{id}",
        role=UserRole.VIEWER,
        handle=show_one,
        summary="All that is stored of one job.",
        answers={200: JOB},
    ),
)
