"""Hints: told at once inside this process, and found in the file by a watcher for what other processes commit.

SQLite has no messages. But a connection can ask, for a few microseconds, whether any other has committed since it last
asked; the watcher asks that every few milliseconds, while somebody listens, and reads the hints only after a yes.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from drumline.clock import pause
from drumline.errors import StoreError
from drumline.stores.base import Hear, Topic, topic
from drumline.stores.files import read_statements
from drumline.stores.hub import Ear, Hub
from drumline.stores.sqlite.connect import PATIENCE, Place
from drumline.stores.sqlite.forks import keep_open, watch_forks
from drumline.stores.sqlite.step import Step

__all__ = ["Watcher", "watcher_of"]

_SQL = read_statements(__package__, "wakeups.sql")
_LOOK_EVERY = 0.007
_AFTER_ERROR = 1.0
_MOST_ENDED = 10_000
_ENDED = topic.ended("")


class _Life:
    """One run of the thread: told to end by `over`; says when it has begun to watch, and when it has ended."""

    def __init__(self, watch: Callable[[_Life], None]) -> None:
        self.over = threading.Event()
        self.begun: Future[None] = Future()
        self.ended: Future[None] = Future()
        self._thread = threading.Thread(target=watch, args=(self,), name="drumline-watcher", daemon=True)
        self._thread.start()

    async def end(self) -> None:
        self.over.set()
        await asyncio.shield(asyncio.wrap_future(self.ended))
        # It has said its last word.
        self._thread.join()


class Watcher:
    """The listeners of one file in this process, and the thread that looks for hints of others while there are any."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._begin()
        watch_forks(self)

    def _begin(self) -> None:
        self._hub = Hub()
        self._lock = threading.Lock()
        # Held while the connection is in use: whoever forks takes it first.
        self._gate = threading.Lock()
        self._is_stopped = False
        self._listeners = 0
        self._life: _Life | None = None
        self._connection: sqlite3.Connection | None = None
        self._version: int | None = None
        self._last_ended = 0
        self._heard: dict[Topic, int] = {}

    def tell(self, step: Step) -> None:
        """Pass on what a commit of this process has news about."""
        if self._hub and step.topics:
            with self._lock:
                self._heard |= step.news
            self._hub.tell(step.topics)

    @asynccontextmanager
    async def listen(self, hear: Hear) -> AsyncIterator[Ear]:
        async with self._hub.listen(hear) as ear:
            life = self._enter()
            try:
                # What is committed from here on is heard of.
                await asyncio.shield(asyncio.wrap_future(life.begun))
                yield ear
            finally:
                await self._leave()

    def stop_for_fork(self) -> None:
        self._is_stopped = self._gate.acquire(timeout=PATIENCE)
        if self._is_stopped:
            self._disconnect()

    def go_on(self) -> None:
        if self._is_stopped:
            self._is_stopped = False
            self._gate.release()

    def forget(self) -> None:
        keep_open(self._connection)
        self._place.mutex.forget()
        self._begin()

    def _enter(self) -> _Life:
        with self._lock:
            self._listeners += 1
            if self._life is None:
                self._life = _Life(self._watch)
            return self._life

    async def _leave(self) -> None:
        with self._lock:
            self._listeners -= 1
            life = self._life
            if self._listeners or life is None:
                return
            self._life = None
        await life.end()

    def _watch(self, life: _Life) -> None:
        while not life.over.is_set():
            is_well = self._try_to_look()
            if not life.begun.done():
                life.begun.set_result(None)
            if is_well:
                # Not the event's own wait, which costs half as much again.
                pause(_LOOK_EVERY)
            else:
                life.over.wait(_AFTER_ERROR)
        with self._gate:
            # Unless the next run has begun already: it goes on with the connection.
            if self._life is None:
                self._disconnect()
                self._place.mutex.close()
        life.ended.set_result(None)

    def _try_to_look(self) -> bool:
        with self._gate:
            try:
                self._look()
            except (StoreError, sqlite3.Error):
                # Hints are only hints: whoever works with the store meets the error itself.
                self._disconnect()
                return False
            return True

    def _look(self) -> None:
        if self._connection is None:
            self._connection, self._version = self._place.connect_reader(), None
        ((version,),) = self._connection.execute("pragma data_version").fetchall()
        if version == self._version:
            return
        # What came before the first look is not known: then there may be news about everything.
        is_first, self._version = self._version is None, version
        self._connection.execute("begin")
        try:
            news = self._read_hints(self._connection) | self._read_ended(self._connection)
        finally:
            self._connection.rollback()
        self._hub.tell(self._hub.topics if is_first else news)

    def _read_hints(self, connection: sqlite3.Connection) -> set[Topic]:
        rows: list[tuple[Topic, int]] = connection.execute(_SQL["read_hints"]).fetchall()
        with self._lock:
            news = {name: number for name, number in rows if number > self._heard.get(name, -1)}
            self._heard |= news
        return set(news)

    def _read_ended(self, connection: sqlite3.Connection) -> set[Topic]:
        watched = {name for name in self._hub.topics if name.startswith(_ENDED)}
        ended: set[Topic] = set()
        while watched:
            place = {"number": self._last_ended, "limit": _MOST_ENDED}
            rows = connection.execute(_SQL["read_ended"], place).fetchall()
            ended |= watched & {topic.ended(job_id) for _, job_id in rows}
            if len(rows) < _MOST_ENDED:
                break
            self._last_ended = rows[-1][0]
        ((self._last_ended,),) = connection.execute(_SQL["last_ended"]).fetchall()
        return ended

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._place.close(self._connection)
            self._connection = None


# All stores on one file in one process share their listeners, so that they hear of each other at once.
_watchers: WeakValueDictionary[Path, Watcher] = WeakValueDictionary()
_lock = threading.Lock()


def watcher_of(place: Place) -> Watcher:
    """The watcher of the file."""
    with _lock:
        path = place.path.resolve()
        watcher = _watchers.get(path)
        if watcher is None:
            watcher = _watchers[path] = Watcher(place)
        return watcher
