"""A claim that stands by: it is sent ahead, and the server makes it in the moment in which there is work.

Before it goes a command that waits for the bell, which every step rings that leaves something to claim. What follows on
a connection waits for what is before it, so neither a hint nor a further call lies between a job and its claim.

Whatever disturbs that is settled by an ordinary call with the same token: it answers with what was taken, or sees to it
that nothing is.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any, NamedTuple

import hiredis

from drumline.stores.base import Op
from drumline.stores.redis.address import Wire, socket_of
from drumline.stores.redis.calls import Call
from drumline.stores.redis.connect import Server
from drumline.stores.redis.line import Line
from drumline.stores.redis.scripts import SCRIPTS

__all__ = ["Standby", "Standing"]

logger = logging.getLogger("drumline.redis")

# How many seconds later than promised an answer may come before it is taken for lost.
_PATIENCE = 3.0
_AT_ONCE = 65_536
# How a server, or what stands before it, says that it lets nobody wait; other errors pass.
_REFUSALS = ("NOPERM", "ERR ")
# It may have been made, or not.
_IN_DOUBT = object()


class Standing(NamedTuple):
    """A claim that waits: the call, the one that settles what has become of it, its token, and for how many seconds."""

    call: Call
    settle: Call
    token: str
    seconds: float


class Standby:
    """The connections on which claims wait, each for one of them."""

    def __init__(self, server: Server, line: Line) -> None:
        self._server = server
        # Through which it is settled what has become of a claim.
        self._line = line
        self._begin()

    def _begin(self) -> None:
        self._free: list[Wire] = []
        self._is_refused = False

    def claim(self, standing: Standing) -> Op[Any]:
        """The answer to the call, made when the bell rings or the time is over; None if it cannot be waited for."""

        def blocking() -> Any:
            wire = self._find_wire()
            answer = None if wire is None else self._wait(wire, standing)
            return self._line.call(standing.settle) if answer is _IN_DOUBT else answer

        async def asynchronous() -> Any:
            wire = self._free.pop() if self._free else await asyncio.to_thread(self._find_wire)
            try:
                answer = None if wire is None else await self._wait_on_loop(wire, standing)
            except asyncio.CancelledError:
                # Nobody is here any more to get what it would take.
                await asyncio.shield(self._line.submit(standing.settle))
                raise
            return await self._line.submit(standing.settle) if answer is _IN_DOUBT else answer

        return Op(blocking, asynchronous)

    def close(self) -> None:
        """Give back the connections."""
        while self._free:
            self._free.pop().disconnect()

    def forget(self) -> None:
        """In a child process: the connections are the parent's."""
        self._begin()

    def _find_wire(self) -> Wire | None:
        if self._is_refused:
            return None
        try:
            return self._free.pop() if self._free else self._server.open()
        except Exception:  # noqa: BLE001 - nothing was asked: whoever works meets the error itself
            return None

    async def _wait_on_loop(self, wire: Wire, standing: Standing) -> Any:
        """Wait without a thread, where the event loop can watch the connection."""
        answers = _Answers(socket_of(wire))
        if not answers.can_be_watched:
            return await asyncio.to_thread(self._wait, wire, standing)
        try:
            self._send(wire, standing)
            await answers.watch(standing.seconds + _PATIENCE)
            answer = self._judge(answers.found)
        except Exception as error:  # noqa: BLE001 - it is settled by a call that tells the error, if it lasts
            return self._doubt(wire, error)
        except BaseException:
            wire.disconnect()
            raise
        return self._keep(wire, answer)

    def _wait(self, wire: Wire, standing: Standing) -> Any:
        """The same in this thread."""
        answers = _Answers(socket_of(wire))
        try:
            self._send(wire, standing)
            answers.receive(standing.seconds + _PATIENCE)
            answer = self._judge(answers.found)
        except Exception as error:  # noqa: BLE001 - as above
            return self._doubt(wire, error)
        return self._keep(wire, answer)

    def _send(self, wire: Wire, standing: Standing) -> None:
        base, call = self._server.base, standing.call
        own_bell = base + b":bell:" + standing.token.encode()
        wait = ("BZPOPMIN", base + b":bell", own_bell, standing.seconds)
        claim = ("EVALSHA", SCRIPTS[call.script].digest, 1, base, *call.args)
        wire.send_packed_command(wire.pack_commands([wait, claim]))

    def _judge(self, answers: list[Any]) -> Any:
        rung, claimed = answers
        if isinstance(rung, hiredis.ReplyError) and str(rung).startswith(_REFUSALS):
            logger.info("%s: claims cannot stand by: %s", self._server.shown, rung)
            self._is_refused = True
        elif isinstance(rung, Exception):
            raise rung
        if isinstance(claimed, Exception):
            raise claimed
        return claimed

    def _keep(self, wire: Wire, answer: Any) -> Any:
        if self._is_refused:
            wire.disconnect()
        else:
            self._free.append(wire)
        return answer

    def _doubt(self, wire: Wire, error: Exception) -> object:
        logger.debug("%s: a claim that stood by was disturbed: %s", self._server.shown, error)
        wire.disconnect()
        return _IN_DOUBT


class _Answers:
    """What comes on a connection: the bell, and then the claim."""

    def __init__(self, source: socket.socket) -> None:
        self.found: list[Any] = []
        self._source = source
        self._reader = hiredis.Reader()

    @property
    def can_be_watched(self) -> bool:
        """Whether the event loop can tell when there is something: not of what has to be decrypted first."""
        if type(self._source) is not socket.socket:
            return False
        try:
            return not asyncio.get_running_loop().remove_reader(self._source)
        except NotImplementedError:
            return False

    async def watch(self, seconds: float) -> None:
        """Wait for both on this event loop."""
        loop = asyncio.get_running_loop()
        complete: asyncio.Future[None] = loop.create_future()

        def read() -> None:
            try:
                if self._read() and not complete.done():
                    complete.set_result(None)
            except Exception as error:  # noqa: BLE001 - told to the one who waits
                if not complete.done():
                    complete.set_exception(error)

        loop.add_reader(self._source, read)
        try:
            async with asyncio.timeout(seconds):
                await complete
        finally:
            loop.remove_reader(self._source)

    def receive(self, seconds: float) -> None:
        """Wait for both in this thread."""
        self._source.settimeout(seconds)
        while not self._read():
            pass

    def _read(self) -> bool:
        """Take what is there, and say whether that was all."""
        data = self._source.recv(_AT_ONCE)
        if not data:
            raise ConnectionError("the server has closed the connection")
        self._reader.feed(data)
        while (answer := self._reader.gets()) is not False:
            self.found.append(answer)
        return len(self.found) >= 2
