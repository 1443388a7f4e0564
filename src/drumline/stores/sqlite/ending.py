"""How a job ends: it leaves for history, its key is free, its tick is told, and who waited for it waits no longer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from drumline.model.options import decode_options
from drumline.stores.base import topic
from drumline.stores.files import read_statements
from drumline.stores.sqlite.rows import expires_of
from drumline.stores.sqlite.step import Step
from drumline.stores.statements import Many, Operation, Statement

__all__ = ["End", "cancel_waiting", "end"]

_SQL = read_statements(__package__, "ending.sql")
_OUTCOMES = {"o": "done", "f": "dead", "c": "cancelled"}


class End(NamedTuple):
    """One job that ends: the row of its end, and what hangs on it. `run_time` is in milliseconds."""

    row: dict[str, Any]
    queue: str
    task: str
    before: str
    key: str | None
    schedule: str | None
    run_time: int | None = None


def end(step: Step, ends: Sequence[End]) -> Operation[None]:
    """End these jobs, which are unfinished."""
    rows = [one.row for one in ends]
    yield Many(_SQL["end_job"], rows)
    yield Many(_SQL["drop_job"], rows)
    for one in ends:
        step.move(one.queue, one.task, one.before, one.row["state"])
        step.hint(topic.ended(one.row["id"]))
    keys = [{"task": one.task, "key": one.key, "id": one.row["id"]} for one in ends if one.key is not None]
    if keys:
        yield Many(_SQL["free_key"], keys)
    for one in ends:
        if one.schedule is not None:
            yield from _tell_schedule(step, one)


def cancel_waiting(step: Step, job_id: str) -> Operation[bool]:
    """End a job as cancelled that has not begun, and say whether it was such a job."""
    rows = yield Statement(_SQL["find_waiting"], {"id": job_id})
    if not rows:
        return False
    ((_, queue, task, state, options, key, schedule),) = rows
    row = {
        "id": job_id,
        "state": "c",
        "now": step.now,
        "expires": expires_of(decode_options(options), "c", step.now),
        "line": "",
        "error": None,
        "result": None,
        "result_is_repr": 0,
    }
    yield from end(step, [End(row, queue, task, state, key, schedule)])
    return True


def _tell_schedule(step: Step, one: End) -> Operation[None]:
    outcome = _OUTCOMES[one.row["state"]]
    yield Statement(_SQL["tell_tick"], {"id": one.row["id"], "outcome": outcome, "run_time": one.run_time})
    # Only ticks of one schedule wait for each other.
    freed = yield Statement(_SQL["let_go"], {"id": one.row["id"], "now": step.now})
    for queue, task, state in freed:
        step.move(queue, task, "b", state)
        step.hint(topic.queue(queue))
