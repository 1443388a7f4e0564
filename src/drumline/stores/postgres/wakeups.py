"""Hints: told at once inside this process, and by NOTIFY to the rest of the fleet.

Commits that notify wait for each other, each for the other's disk. So at most one of the fleet's does at a time: an
enqueue that finds nobody else about to. All other news is sent after its commit, by itself. Between two messages of a
process lies a rest: the first hint goes out at once, and what comes in the rest after it goes out together.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress

from drumline.clock import SystemClock, fresh_id, pause
from drumline.errors import StoreError
from drumline.stores.base import Hear, Topic, topic
from drumline.stores.files import read_statements
from drumline.stores.hub import Ear, Hub
from drumline.stores.postgres.connect import Connection, Place, is_pooled
from drumline.stores.postgres.session import Sessions
from drumline.stores.postgres.standby import Standbys
from drumline.stores.postgres.step import News, Step
from drumline.stores.rows import find_uuids, json_text
from drumline.stores.statements import Operation, Statement

__all__ = ["Hints"]

logger = logging.getLogger("drumline.postgres")
_SQL = read_statements(__package__, "wakeups.sql")
_ENDED = topic.ended("")
_NEWS = "new "
# Between two messages of one process, in seconds.
_REST = 0.02
# After an enqueue in a transaction whose commit nobody tells of.
_TRAILING = (0.02, 0.2)
# After an error, and between two looks whether the server is still there.
_AFTER_ERROR = 1.0
_PROBE_EVERY = 30.0
# A message of Postgres holds less than 8,000 bytes.
_LONGEST = 7_000


class _Life:
    """One run of the listening thread: told to end by `over`; says when it has begun to hear."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.begun: Future[None] = Future()
        self.asked, self.ask = os.pipe()
        self.thread: threading.Thread | None = None

    def wake(self) -> None:
        with suppress(OSError):
            os.write(self.ask, b".")

    def close(self) -> None:
        os.close(self.asked)
        os.close(self.ask)


class PostgresEar:
    """A listener that lets the fleet know for the ends of which jobs it waits."""

    def __init__(self, ear: Ear, hints: Hints) -> None:
        self._ear = ear
        self._hints = hints

    @property
    def is_hearing(self) -> bool:
        return self._ear.is_hearing

    def watch(self, topics: Iterable[Topic]) -> None:
        wanted = frozenset(topics)
        self._ear.watch(wanted)
        self._hints.want(name for name in wanted if name.startswith(_ENDED))

    def unwatch(self, topics: Iterable[Topic]) -> None:
        self._ear.unwatch(topics)


