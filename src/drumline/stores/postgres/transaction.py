"""The caller's own transaction: an operation becomes a part of it, and becomes real when the caller commits.

It runs inside a savepoint, so that an operation that is refused leaves the caller's own writes to the caller.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

import psycopg

from drumline.errors import StoreUnreachable, StoreUnusable
from drumline.stores.files import read_statements
from drumline.stores.postgres.callers import AsyncSpeaker, Speaker, find_async_speaker, find_speaker
from drumline.stores.postgres.connect import Place, translated
from drumline.stores.postgres.session import Make
from drumline.stores.postgres.step import Step, settle
from drumline.stores.relational.ways import Again
from drumline.stores.statements import Operation, Row, Statement

__all__ = ["find_store", "run_inside", "run_inside_async"]

T = TypeVar("T")

_SQL = read_statements(__package__, "connect.sql")
_MOST_TRIES = 20


def find_store() -> Operation[tuple[str, int]]:
    """The id by which the store is known, and what time it is there."""
    ((store_id, now),) = yield Statement(_SQL["find_store"])
    return str(store_id), now


def run_inside(tx: object, place: Place, store_id: str, make: Make[T], step: Step) -> T:
    """Run the operation on the caller's connection, blocking this thread."""
    script = _script(place, store_id, make, step)
    with translated(place.shown):
        speaker: Speaker = find_speaker(tx)
        try:
            said = next(script)
            while True:
                said = _pass_on(script, lambda statement: speaker.say(*statement), said)
        except StopIteration as end:
            answer: T = end.value
            return answer


async def run_inside_async(tx: object, place: Place, store_id: str, make: Make[T], step: Step) -> T:
    """Run the operation on the caller's connection, on its event loop."""
    script = _script(place, store_id, make, step)
    with translated(place.shown):
        speaker: AsyncSpeaker = await find_async_speaker(tx)
        try:
            said = next(script)
            while True:
                try:
                    rows = await speaker.say(*said)
                except Exception as error:  # noqa: BLE001 - the script knows what to do about it
                    said = script.throw(error)
                else:
                    said = script.send(rows)
        except StopIteration as end:
            answer: T = end.value
            return answer


Said = tuple[str, dict[str, Any]]
Script = Generator[Said, list[Row], T]


def _pass_on(script: Script[T], say: Any, said: Said) -> Said:
    try:
        rows = say(said)
    except Exception as error:  # noqa: BLE001 - the script knows what to do about it
        return script.throw(error)
    return script.send(rows)


def _script(place: Place, store_id: str, make: Make[T], step: Step) -> Script[T]:
    """What is said on the caller's connection, without I/O; an error is thrown in where it happened."""
    yield "savepoint drumline", {}
    for _ in range(_MOST_TRIES):
        try:
            now = yield from _check(place, store_id)
            step.begin(now)
            answer = yield from _bound(place, make(step))
            yield from _bound(place, settle(step))
        except Again:
            yield "rollback to savepoint drumline", {}
            continue
        except Exception:
            yield "rollback to savepoint drumline", {}
            yield "release savepoint drumline", {}
            raise
        yield "release savepoint drumline", {}
        return answer
    raise StoreUnreachable(f"{place.shown}: too many others do the same: try again")


def _bound(place: Place, operation: Operation[T]) -> Script[T]:
    rows: Any = None
    while True:
        try:
            asked = operation.send(rows)
        except StopIteration as end:
            answer: T = end.value
            return answer
        assert isinstance(asked, Statement)
        rows = yield place.bind(asked.sql), dict(asked.params)


def _check(place: Place, store_id: str) -> Script[int]:
    """Refuse a connection to anything but this store; what time it is there."""
    try:
        found, now = yield from _bound(place, find_store())
    except (psycopg.Error, ValueError) as error:
        raise StoreUnusable(_elsewhere(place)) from error
    if found != store_id:
        raise StoreUnusable(_elsewhere(place))
    return now


def _elsewhere(place: Place) -> str:
    return (
        f"the transaction is not on the store's own database, which is {place.shown}, namespace {place.namespace}:"
        " use a connection to it, or enqueue without transaction="
    )
