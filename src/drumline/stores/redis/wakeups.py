"""Hints by the server's own messages: one connection listens while anybody in this process does.

Whatever is watched is told of once when the connection begins to listen, for what was said before went unheard.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any

from redis import exceptions

from drumline.clock import fresh_id
from drumline.stores.base import Hear, Listener, Topic, topic
from drumline.stores.hub import Hub
from drumline.stores.redis.address import Wire
from drumline.stores.redis.calls import Call
from drumline.stores.redis.connect import Server
from drumline.stores.redis.line import Line
from drumline.stores.redis.pack import unpack_id

__all__ = ["Watcher"]

logger = logging.getLogger("drumline.redis")

_ENDED = topic.ended("")
_ID_SIZE = 16
# How long to wait before a lost connection is opened again, in seconds.
_FIRST_WAIT = 0.05
_LONGEST_WAIT = 2.0
# After so long a silence the connection is tried, and after as long again it is given up.
_PATIENCE = 10.0


class _Life:
    """One run of the thread: told to end by `is_over`; says when it first listens, or cannot, and when it has ended."""

    def __init__(self) -> None:
        self.is_over = threading.Event()
        self.begun: Future[None] = Future()
        self.ended: Future[None] = Future()
        self.thread: threading.Thread | None = None
        # A channel on which only this thread is called.
        self.bell = f"bell:{fresh_id()}"

    def begin(self) -> None:
        if not self.begun.done():
            self.begun.set_result(None)


class Watcher:
    """The listeners of one store in this process, and the thread that hears for them while there are any."""

    def __init__(self, server: Server, line: Line) -> None:
        self._server = server
        # Through which the thread is called: only it uses its own connection.
        self._line = line
        self._begin()

    def _begin(self) -> None:
        self._hub = Hub()
        self._lock = threading.Lock()
        self._listeners = 0
        self._life: _Life | None = None

    def forget(self) -> None:
        """In a child process: thread, locks and connection are the parent's."""
        self._begin()

    @asynccontextmanager
    async def listen(self, hear: Hear) -> AsyncIterator[Listener]:
        async with self._hub.listen(hear) as ear:
            life = self._enter()
            try:
                # What is done from here on is heard of.
                await asyncio.shield(asyncio.wrap_future(life.begun))
                yield ear
            finally:
                await self._leave()

    def _enter(self) -> _Life:
        with self._lock:
            self._listeners += 1
            if self._life is None:
                life = self._life = _Life()
                life.thread = threading.Thread(target=self._live, args=(life,), name="drumline-watcher", daemon=True)
                life.thread.start()
            return self._life

    async def _leave(self) -> None:
        with self._lock:
            self._listeners -= 1
            if self._listeners or self._life is None:
                return
            life, self._life = self._life, None
        life.is_over.set()
        self._line.post(Call("hint", (life.bell,)))
        await asyncio.shield(asyncio.wrap_future(life.ended))
        assert life.thread is not None
        # It has said its last word.
        life.thread.join()

    def _live(self, life: _Life) -> None:
        wait = _FIRST_WAIT
        while not life.is_over.is_set():
            try:
                self._hear_until_lost(life)
            except Exception as error:  # noqa: BLE001 - hints are only hints: whoever works meets the error itself
                logger.info("%s: no hints for now: %s", self._server.shown, error)
                self._hub.go_deaf()
            wait = _FIRST_WAIT if life.begun.done() else min(wait * 2, _LONGEST_WAIT)
            life.begin()
            life.is_over.wait(wait)
        life.ended.set_result(None)

    def _hear_until_lost(self, life: _Life) -> None:
        wire = self._server.open()
        try:
            base = self._server.base
            names = (b"queue", b"ended", b"cancel", b"changes")
            wire.send_command(
                "SUBSCRIBE", *(base + b":news:" + name for name in names), base + b":" + life.bell.encode()
            )
            while not life.is_over.is_set():
                self._pass_on(life, self._receive(wire))
        finally:
            wire.disconnect()

    def _receive(self, wire: Wire) -> Any:
        """The next message; a silent connection is tried."""
        try:
            return wire.read_response(timeout=_PATIENCE, disconnect_on_error=False)
        except exceptions.TimeoutError:
            wire.send_command("PING")
            return wire.read_response(timeout=_PATIENCE)

    def _pass_on(self, life: _Life, message: Any) -> None:
        kind, channel, *rest = message
        name = channel.removeprefix(self._server.base + b":").decode()
        if kind == b"subscribe" and name == life.bell:
            # What was asked for is granted in turn, and this comes last.
            self._hub.hear_again()
            self._hub.tell(self._hub.topics)
            life.begin()
        elif kind == b"message" and name == "news:ended":
            # There are as many as there are jobs, and mostly nobody in this process waits for any.
            if any(item.startswith(_ENDED) for item in self._hub.topics):
                self._hub.tell(_read_ended(rest[0]))
        elif kind == b"message" and name != life.bell:
            self._hub.tell(_read_topics(name, rest[0].decode()))


def _read_ended(said: bytes) -> list[Topic]:
    return [topic.ended(unpack_id(said[place : place + _ID_SIZE])) for place in range(0, len(said), _ID_SIZE)]


def _read_topics(name: str, said: str) -> list[Topic]:
    match name:
        case "news:queue":
            return [topic.queue(queue) for queue in said.split("\n")]
        case "news:cancel":
            return [topic.cancel(replica) for replica in said.split("\n")]
        case _:
            return [topic.CHANGES]
