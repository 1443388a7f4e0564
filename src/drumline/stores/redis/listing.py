"""jobs: pages of jobs, newest first.

A page is read by walking along the index that fits the filter best, a stride at a time, and picking what fits. A call
walks no further than it may, however little the filter fits.
"""

from __future__ import annotations

from typing import Any

from drumline.errors import BadOption
from drumline.model.job import UNFINISHED, Job, JobState
from drumline.model.query import JobFilter, Page
from drumline.stores.redis.calls import Call, Operation
from drumline.stores.redis.pack import opaque, pack, pack_id, unpack_id
from drumline.stores.redis.rows import as_job
from drumline.stores.rows import ceil_millis

__all__ = ["MOST_LOOKED_AT", "jobs"]

# A call looks at no more jobs than this; its page may then be short, and `next` goes on from there.
MOST_LOOKED_AT = 10_000
_LARGEST_STRIDE = 1_000
# After every instant that is stored.
_TOP = 2**48
_RUNNING = frozenset({JobState.RUNNING, JobState.CANCELLING})

Place = tuple[int, bytes]


def jobs(where: JobFilter, after: str | None, limit: int) -> Operation[Page[Job]]:
    asked = _filter_item(where)
    if where.ids is not None:
        ids = [opaque(pack_id(job_id)) for job_id in where.ids]
        now, rows = yield Call("find", (pack((ids, asked)),))
        return Page([job for row in rows if _fits(job := as_job(row, now), where)])
    place = _first_place(where, after)
    start = 0 if where.created_from is None else ceil_millis(where.created_from)
    found: list[Job] = []
    looked, stride = 0, limit + 1
    while looked < MOST_LOOKED_AT:
        given = (_choose(where), (place[0], opaque(place[1])), start, stride, asked)
        now, rows, more, *last = yield Call("jobs", (pack(given),))
        found += [job for row in rows if _fits(job := as_job(row, now), where)]
        place = (last[0], last[1])
        if len(found) > limit:
            page = found[:limit]
            return Page(page, _cursor((ceil_millis(page[-1].created_at), pack_id(page[-1].id))))
        if not more:
            return Page(found)
        looked += stride
        stride = max(stride, min(stride * 4, _LARGEST_STRIDE))
    return Page(found[:limit], _cursor(place))


def _choose(where: JobFilter) -> str:
    """The index that passes the fewest jobs that the filter does not ask for."""
    if where.key is not None:
        return f"named:{where.key}"
    if where.tag is not None:
        return f"tag:{where.tag}"
    if where.schedule is not None:
        return f"of:{where.schedule}"
    if where.states and where.states <= _RUNNING:
        return "running"
    if where.states and where.states <= UNFINISHED:
        return "unfinished"
    if where.states == {JobState.DEAD}:
        return "dead"
    if where.states == {JobState.CANCELLED}:
        return "cancelled"
    return "created"


def _filter_item(where: JobFilter) -> tuple[Any, ...]:
    """The part of the filter that scripts look at."""
    states = {state.value for state in where.states}
    if JobState.RUNNING in where.states:
        states.add(JobState.CANCELLING.value)
    asked = (where.task, where.queue, where.key, where.schedule, where.tag)
    return (sorted(states) or False, *(False if value is None else value for value in asked))


def _fits(job: Job, where: JobFilter) -> bool:
    """The rest of it: what only clients can read."""
    return (
        (where.source is None or job.source is where.source)
        and (where.origin is None or job.origin == where.origin)
        and all(name in job.meta and _is_same(value, job.meta[name]) for name, value in where.meta.items())
        and (where.error is None or where.error in (job.last_error or ""))
        and (where.created_from is None or job.created_at >= where.created_from)
        and (where.created_to is None or job.created_at < where.created_to)
    )


def _is_same(wanted: Any, kept: Any) -> bool:
    """As JSON tells them apart: 1 is not true."""
    return type(wanted) is type(kept) and bool(wanted == kept)


def _first_place(where: JobFilter, after: str | None) -> Place:
    place = (_TOP if where.created_to is None else ceil_millis(where.created_to), b"")
    if after is None:
        return place
    created, _, job_id = after.partition(" ")
    if not created.isdecimal() or not job_id:
        raise BadOption("after", "the `next` of an earlier page", after)
    return min(place, (int(created), pack_id(job_id)))


def _cursor(place: Place) -> str:
    return f"{place[0]} {unpack_id(place[1])}"
