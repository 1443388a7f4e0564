"""The threads that hold the connections: one that writes, one that reads.

Callers hand over whole operations. What has queued up for the writer while it was busy shares one transaction, each
operation inside a savepoint of its own, so that one that fails leaves its neighbours alone:

    begin immediate ── member ── member ── … ── totals, series, hints ── commit ── answers
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any, TypeVar

from drumline.clock import Clock, SystemClock
from drumline.errors import StoreUnusable
from drumline.failpoint import failpoint
from drumline.model.instant import to_millis
from drumline.stores.forks import keep_open
from drumline.stores.replies import LoopReply, deliver
from drumline.stores.sqlite.calls import BatchCall, Call, Join, Make, find_batch
from drumline.stores.sqlite.claim import demote
from drumline.stores.sqlite.connect import PATIENCE, Place, translate
from drumline.stores.sqlite.step import Step, settle
from drumline.stores.statements import run

__all__ = ["Reader", "Writer"]

T = TypeVar("T")

# More than this do not share a commit, nor what comes after so many seconds: beats must not wait for long.
_MOST_TOGETHER = 1000
_LONGEST_TOGETHER = 0.1


class Worker:
    """A thread with a connection, started when there is work, and a queue in front of it."""

    def __init__(self, place: Place, clock: Clock, name: str) -> None:
        self._place = place
        self._clock = clock
        self._name = name
        self._begin()

    def _begin(self) -> None:
        self._condition = threading.Condition()
        # Held while the connection is in use: whoever forks takes it first.
        self._gate = threading.Lock()
        self._urgent: deque[Call[Any]] = deque()
        self._calls: deque[Call[Any]] = deque()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._is_stopped = False
        self._connection: sqlite3.Connection | None = None
        self._is_suspect = False
        # Which file the connection is to.
        self._file: tuple[int, int] | None = None

    def submit(self, make: Make[T], *, is_urgent: bool = False) -> asyncio.Future[T]:
        """Run the operation; its answer comes to this event loop."""
        reply = LoopReply()
        self._put(Call(make, reply, is_urgent=is_urgent))
        return reply.future

    def submit_batch(self, items: Sequence[Any], join: Join) -> asyncio.Future[list[Any]]:
        """Run an operation on many items, perhaps together with others; its answer comes to this event loop."""
        reply = LoopReply()
        self._put(BatchCall(items, join, reply))
        return reply.future

    def call_batch(self, items: Sequence[Any], join: Join) -> list[Any]:
        """The same, blocking this thread until it is over."""
        reply: Future[list[Any]] = Future()
        self._put(BatchCall(items, join, reply))
        return reply.result()

    def call(self, make: Make[T], *, is_urgent: bool = False) -> T:
        """Run the operation, and block this thread until it is over."""
        reply: Future[T] = Future()
        self._put(Call(make, reply, is_urgent=is_urgent))
        return reply.result()

    def close(self) -> None:
        """Do what is queued, then give back thread and connection."""
        with self._condition:
            thread = self._thread
            self._is_closing = thread is not None
            self._condition.notify_all()
        if thread is not None:
            thread.join()

    def stop_for_fork(self) -> None:
        """Give back the connection and hold still, until `go_on`: no lock of the driver may cross a fork."""
        self._is_stopped = self._gate.acquire(timeout=PATIENCE)
        if self._is_stopped:
            self._disconnect()

    def go_on(self) -> None:
        """In the parent: work again."""
        if self._is_stopped:
            self._is_stopped = False
            self._gate.release()

    def forget(self) -> None:
        """In the child: thread, queue, locks and connection are the parent's."""
        keep_open(self._connection)
        self._begin()

    def _put(self, call: Call[Any]) -> None:
        with self._condition:
            (self._urgent if call.is_urgent else self._calls).append(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
            self._condition.notify()

    def _work(self) -> None:
        while calls := self._take():
            with self._gate:
                rest = self._serve(calls)
                if self._is_suspect:
                    self._disconnect()
            deliver(calls[: len(calls) - len(rest)])
            self._put_back(rest)

    def _take(self) -> list[Call[Any]]:
        """What has queued up, urgent calls first; nothing when the thread shall end."""
        with self._condition:
            while not self._urgent and not self._calls:
                if self._is_closing:
                    with self._gate:
                        self._disconnect()
                    self._thread, self._is_closing = None, False
                    return []
                self._condition.wait()
            calls = [*self._urgent, *self._calls]
            self._urgent.clear()
            self._calls.clear()
            if len(calls) > _MOST_TOGETHER:
                self._calls.extend(calls[_MOST_TOGETHER:])
                del calls[_MOST_TOGETHER:]
            return calls

    def _put_back(self, calls: Sequence[Call[Any]]) -> None:
        with self._condition:
            self._calls.extendleft(reversed(calls))

    def _serve(self, calls: Sequence[Call[Any]]) -> Sequence[Call[Any]]:
        """Run the calls, and give back those that shall wait for the next turn."""
        raise NotImplementedError

    def _connect(self) -> sqlite3.Connection:
        raise NotImplementedError

    def _connected(self) -> sqlite3.Connection:
        file = self._place.identify()
        if file != self._file:
            # Removed or replaced: what is written to the old one, nobody will find.
            self._disconnect()
        if self._connection is None:
            self._connection, self._file = self._connect(), file
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._place.close(self._connection)
            self._connection = None
        self._is_suspect = False

    def _now(self) -> int:
        return to_millis(self._clock.now())

    def _fail(self, calls: Iterable[Call[Any]], error: Exception) -> None:
        """Fail the calls. After some errors only a new connection can tell whether the file is well again."""
        meaning = error
        if isinstance(error, sqlite3.Error):
            meaning = translate(error, self._place.path)
            meaning.__cause__ = error
        for call in calls:
            call.error = meaning
        self._is_suspect |= isinstance(meaning, StoreUnusable)


class Reader(Worker):
    """Runs each operation in a transaction of its own, on one state of the file. Never waits for the writer."""

    def _connect(self) -> sqlite3.Connection:
        return self._place.connect_reader()

    def _serve(self, calls: Sequence[Call[Any]]) -> Sequence[Call[Any]]:
        for call in calls:
            try:
                connection = self._connected()
                connection.execute("begin")
                try:
                    call.answer = run(connection.cursor(), call.make(Step(self._now())))
                finally:
                    connection.rollback()
            except Exception as error:  # noqa: BLE001 - given to the caller
                self._fail([call], error)
        return ()


class Writer(Worker):
    """Runs operations under the write mutex, and commits those together that have queued up."""

    def __init__(self, place: Place, clock: Clock, name: str, tell: Callable[[Step], None]) -> None:
        super().__init__(place, clock, name)
        self._tell = tell
        self._timer = SystemClock()
        # The latest instant that this writer has seen.
        self.latest = 0

    def _connect(self) -> sqlite3.Connection:
        return self._place.connect_writer()

    def _serve(self, calls: Sequence[Call[Any]]) -> Sequence[Call[Any]]:
        committed: list[Step] = []
        try:
            connection = self._connected()
            with self._place.mutex.held():
                rest = self._commit(connection, calls, committed)
        except Exception as error:  # noqa: BLE001 - given to the callers
            self._fail(calls, error)
            return ()
        for step in committed:
            self._tell(step)
        return rest

    def _commit(
        self, connection: sqlite3.Connection, calls: Sequence[Call[Any]], committed: list[Step]
    ) -> Sequence[Call[Any]]:
        """Run the calls in one transaction, and give back those for which the time did not suffice."""
        try:
            connection.execute("begin immediate")
        except sqlite3.Error as error:
            self._fail(calls, error)
            return ()
        common = Step(self._now())
        try:
            self._follow_clock(connection, common)
            count = self._run_members(connection, calls, common)
            run(connection.cursor(), settle(common))
            failpoint("store.before_commit")
            connection.commit()
            failpoint("store.committed")
        except Exception as error:  # noqa: BLE001 - given to the callers
            connection.rollback()
            if len(calls) == 1:
                self._fail(calls, error)
            else:
                # One of them spoils the transaction for all: alone, each succeeds or fails by itself.
                for call in calls:
                    self._commit(connection, [call], committed)
            return ()
        committed.append(common)
        return calls[count:]

    def _run_members(self, connection: sqlite3.Connection, calls: Sequence[Call[Any]], common: Step) -> int:
        """Run the calls one after another, and say how many the time sufficed for."""
        cursor = connection.cursor()
        if len(calls) == 1:
            calls[0].error = None
            self._run_member(cursor, calls[0], common)
            return 1
        end = self._timer.monotonic() + _LONGEST_TOGETHER
        count = 0
        while count < len(calls) and (not count or self._timer.monotonic() <= end):
            group = find_batch(calls, count)
            if len(group) == 1 or not self._run_batch(cursor, group, common):
                for call in group:
                    self._run_apart(cursor, call, common)
            count += len(group)
        return count

    def _run_batch(self, cursor: sqlite3.Cursor, group: Sequence[BatchCall], common: Step) -> bool:
        """Run the calls as one operation, and say whether that went well; if not, nothing of it is left."""
        step = Step(self._now())
        items = [item for call in group for item in call.items]
        cursor.execute("savepoint batch")
        try:
            answers = iter(run(cursor, group[0].join(step, items)))
        except Exception:
            if not cursor.connection.in_transaction:
                raise
            cursor.execute("rollback to batch")
            return False
        finally:
            if cursor.connection.in_transaction:
                cursor.execute("release batch")
        for call in group:
            call.error = None
            call.answer = list(islice(answers, len(call.items)))
        common.join(step)
        return True

    def _run_apart(self, cursor: sqlite3.Cursor, call: Call[Any], common: Step) -> None:
        """Run the call so that its failure undoes only what it did itself."""
        call.error = None
        cursor.execute("savepoint member")
        try:
            self._run_member(cursor, call, common)
        except Exception as error:
            if not cursor.connection.in_transaction:
                # Some errors undo the whole transaction.
                raise
            cursor.execute("rollback to member")
            self._fail([call], error)
        cursor.execute("release member")

    def _run_member(self, cursor: sqlite3.Cursor, call: Call[Any], common: Step) -> None:
        step = Step(self._now())
        call.answer = run(cursor, call.make(step))
        common.join(step)

    def _follow_clock(self, connection: sqlite3.Connection, step: Step) -> None:
        """Mend what was ready by a later time than now, if the clock has gone back."""
        if step.now < self.latest:
            run(connection.cursor(), demote(step))
        self.latest = step.now
