"""The fleet: its queues, replicas, tasks, counts, the series of its minutes, and who did what."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from starlette.responses import Response

from drumline.model.options import PRIVATE, check_name
from drumline.model.query import SeriesPoint
from drumline.model.redact import Redactor
from drumline.model.view import instant_text, options_json, replica_json
from drumline.web.access import UserRole
from drumline.web.answers import Refusal, answer_json
from drumline.web.api.bodies import Reason
from drumline.web.api.reading import PAGING, read_body, read_instant, read_paging, read_query
from drumline.web.api.schemas import listing, schema_of, shape
from drumline.web.show import show_audit, show_counts
from drumline.web.site import Ask, Entry, Parameter

__all__ = ["FLEET_ENTRIES"]

LONGEST_SERIES = timedelta(days=1)
_RANGE = (
    Parameter("start", {"type": "string", "format": "date-time"}, "Included; an hour before the end if left out."),
    Parameter("end", {"type": "string", "format": "date-time"}, "Not included; now if left out."),
)


async def list_queues(ask: Ask) -> Response:
    """Every queue that has or had jobs, or is paused."""
    read_query(ask, ())
    client = ask.web.client(ask.who)
    counts = [count for count in await client.counts() if not count.queue.startswith(PRIVATE)]
    paused = await client.queues.paused()
    shown = []
    for name in sorted({count.queue for count in counts} | paused.keys()):
        rows = [count for count in counts if count.queue == name]
        oldest = min((count.oldest_ready for count in rows if count.oldest_ready), default=None)
        by = paused.get(name)
        why = None if by is None else {"who": by.who, "via": by.via, "why": Redactor().text(by.why)}
        since = None if oldest is None else instant_text(oldest)
        shown.append({"name": name, **show_counts(rows), "oldest_ready": since, "paused": why})
    return answer_json({"queues": shown})


async def pause_queue(ask: Ask) -> Response:
    """Let the queue give no more jobs; what runs goes on."""
    name = check_name(ask.path["name"], "queue")
    (changed,) = await ask.web.client(ask.who).queues.pause(name, reason=read_body(ask, Reason).reason)
    ask.tell("paused queue %s", name)
    return answer_json({"name": name, "changed": changed})


async def resume_queue(ask: Ask) -> Response:
    name = check_name(ask.path["name"], "queue")
    (changed,) = await ask.web.client(ask.who).queues.resume(name, reason=read_body(ask, Reason).reason)
    ask.tell("resumed queue %s", name)
    return answer_json({"name": name, "changed": changed})


async def list_workers(ask: Ask) -> Response:
    read_query(ask, ())
    replicas = await ask.web.client(ask.who).workers()
    return answer_json({"workers": [replica_json(replica) for replica in replicas]})


async def list_tasks(ask: Ask) -> Response:
    """The tasks that this process knows, and so can enqueue."""
    read_query(ask, ())
    shown = [
        {"name": task.name, "executor": task.executor.value, "tags": list(task.tags), **options_json(task.options)}
        for task in ask.web.drum.tasks.values()
    ]
    return answer_json({"tasks": shown})


async def count_jobs(ask: Ask) -> Response:
    """How many jobs are in each state, in all and by task."""
    read_query(ask, ())
    counts = list(await ask.web.client(ask.who).counts())
    tasks = sorted({count.task for count in counts})
    by_task = {name: show_counts([count for count in counts if count.task == name]) for name in tasks}
    return answer_json({"total": show_counts(counts), "by_task": by_task})


async def read_series(ask: Ask) -> Response:
    """Attempts ended by minute, queue and task, with the spread of their waits and run times; at most a day."""
    query = read_query(ask, _RANGE)
    store = await ask.web.drum.store()
    end = read_instant(query["end"], "end") if "end" in query else await store.now() + timedelta(minutes=1)
    try:
        start = read_instant(query["start"], "start") if "start" in query else end - timedelta(hours=1)
    except OverflowError:
        start = end
    if not timedelta() <= end - start <= LONGEST_SERIES:
        message = "must lie at most a day before the end, and not after it"
        raise Refusal(422, f"start {message}", problems=(("start", message),))
    points = await store.series(start, end)
    return answer_json({"series": [_point_json(point) for point in points if not point.queue.startswith(PRIVATE)]})


def _point_json(point: SeriesPoint) -> dict[str, Any]:
    return {
        "minute": instant_text(point.minute),
        "queue": point.queue,
        "task": point.task,
        "done": point.done,
        "failed": point.failed,
        "dead": point.dead,
        "cancelled": point.cancelled,
        "wait": list(point.wait),
        "run": list(point.run),
    }


async def list_audit(ask: Ask) -> Response:
    """Who did what, newest first."""
    after, limit = read_paging(read_query(ask, PAGING))
    store = await ask.web.drum.store()
    page = await store.audit(after=after, limit=limit)
    return answer_json({"audit": [show_audit(row) for row in page.items], "next": page.next})


def _look(path: str, handle: Any, summary: str, name: str, query: tuple[Parameter, ...] = ()) -> Entry:
    items = {"type": "array", "items": {"type": "object"}}
    answer = listing(name, {"type": "object"}) if query == PAGING else shape(**{name: items})
    role = UserRole.VIEWER
    return Entry(method="GET", path=path, role=role, handle=handle, summary=summary, query=query, answers={200: answer})


def _verb(name: str, handle: Any) -> Entry:
    return Entry(
        method="POST",
        path=f"/api/queues/{{name:path}}/{name}",
        role=UserRole.OPERATOR,
        handle=handle,
        summary=f"{name.capitalize()} a queue.",
        body=schema_of(Reason),
        answers={200: shape(name={"type": "string"}, changed={"type": "boolean"})},
    )


FLEET_ENTRIES = (
    _look("/api/queues", list_queues, "Every queue.", "queues"),
    _verb("pause", pause_queue),
    _verb("resume", resume_queue),
    _look("/api/workers", list_workers, "The replicas, and what each runs.", "workers"),
    _look("/api/tasks", list_tasks, "The tasks that can be enqueued here.", "tasks"),
    _look("/api/series", read_series, "The minutes of a range.", "series", _RANGE),
    _look("/api/audit", list_audit, "Who did what.", "audit", PAGING),
    Entry(
        method="GET",
        path="/api/counts",
        role=UserRole.VIEWER,
        handle=count_jobs,
        summary="Jobs by state.",
        answers={200: shape("total", "by_task")},
    ),
)
