"""Steps on connections of the store's own: taken from a shelf, used for one step, and put back.

Blocking callers use their own thread; awaiting ones are served by a few threads that are started when they are needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg

from drumline.clock import pause
from drumline.errors import StoreUnreachable
from drumline.failpoint import failpoint
from drumline.stores.forks import keep_open
from drumline.stores.hands import Hands
from drumline.stores.postgres.connect import (
    LOCK_PATIENCE,
    Bound,
    Connection,
    Place,
    is_outdated,
    is_repeatable,
    is_unprepared,
    translate,
)
from drumline.stores.postgres.step import Step, settle
from drumline.stores.relational.ways import Again
from drumline.stores.statements import Operation, run

__all__ = ["BEGIN_READING", "Make", "Sessions"]

T = TypeVar("T")

Make = Callable[[Step], Operation[T]]

# Awaiting callers are served by at most so many threads, and so many connections wait on the shelf.
_THREADS = 8
_SHELF = 8
# A step that a neighbour has disturbed is taken anew so often.
_MOST_TRIES = 20
# Who falls asleep between two statements would keep what it has locked, and others pass that over: the server ends it.
_IDLE_PATIENCE = "10s"
_BEGIN = (
    f"begin isolation level read committed; set local lock_timeout = '{LOCK_PATIENCE}s'; "
    f"set local idle_in_transaction_session_timeout = '{_IDLE_PATIENCE}'; "
)
# A page is a few rows of a large table, which the planner need not know to be large.
BEGIN_READING = "begin isolation level repeatable read read only; set local enable_seqscan = off; "
_NOW = "select {schema}.now_ms()"


class Sessions:
    """The connections and threads of one store in this process."""

    def __init__(self, place: Place) -> None:
        self._place = place
        # Where an event loop waits, or nobody does.
        self.hands = Hands(_THREADS, "drumline-postgres")
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._shelf: list[Connection] = []
        self._is_checked = False

    # Steps, each blocking this thread.

    def run_statement(self, make: Make[T], step: Step) -> T:
        """Run an operation whose statements are steps of their own."""
        return self._run(lambda connection: run(Bound(connection, self._place), make(step)), step)

    def run_step(self, make: Make[T], step: Step) -> T:
        """Run an operation as one step: all of it, or nothing. The step may be begun anew."""
        return self._run(lambda connection: self._run_inside(connection, _BEGIN, make, step), step)

    def run_reading(self, make: Make[T], step: Step) -> T:
        """Run an operation that only reads, on one state of the store."""
        return self._run(lambda connection: self._run_inside(connection, BEGIN_READING, make, step), step)

    # Life.

    def close(self) -> None:
        """Do what was begun, then give back threads and connections."""
        self.hands.close()
        self._clear_shelf()
        self._is_checked = False

    def forget(self) -> None:
        """In a child process: threads, locks and connections are the parent's."""
        keep_open(self._shelf)
        self.hands.forget()
        self._begin()

    # Connections.

    def take(self) -> tuple[Connection, bool]:
        """A connection, and whether it is a new one."""
        with self._lock:
            if self._shelf:
                return self._shelf.pop(), False
        connection = self._place.connect()
        if not self._is_checked:
            try:
                self._place.check(connection)
            except BaseException:
                connection.close()
                raise
            self._is_checked = True
        return connection, True

    def put_back(self, connection: Connection) -> None:
        """Keep the connection for the next step, if it is well."""
        if connection.closed or connection.info.transaction_status is not psycopg.pq.TransactionStatus.IDLE:
            connection.close()
            return
        with self._lock:
            if len(self._shelf) < _SHELF:
                self._shelf.append(connection)
                return
        connection.close()

    def _run(self, work: Callable[[Connection], T], step: Step) -> T:
        while True:
            connection, is_new = self.take()
            try:
                answer = work(connection)
            except (psycopg.Error, Again) as error:
                self._undo(connection)
                step.tries += 1
                if isinstance(error, psycopg.Error) and not self._is_worth_a_try(error, connection, is_new=is_new):
                    raise translate(error, self._place.shown) from error
                if step.tries == _MOST_TRIES:
                    raise StoreUnreachable(f"{self._place.shown}: too many others do the same: try again") from error
                pause(0.001 * step.tries)
            except BaseException:
                self._undo(connection)
                raise
            else:
                failpoint("store.committed")
                self.put_back(connection)
                return answer

    def _is_worth_a_try(self, error: psycopg.Error, connection: Connection, *, is_new: bool) -> bool:
        """Whether to repeat the step at once: none does twice what it did before a lost reply."""
        if is_repeatable(error):
            return True
        if is_unprepared(error) or is_outdated(error):
            if is_unprepared(error):
                self._place.distrust()
            connection.close()
            self._clear_shelf()
            return True
        # While it lay on the shelf, the server went away; those beside it are no better.
        if connection.closed and not is_new:
            self._clear_shelf()
            return True
        return False

    def _undo(self, connection: Connection) -> None:
        try:
            connection.rollback()
        except psycopg.Error:
            connection.close()
        self.put_back(connection)

    def _run_inside(self, connection: Connection, begin: str, make: Make[T], step: Step) -> T:
        cursor = connection.cursor()
        cursor.execute(self._place.bind(begin + _NOW).encode())
        while cursor.nextset():
            pass
        step.begin(_only(cursor.fetchall()))
        bound = Bound(connection, self._place)
        answer = run(bound, make(step))
        run(bound, settle(step))
        failpoint("store.before_commit")
        connection.commit()
        return answer

    def _clear_shelf(self) -> None:
        with self._lock:
            shelf, self._shelf = self._shelf, []
        for connection in shelf:
            connection.close()


def _only(rows: list[tuple[Any, ...]]) -> int:
    ((now,),) = rows
    value: int = now
    return value
