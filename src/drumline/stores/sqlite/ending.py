"""How a job ends: it leaves for history, its key is free, its tick is told, and who waited for it waits no longer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from drumline.model.options import decode_options
from drumline.stores.base import topic
from drumline.stores.files import read_statements
from drumline.stores.rows import expires_of, json_text
from drumline.stores.sqlite.step import Step
from drumline.stores.statements import Many, Operation, Statement

__all__ = ["End", "cancel_waiting", "end"]

_SQL = read_statements(__package__, "ending.sql")
# As the statement takes it: id, state, expires, line, error, result, result_is_repr.
EndRow = tuple[str, str, int, str, str | None, bytes | None, bool]
_OUTCOMES = {"o": "done", "f": "dead", "c": "cancelled"}


class End(NamedTuple):
    """One job that ends: the row of its end, and what hangs on it. `run_time` is in milliseconds."""

    row: EndRow
    queue: str
    task: str
    before: str
    key: str | None
    schedule: str | None
    run_time: int | None = None


def end(step: Step, ends: Sequence[End]) -> Operation[None]:
    """End these jobs, which are unfinished."""
    ids = [one.row[0] for one in ends]
    rows = json_text([(*one.row[:5], _as_text(one.row[5]), one.row[6]) for one in ends])
    yield Statement(_SQL["end_jobs"], {"rows": rows, "now": step.now})
    yield Statement(_SQL["drop_jobs"], {"ids": json_text(ids)})
    odd = [{"id": one.row[0], "error": one.row[4], "result": one.row[5]} for one in ends if _is_odd(one.row)]
    if odd:
        yield Many(_SQL["keep_exactly"], odd)
    step.end(ids)
    for lane, count in Counter([(one.queue, one.task, one.before, one.row[1]) for one in ends]).items():
        step.move(*lane, count)
    keys = [{"task": one.task, "key": one.key, "id": one.row[0]} for one in ends if one.key is not None]
    if keys:
        yield Many(_SQL["free_key"], keys)
    for one in ends:
        if one.schedule is not None:
            yield from _tell_schedule(step, one)


def cancel_waiting(step: Step, job_id: str, options: bytes) -> Operation[bool]:
    """End a job as cancelled that has not begun, and say whether it was such a job."""
    rows = yield Statement(_SQL["find_waiting"], {"id": job_id})
    if not rows:
        return False
    ((queue, task, state, key, schedule),) = rows
    expires = expires_of(decode_options(options), "c", step.now)
    yield from end(step, [End((job_id, "c", expires, "", None, None, False), queue, task, state, key, schedule)])
    return True


def _as_text(result: bytes | None) -> str | None:
    return None if result is None else result.decode("utf-8", "replace")


def _is_odd(row: EndRow) -> bool:
    """Whether the row holds what does not come through SQLite's JSON unharmed: a NUL, or bytes that are no text."""
    error, result = row[4], row[5]
    if error is not None and "\0" in error:
        return True
    return result is not None and (b"\0" in result or not _is_utf8(result))


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _tell_schedule(step: Step, one: End) -> Operation[None]:
    outcome = _OUTCOMES[one.row[1]]
    yield Statement(_SQL["tell_tick"], {"id": one.row[0], "outcome": outcome, "run_time": one.run_time})
    # Only ticks of one schedule wait for each other.
    freed = yield Statement(_SQL["let_go"], {"id": one.row[0], "now": step.now})
    for queue, task, state in freed:
        step.move(queue, task, "b", state)
        step.hint(topic.queue(queue))