class Hints:
    """The listeners of one store in this process, and the way to those of other processes."""

    def __init__(self, place: Place, sessions: Sessions, standbys: Standbys) -> None:
        self._place = place
        self._standbys = standbys
        self._sessions = sessions
        self._channel = place.channel
        self._timer = SystemClock()
        self.forget()

    def forget(self) -> None:
        """Begin anew: in a child process, listeners and thread are the parent's."""
        self._hub = Hub()
        self._lock = threading.Lock()
        # Whoever hears its own messages, was told already.
        self._me = fresh_id()
        self._unsent: set[Topic] = set()
        self._is_speaking = False
        self._rests_until = float("-inf")
        self._later: list[tuple[float, Step]] = []
        self._is_waiting = False
        self._hurry = threading.Event()
        self._unwatched: set[str] = set()
        # What is to be heard though this process itself has said it.
        self._own: list[tuple[News, list[Topic]]] = []
        self._listeners = 0
        self._life: _Life | None = None

    def compose(self, topics: Iterable[Topic], news: News | None) -> str | None:
        """What a commit can tell the fleet of; None if it is too much, or there was a hint just now."""
        if self._is_speaking or self._timer.monotonic() < self._rests_until:
            return None
        told = sorted(topics)
        message, *more = _split(self._me, told if news is None else [*told, _NEWS + " ".join(news)])
        return None if more else message

    def tell(self, step: Step) -> None:
        """Pass on what a commit of this process has news about, without waiting for the server."""
        self._tell(step, self._sessions.hands.give)

    def tell_here(self, step: Step) -> None:
        """The same in this thread, which may wait: the fleet knows sooner. But not for the commit that notifies now."""
        self._tell(step, (lambda speak: speak()) if step.message is None else self._sessions.hands.give)

    def _tell(self, step: Step, do: Callable[[Callable[[], None]], None]) -> None:
        if self._hub and not self._hear_own(step):
            self._hub.tell([*step.topics, *step.ended])
        if step.is_told:
            self._rests_until = self._timer.monotonic() + _REST
            return
        if not step.topics:
            return
        with self._lock:
            self._unsent.update(step.topics)
            if self._is_speaking:
                return
            self._is_speaking = True
            is_rested = self._timer.monotonic() >= self._rests_until
        if is_rested:
            do(self._begin_to_speak)
        else:
            self._sessions.hands.give(self._speak)

    def _hear_own(self, step: Step) -> bool:
        """Let those who stand by have the job first, and say whether there are any."""
        if step.news is None or not self._standbys.want(step.news):
            return False
        with self._lock:
            life = self._life
            if life is None:
                return False
            self._own.append((step.news, list(step.topics)))
        life.wake()
        return True

    def tell_later(self, step: Step) -> None:
        """Pass on what will be news once somebody else commits: soon, and a little later."""
        now = self._timer.monotonic()
        with self._lock:
            self._later += [(now + wait, step) for wait in _TRAILING]
            if self._is_waiting:
                return
            self._is_waiting = True
        self._sessions.hands.give(self._trail)

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """While the store is closed: what would be told later is told now."""
        self._hurry.set()
        try:
            yield
        finally:
            self._hurry.clear()

    def want(self, topics: Iterable[Topic]) -> None:
        """Let the fleet be told of the ends of these jobs."""
        ids = find_uuids(name.removeprefix(_ENDED) for name in topics)
        if not ids:
            return
        with self._lock:
            self._unwatched.update(ids)
            life = self._life
        if life is not None:
            life.wake()

    @asynccontextmanager
    async def listen(self, hear: Hear) -> AsyncIterator[PostgresEar]:
        async with self._hub.listen(hear) as ear:
            life = self._enter()
            try:
                # What is committed from here on is heard of.
                await asyncio.shield(asyncio.wrap_future(life.begun))
                yield PostgresEar(ear, self)
            finally:
                await self._leave()

    # Speak.

    def _begin_to_speak(self) -> None:
        try:
            self._say_unsent()
        finally:
            # Also when a signal broke in on the caller: the next one who has something must be free to speak.
            if self._has_unsent():
                self._sessions.hands.give(self._speak)

    def _speak(self) -> None:
        """Say what there is to say, and rest in between."""
        while self._has_unsent():
            pause(max(0.0, self._rests_until - self._timer.monotonic()))
            self._say_unsent()

    def _has_unsent(self) -> bool:
        """Whether there is more to say; if not, the next one who has something speaks."""
        with self._lock:
            self._is_speaking = bool(self._unsent)
            return self._is_speaking

    def _say_unsent(self) -> None:
        with self._lock:
            topics, self._unsent = self._unsent, set()
        params = {"channel": self._channel, "messages": json_text(list(_split(self._me, sorted(topics))))}
        # Hints are only hints: whoever works with the store meets the error itself.
        with suppress(StoreError):
            self._sessions.run_statement(lambda _: _only_do(Statement(_SQL["notify"], params)), Step())
        self._rests_until = self._timer.monotonic() + _REST

    def _trail(self) -> None:
        while True:
            with self._lock:
                now = self._timer.monotonic()
                until = float("inf") if self._hurry.is_set() else now
                ripe = [step for at, step in self._later if at <= until]
                self._later = [item for item in self._later if item[0] > until]
                self._is_waiting = bool(self._later)
                wait = min((at for at, _ in self._later), default=now) - now
            for step in ripe:
                self.tell(step)
            if wait <= 0:
                return
            self._hurry.wait(wait)

    # Hear.

    def _enter(self) -> _Life:
        with self._lock:
            self._listeners += 1
            if self._life is None:
                self._life = life = _Life()
                life.thread = threading.Thread(target=self._run, args=(life,), name="drumline-listener", daemon=True)
                life.thread.start()
            return self._life

    async def _leave(self) -> None:
        with self._lock:
            self._listeners -= 1
            life = self._life
            if self._listeners or life is None:
                return
            self._life = None
        life.over.set()
        life.wake()
        assert life.thread is not None
        await asyncio.shield(asyncio.to_thread(life.thread.join))
        life.close()

    def _run(self, life: _Life) -> None:
        is_first = True
        while not life.over.is_set():
            try:
                with self._place.connect_listener() as connection:
                    self._attend(connection, life, is_first=is_first)
            except Exception as error:  # noqa: BLE001 - hints are only hints, as above
                if self._hub.is_hearing:
                    logger.info("%s: no hints for now: %s", self._place.shown, error)
                self._standbys.shut()
                self._hub.go_deaf()
                if not life.begun.done():
                    life.begun.set_result(None)
                life.over.wait(_AFTER_ERROR)
            is_first = False
        self._standbys.shut()

    def _attend(self, connection: Connection, life: _Life, *, is_first: bool) -> None:
        """Hear, until it is over or the connection is lost."""
        if is_pooled(connection):
            self._stay_deaf(life)
            return
        connection.execute(f'listen "{self._channel}"')
        self._hub.hear_again()
        self._standbys.open()
        if not is_first:
            # What was said in between is not known: there may be news about everything.
            self._hub.tell(self._hub.topics)
        if not life.begun.done():
            life.begun.set_result(None)
        # Not `select.select`, which knows the first thousand descriptors of a process only.
        watch = select.poll()
        watch.register(connection.fileno(), select.POLLIN)
        watch.register(life.asked, select.POLLIN)
        while not life.over.is_set():
            self._keep_watch()
            ready = [descriptor for descriptor, _ in watch.poll(_PROBE_EVERY * 1000)]
            if life.asked in ready:
                os.read(life.asked, 4096)
                self._pass_on_own()
            elif not ready:
                connection.execute("select 1")
            for notice in connection.notifies(timeout=0):
                speaker, *topics = notice.payload.split("\n")
                if speaker != self._me:
                    self._pass_on(_read_news(topics), topics)

    def _pass_on_own(self) -> None:
        with self._lock:
            own, self._own = self._own, []
        for news, topics in own:
            self._pass_on(news, topics)

    def _pass_on(self, news: News | None, topics: list[Topic]) -> None:
        if news is not None:
            self._standbys.ring(news)
        self._hub.tell(topics)

    def _stay_deaf(self, life: _Life) -> None:
        """Through a pooler no message arrives: say so, and let all take to looking."""
        logger.warning(
            "%s: a pooler stands before the server, and no hint arrives through it: workers look every second;"
            " set store.listen_url to the server's own address to have them told at once",
            self._place.shown,
        )
        self._hub.go_deaf()
        if not life.begun.done():
            life.begun.set_result(None)
        life.over.wait()

    def _keep_watch(self) -> None:
        with self._lock:
            ids, self._unwatched = self._unwatched, set()
        if not ids:
            return
        try:
            ended = self._sessions.run_statement(lambda _: _watch(sorted(ids)), Step())
        except StoreError:
            with self._lock:
                self._unwatched |= ids
            raise
        self._hub.tell([topic.ended(job_id) for job_id in ended])


def _read_news(lines: list[str]) -> News | None:
    """The job that a message is about, which stands last in it; anybody may send one, also with something else."""
    if not lines or not lines[-1].startswith(_NEWS):
        return None
    told = lines.pop().removeprefix(_NEWS).split(" ")
    return News(*told) if len(told) == len(News._fields) and find_uuids(told[:1]) else None


def _watch(ids: list[str]) -> Operation[list[str]]:
    """Let the ends of these jobs be told; those that have ended before."""
    yield Statement(_SQL["watch"], {"ids": json_text(ids)})
    rows = yield Statement(_SQL["find_ended"], {"ids": json_text(ids)})
    return [job_id for (job_id,) in rows]


def _only_do(statement: Statement) -> Operation[None]:
    yield statement


def _split(me: str, topics: list[Topic]) -> Iterable[str]:
    """The topics in as many messages as are needed."""
    message, size = [me], 0
    for name in topics:
        size += len(name.encode()) + 1
        if size > _LONGEST:
            yield "\n".join(message)
            message, size = [me], len(name.encode()) + 1
        message.append(name)
    yield "\n".join(message)
