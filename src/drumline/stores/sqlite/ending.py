"""How a job ends: it leaves for history, its key is free, its tick is told, and who waited for it waits no longer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from drumline.model.options import decode_options
from drumline.stores.base import topic
from drumline.stores.files import read_statements
from drumline.stores.rows import expires_of, json_text
from drumline.stores.sqlite.step import Step
from drumline.stores.statements import Many, Operation, Statement

__all__ = ["End", "cancel_waiting", "end"]

_SQL = read_statements(__package__, "ending.sql")
_OUTCOMES = {"o": "done", "f": "dead", "c": "cancelled"}


class End(msgspec.Struct, frozen=True, gc=False):
    """One job that ends: where it stands in the table, how it ends, and what hangs on it."""

    place: int
    id: str
    # How it ends: those of which this is the same are moved together.
    state: str
    expires: int
    # The line of the attempt that ends it; empty where none does.
    line: str
    error: str | None
    result: bytes | None
    result_is_repr: bool
    queue: str
    task: str
    before: str
    key: str | None
    schedule: str | None
    # In milliseconds.
    run_time: int | None = None


def end(step: Step, ends: Sequence[End]) -> Operation[None]:
    """End these jobs, which are unfinished."""
    alike: dict[tuple[str, int, bool, bool], list[End]] = {}
    for one in ends:
        alike.setdefault((one.state, one.expires, one.result_is_repr, not one.line), []).append(one)
    for (state, expires, is_repr, is_unbegun), group in alike.items():
        how = {"state": state, "expires": expires, "is_repr": is_repr, "closed": not is_unbegun, "now": step.now}
        rows = json_text({one.place: (one.line, _as_text(one.result), one.error) for one in group})
        yield Statement(_SQL["end_jobs"], {**how, "rows": rows})
    yield Statement(_SQL["drop_jobs"], {"places": json_text([one.place for one in ends])})
    odd = [{"id": one.id, "error": one.error, "result": one.result} for one in ends if _is_odd(one)]
    if odd:
        yield Many(_SQL["keep_exactly"], odd)
    step.end([one.id for one in ends])
    for lane, count in Counter([(one.queue, one.task, one.before, one.state) for one in ends]).items():
        step.move(*lane, count)
    keys = [{"task": one.task, "key": one.key, "id": one.id} for one in ends if one.key is not None]
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
    ((place, queue, task, before, key, schedule),) = rows
    expires = expires_of(decode_options(options), "c", step.now)
    ended = End(place, job_id, "c", expires, "", None, None, False, queue, task, before, key, schedule)
    yield from end(step, [ended])
    return True


def _as_text(result: bytes | None) -> str | None:
    return None if result is None else result.decode("utf-8", "replace")


def _is_odd(one: End) -> bool:
    """Whether it leaves what does not come through SQLite's JSON unharmed: a NUL, or bytes that are no text."""
    if one.error is not None and "\0" in one.error:
        return True
    return one.result is not None and (b"\0" in one.result or not _is_utf8(one.result))


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _tell_schedule(step: Step, one: End) -> Operation[None]:
    outcome = _OUTCOMES[one.state]
    yield Statement(_SQL["tell_tick"], {"id": one.id, "outcome": outcome, "run_time": one.run_time})
    # Only ticks of one schedule wait for each other.
    freed = yield Statement(_SQL["let_go"], {"id": one.id, "now": step.now})
    for queue, task, state in freed:
        step.move(queue, task, "b", state)
        step.hint(topic.queue(queue))
