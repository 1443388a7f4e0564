"""Hints: told at once inside this process, and found in the file by a watcher for what other processes commit.

SQLite has no messages. But a connection can ask whether any other has committed since it last asked. While somebody
listens, the watcher asks that again and again, as `pace` says, and reads the hints only after a yes.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from drumline.errors import StoreError
from drumline.stores.base import Hear, Topic, topic
from drumline.stores.files import read_statements
from drumline.stores.forks import keep_open, watch_forks
from drumline.stores.hub import Ear, Hub
from drumline.stores.sqlite.connect import PATIENCE, Place
from drumline.stores.sqlite.pace import Pace
from drumline.stores.sqlite.step import Step

__all__ = ["Watcher", "watcher_of"]

_SQL = read_statements(__package__, "wakeups.sql")
_AFTER_ERROR = 1.0
_MOST_ENDED = 10_000
_ENDED = topic.ended("")


class _Life:
    """One run of the thread: told to end by `over`; says when it has begun to watch, and when it has ended."""

    def __init__(self, watch: Callable[[_Life], None]) -> None:
        self.over = threading.Event()
        self.begun: Future[None] = Future()
        self.ended: Future[None] = Future()
        self.pace: Pace | None = None
        self._thread = threading.Thread(target=watch, args=(self,), name="drumline-watcher", daemon=True)
        self._thread.start()

    async def end(self) -> None:
        self.over.set()
        pace = self.pace
        if pace is not None:
            pace.wake()
        await asyncio.shield(asyncio.wrap_future(self.ended))
        # It has said its last word.
        self._thread.join()


class Watcher:
    """The listeners of one file in this process, and the thread that looks for hints of others while there are any."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._log = Path(f"{place.path}-wal")
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
        if not self._hub:
            return
        if step.topics:
            known = step.news.keys() - self._sift(step.news)
            self._hub.tell(step.topics - known)
        if step.ended and self._watched_ends():
            self._hub.tell([topic.ended(job_id) for job_id in step.ended])

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
            before = self._connection
            found = self._try_to_look()
            if self._connection is not before:
                # The log of before may be gone.
                self._set_pace(life)
            if not life.begun.done():
                life.begun.set_result(None)
            if life.pace is None:
                life.over.wait(_AFTER_ERROR)
            elif not life.over.is_set():
                life.pace.wait(found=found)
        with self._gate:
            # Unless the next run has begun already: it goes on with the connection.
            if self._life is None:
                self._disconnect()
                self._place.mutex.close()
        self._set_pace(life)
        life.ended.set_result(None)

    def _set_pace(self, life: _Life) -> None:
        if life.pace is not None:
            life.pace.close()
        is_watching = self._connection is not None and not life.over.is_set()
        life.pace = Pace(self._log) if is_watching else None

    def _try_to_look(self) -> bool:
        """Look, and say whether there was a commit. Without a connection there was an error."""
        with self._gate:
            try:
                found = self._look()
            except (StoreError, sqlite3.Error):
                # Hints are only hints: whoever works with the store meets the error itself.
                self._disconnect()
                self._hub.go_deaf()
                return False
            self._hub.hear_again()
            return found

    def _look(self) -> bool:
        if self._connection is None:
            self._connection, self._version = self._place.connect_reader(), None
        ((version,),) = self._connection.execute("pragma data_version").fetchall()
        if version == self._version:
            return False
        # What came before the first look is not known: then there may be news about everything.
        is_first, self._version = self._version is None, version
        self._connection.execute("begin")
        try:
            news = self._read_hints(self._connection) | self._read_ended(self._connection)
        finally:
            self._connection.rollback()
        self._hub.tell(self._hub.topics if is_first else news)
        return True

    def _read_hints(self, connection: sqlite3.Connection) -> set[Topic]:
        return self._sift(dict(connection.execute(_SQL["read_hints"]).fetchall()))

    def _sift(self, news: Mapping[Topic, int]) -> set[Topic]:
        """Those of the news that nobody was told of: the writer and the watcher may both know of them, in any order."""
        with self._lock:
            fresh = {name: number for name, number in news.items() if number > self._heard.get(name, -1)}
            self._heard |= fresh
        return set(fresh)

    def _watched_ends(self) -> set[Topic]:
        return {name for name in self._hub.topics if name.startswith(_ENDED)}

    def _read_ended(self, connection: sqlite3.Connection) -> set[Topic]:
        watched = self._watched_ends()
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
