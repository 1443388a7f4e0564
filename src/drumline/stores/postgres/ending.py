"""How a job ends: it leaves for history, its key is free, its tick is told, and who waited for it waits no longer.

A job of a schedule ends, and a schedule fires, only under the lock of the schedule: so that nobody begins to wait for a
job that is about to end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from drumline.model.options import decode_options
from drumline.stores.base import topic
from drumline.stores.files import read_statements
from drumline.stores.postgres.step import Step
from drumline.stores.rows import expires_of, json_text
from drumline.stores.statements import Operation, Statement

__all__ = ["cancel_waiting", "lock_action", "lock_jobs", "lock_schedules", "tell_schedules"]

_SQL = read_statements(__package__, "ending.sql")
_OUTCOMES = {"o": "done", "f": "dead", "c": "cancelled"}


def lock_schedules(names: Iterable[str | None]) -> Operation[set[str]]:
    """Hold the schedules until the end of the transaction; which of them there are."""
    wanted = sorted({name for name in names if name is not None})
    if not wanted:
        return set()
    rows = yield Statement(_SQL["lock_schedules"], {"names": wanted})
    return {name for (name,) in rows}


def lock_jobs(ids: Sequence[str]) -> Operation[None]:
    """Hold those of the jobs that are unfinished, and their schedules before them, until the end of the transaction."""
    rows = yield Statement(_SQL["find_schedules_of"], {"ids": list(ids)})
    yield from lock_schedules(name for (name,) in rows)
    yield Statement(_SQL["lock_jobs"], {"ids": list(ids)})


def lock_action(action_id: str) -> Operation[None]:
    """Of two who do the same thing at once, let the second wait, and find it done."""
    yield Statement(_SQL["lock_action"], {"id": action_id})


def tell_schedules(
    step: Step, ends: Sequence[tuple[str, str, int | None]], runs: Mapping[str, tuple[int, int]]
) -> Operation[None]:
    """Tell schedules of their jobs that have ended, given as id, state and run time, and of closed attempts."""
    if ends:
        rows = json_text([{"id": job_id, "outcome": _OUTCOMES[state], "run_time": ran} for job_id, state, ran in ends])
        yield Statement(_SQL["tell_ticks"], {"ends": rows})
        freed = yield Statement(_SQL["let_go"], {"ends": rows})
        for queue, task, state in freed:
            step.move(queue, task, "b", state)
            step.hint(topic.queue(queue))
    if runs:
        added = [{"name": name, "runs": count, "failures": failed} for name, (count, failed) in runs.items()]
        yield Statement(_SQL["add_runs"], {"runs": json_text(added)})


def cancel_waiting(step: Step, job_id: str, options: str) -> Operation[bool]:
    """End a job as cancelled that has not begun, and say whether it was such a job."""
    keep = expires_of(decode_options(options), "c", 0)
    rows = yield Statement(_SQL["end_waiting"], {"id": job_id, "keep": keep})
    for queue, task, state, schedule, is_watched in rows:
        step.move(queue, task, state, "c")
        step.end(job_id, is_watched=is_watched)
        if schedule is not None:
            yield from tell_schedules(step, [(job_id, "c", None)], {})
    return bool(rows)
