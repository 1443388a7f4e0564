"""jobs: pages of jobs, newest first.

A page is read in two movements: walk along the index that fits the filter best, and pick what the whole filter asks
for from the places that were passed. So a call looks at no more rows than it may, however little the filter fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from drumline.errors import BadOption
from drumline.model.job import ENDED, UNFINISHED, Job, JobState
from drumline.model.query import JobFilter, Page
from drumline.stores.relational.ways import S, Ways
from drumline.stores.rows import ceil_millis, find_uuids, json_text
from drumline.stores.statements import Operation, Row, Statement

__all__ = ["MOST_LOOKED_AT", "jobs"]

# A call looks at no more rows than this; its page may then be short, and `next` goes on from there.
MOST_LOOKED_AT = 10_000
_LARGEST_STRIDE = 1_000
_TOP = 2**62
_LEAST = str(UUID(int=0))
_RUNNING = frozenset({JobState.RUNNING, JobState.CANCELLING})
_CREATED, _ID = 8, 0

Place = tuple[int, str]


def jobs(ways: Ways[S], step: S, where: JobFilter, after: str | None, limit: int) -> Operation[Page[Job]]:
    asked = _params(where, step.now)
    if where.ids is not None:
        rows = yield from _pick(ways, find_uuids(where.ids), where, asked)
        found = {row[_ID]: row for row in rows}
        return Page([ways.read_job(found[job_id]) for job_id in where.ids if job_id in found])
    rows, more = yield from _walk(ways, where, asked, _first_place(where, after), limit)
    return Page([ways.read_job(row) for row in rows], None if more is None else f"{more[0]} {more[1]}")


def _walk(
    ways: Ways[S], where: JobFilter, asked: dict[str, Any], place: Place, limit: int
) -> Operation[tuple[list[Row], Place | None]]:
    """The rows of one page, and the place from which the next one goes on."""
    walk = ways.sql[_choose(where)]
    found: list[Row] = []
    looked, stride = 0, limit + 1
    while looked < MOST_LOOKED_AT:
        at = {"created": place[0], "id": place[1], "limit": stride}
        passed = yield Statement(walk, {**asked, **at})
        if passed:
            found += yield from _pick(ways, [job_id for _, job_id in passed], where, asked)
            place = passed[-1]
        if len(found) > limit:
            last = found[limit - 1]
            return found[:limit], (last[_CREATED], last[_ID])
        if len(passed) < stride:
            return found, None
        looked += stride
        stride = max(stride, min(stride * 4, _LARGEST_STRIDE))
    return found, place


def _pick(ways: Ways[S], ids: Sequence[str], where: JobFilter, asked: dict[str, Any]) -> Operation[list[Row]]:
    """The rows of those of the jobs that are as the filter asks, newest first."""
    given = {**asked, "ids": json_text(ids)}
    rows: list[Row] = []
    if not where.states or where.states & UNFINISHED:
        rows += yield Statement(ways.sql["pick_unfinished"], given)
    if not where.states or where.states & ENDED:
        rows += yield Statement(ways.sql["pick_ended"], given)
    rows.sort(key=lambda row: (row[_CREATED], row[_ID]), reverse=True)
    return rows


def _choose(where: JobFilter) -> str:
    """The index that passes the fewest jobs that the filter does not ask for."""
    if where.key is not None:
        return "walk_key"
    if where.tag is not None:
        return "walk_tag"
    if where.schedule is not None:
        return "walk_schedule"
    if where.states and where.states <= _RUNNING:
        return "walk_running"
    if where.states == {JobState.DEAD}:
        return "walk_dead"
    if where.states == {JobState.CANCELLED}:
        return "walk_cancelled"
    if where.states and where.states <= ENDED:
        return "walk_ended"
    if where.states and where.states <= UNFINISHED:
        return "walk_unfinished"
    return "walk_all"


def _first_place(where: JobFilter, after: str | None) -> Place:
    place = (_TOP, _LEAST) if where.created_to is None else (ceil_millis(where.created_to), _LEAST)
    if after is None:
        return place
    created, _, job_id = after.partition(" ")
    if not created.isdecimal() or not find_uuids([job_id]):
        raise BadOption("after", "the `next` of an earlier page", after)
    return min(place, (int(created), job_id))


def _params(where: JobFilter, now: int) -> dict[str, Any]:
    states = {state.value for state in where.states}
    if JobState.RUNNING in where.states:
        states.add(JobState.CANCELLING.value)
    return {
        "now": now,
        "task": where.task,
        "queue": where.queue,
        "key": where.key,
        "tag": where.tag,
        "schedule": where.schedule,
        "source": where.source and where.source.value,
        "origin": where.origin,
        "meta": json_text(where.meta) if where.meta else None,
        "error": where.error,
        "states": json_text(sorted(states)) if states else None,
        "from": -_TOP if where.created_from is None else ceil_millis(where.created_from),
        "to": _TOP if where.created_to is None else ceil_millis(where.created_to),
    }
