"""A wire between a process and the store's server that can be made to fail: slow, cut, silent, or deaf to answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import Enum, auto
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

__all__ = ["Mode", "Proxy", "Switchboard", "find_server"]

T = TypeVar("T")

_CHUNK = 1 << 16
_DELAY = 0.15
_PORTS = {"postgresql": 5432, "postgres": 5432, "redis": 6379}


class Mode(Enum):
    """What becomes of what is sent."""

    PASS = auto()
    # Answers come later.
    DELAY = auto()
    # Nothing passes, either way, and nobody is told; when it is over, all of it does.
    BLACKHOLE = auto()
    # What is asked is done; its answer is lost, and the connection with it.
    DEAF = auto()


def find_server(url: str) -> tuple[str, int] | None:
    """Where the URL's server is; None if it cannot be reached through a proxy: a file, a socket, TLS, several hosts."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname or "," in parts.netloc or "sslmode=verify" in parts.query:
        return None
    return parts.hostname, parts.port or _PORTS[parts.scheme]


class Proxy:
    """One wire."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._mode = Mode.PASS
        self._changed = asyncio.Event()
        self._wires: set[asyncio.WriteTransport] = set()
        self._listener: asyncio.Server | None = None
        self.port = 0

    async def open(self) -> None:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self.cut()

    def set_mode(self, mode: Mode) -> None:
        self._mode = mode
        self._changed.set()
        self._changed = asyncio.Event()

    def cut(self) -> None:
        """End every connection at once."""
        for wire in list(self._wires):
            wire.abort()

    def lead(self, url: str) -> str:
        """The same URL, through this wire."""
        parts: SplitResult = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}{at}127.0.0.1:{self.port}").geturl()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_server, to_server = await asyncio.open_connection(*self._server)
        except OSError:
            writer.transport.abort()
            return
        both = {writer.transport, to_server.transport}
        self._wires |= both
        try:
            await asyncio.gather(self._ask(reader, to_server), self._answer(from_server, writer))
        finally:
            for wire in both:
                wire.abort()
            self._wires -= both

    async def _ask(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(_CHUNK):
                await self._wait_while_silent()
                target.write(data)
                await target.drain()
        target.transport.abort()

    async def _answer(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(_CHUNK):
                await self._wait_while_silent()
                if self._mode is Mode.DEAF:
                    break
                if self._mode is Mode.DELAY:
                    await asyncio.sleep(_DELAY)
                target.write(data)
                await target.drain()
        target.transport.abort()

    async def _wait_while_silent(self) -> None:
        while self._mode is Mode.BLACKHOLE:
            await self._changed.wait()


class Switchboard:
    """All wires of a run, served by a thread."""

    def __init__(self, server: tuple[str, int], number: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="drumline-switchboard", daemon=True)
        self._thread.start()
        self.proxies = self._run(self._open(server, number))

    def set_mode(self, place: int, mode: Mode) -> None:
        """Let the wire of this place do so from now on."""
        self._run(self._call(lambda: self.proxies[place].set_mode(mode)))

    def cut(self, place: int) -> None:
        """End every connection of this place."""
        self._run(self._call(self.proxies[place].cut))

    def close(self) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self, server: tuple[str, int], number: int) -> list[Proxy]:
        proxies = [Proxy(server) for _ in range(number)]
        for proxy in proxies:
            await proxy.open()
        return proxies

    async def _close(self) -> None:
        for proxy in self.proxies:
            proxy.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _call(self, work: Callable[[], None]) -> None:
        work()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
