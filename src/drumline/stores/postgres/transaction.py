"""The caller's own transaction: find the driver's connection behind it, and run an operation on it."""

from __future__ import annotations

from typing import TypeVar

import psycopg

from drumline.errors import StoreUnusable
from drumline.stores.files import read_statements
from drumline.stores.postgres.connect import Bound, Place, translated
from drumline.stores.postgres.session import Make
from drumline.stores.postgres.step import Step, settle
from drumline.stores.statements import Operation, Statement, run

__all__ = ["find_store", "run_inside"]

T = TypeVar("T")

_SQL = read_statements(__package__, "connect.sql")


def find_store() -> Operation[tuple[str, int]]:
    """The id by which the store is known, and what time it is there."""
    ((store_id, now),) = yield Statement(_SQL["find_store"])
    return str(store_id), now


def run_inside(tx: object, place: Place, store_id: str, make: Make[T], step: Step) -> T:
    """Run the operation as a part of the caller's transaction: it becomes real when the caller commits."""
    if not isinstance(tx, psycopg.Connection):
        raise StoreUnusable(f"transaction= must be a connection to the store's own database, got {type(tx)!r}")
    with translated(place.shown), tx.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        bound = Bound(cursor, place)
        try:
            bound.execute(_SQL["find_store"], {})
            ((found, now),) = cursor.fetchall()
        except psycopg.Error as error:
            raise StoreUnusable("not this store") from error
        if found != store_id:
            raise StoreUnusable("not this store")
        with tx.transaction():
            step.begin(now)
            answer = run(bound, make(step))
            run(bound, settle(step))
            return answer
