"""A line to the server: a thread with a connection, through which calls go as they come.

What has queued up while the line was busy is sent together and answered together; enqueues among it become one call.
A single enqueue that finds the line at rest is sent by its caller, and the thread reads the answer.
A call whose answer is lost is sent again: every script may be repeated. A caller that is cancelled does not disturb
the line, which reads every answer to its end.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from redis import exceptions

from drumline.clock import SystemClock
from drumline.errors import StoreError
from drumline.failpoint import failpoint
from drumline.stores.redis.address import Wire
from drumline.stores.redis.calls import Call
from drumline.stores.redis.confirm import CONFIRMATIONS, find_doubt, refuse
from drumline.stores.redis.connect import AWAY, SCHEMA, Server, read_answers, translate
from drumline.stores.redis.pack import pack_groups
from drumline.stores.redis.scripts import SCRIPTS
from drumline.stores.replies import Asked, LoopReply, Reply, deliver

__all__ = ["Line"]

# How long to wait before the next try while the server is away, in seconds.
_FIRST_WAIT = 0.02
_LONGEST_WAIT = 0.5
_MOST_TOGETHER = 256
# Of jobs in enqueues that become one call.
_MOST_JOBS = 1_000

# In bytes: what an idle connection takes without making the caller wait.
_LARGEST_AHEAD = 16_384

_MIGRATE = "migrate"


class _Sent(Asked):
    """One call on its way."""

    __slots__ = ("call", "is_sent")

    def __init__(self, call: Call, reply: Reply) -> None:
        super().__init__(reply)
        self.call = call
        # Whether its caller has sent it.
        self.is_sent = False


class Line:
    """A thread with a connection, started when there is work."""

    def __init__(self, server: Server, name: str, patience: float) -> None:
        self._server = server
        self._name = name
        # For how long calls are tried while the server is away, in seconds.
        self._patience = patience
        self._timer = SystemClock()
        self._begin()

    def _begin(self) -> None:
        self._condition = threading.Condition()
        self._queue: deque[_Sent] = deque()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._wire: Wire | None = None
        # Whether the thread waits for calls, and those before came one by one.
        self._is_quiet = False

    def submit(self, call: Call) -> asyncio.Future[Any]:
        """Make the call; its answer comes to this event loop."""
        reply = LoopReply()
        self._put(_Sent(call, reply))
        return reply.future

    def call(self, call: Call) -> Any:
        """Make the call, and block this thread until it is answered."""
        reply: Future[Any] = Future()
        self._put(_Sent(call, reply))
        return reply.result()

    def post(self, call: Call) -> None:
        """Make the call, and do not wait for its answer."""
        self._put(_Sent(call, Future()))

    def close(self) -> None:
        """Do what is queued, then give back thread and connection."""
        with self._condition:
            thread = self._thread
            self._is_closing = thread is not None
            self._condition.notify_all()
        if thread is not None:
            thread.join()

    def forget(self) -> None:
        """In a child process: thread, queue, locks and connection are the parent's."""
        self._begin()

    def _put(self, sent: _Sent) -> None:
        with self._condition:
            self._queue.append(sent)
            if self._is_quiet:
                # Whoever comes now finds a queue.
                self._is_quiet = False
                self._send_ahead(sent)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
            self._condition.notify()

    def _send_ahead(self, sent: _Sent) -> None:
        """Send an enqueue in its caller's thread, which need not wait for the other one."""
        if not 0 < len(sent.call.group) <= _LARGEST_AHEAD or self._wire is None or self._server.confirm != "server":
            return
        try:
            self._wire.send_packed_command(self._wire.pack_commands([self._command([sent])]))
        except Exception:  # noqa: BLE001 - the thread sends it, and tells the error if it lasts
            self._disconnect()
        else:
            sent.is_sent = True

    def _work(self) -> None:
        sent: list[_Sent] = []
        while sent := self._take(was_alone=len(sent) == 1):
            self._serve(sent)
            failpoint("store.committed")
            deliver(sent)

    def _take(self, *, was_alone: bool) -> list[_Sent]:
        """What has queued up; nothing when the thread shall end."""
        with self._condition:
            while not self._queue:
                if self._is_closing:
                    self._disconnect()
                    self._thread, self._is_closing = None, False
                    return []
                self._is_quiet = was_alone
                self._condition.wait()
            self._is_quiet = False
            if self._queue[0].is_sent:
                return [self._queue.popleft()]
            return [self._queue.popleft() for _ in range(min(len(self._queue), _MOST_TOGETHER))]

    def _serve(self, sent: Sequence[_Sent]) -> None:
        """Make the calls, again and again while the server is away and there is patience."""
        end = self._timer.monotonic() + self._patience
        wait = _FIRST_WAIT
        groups = _join_enqueues(sent)
        while groups:
            try:
                failure, groups = self._exchange(groups)
            except AWAY as error:
                failure = error
                self._disconnect()
            except Exception as error:  # noqa: BLE001 - given to the callers: nobody else would answer them
                self._disconnect()
                return _fail(groups, error, self._server.shown)
            if not groups:
                return None
            if isinstance(failure, exceptions.AuthenticationError) or self._timer.monotonic() > end:
                return _fail(groups, failure, self._server.shown)
            self._pause(wait)
            wait = min(wait * 2, _LONGEST_WAIT)
        return None

    def _exchange(self, groups: list[list[_Sent]]) -> tuple[Exception, list[list[_Sent]]]:
        """Send the calls and read their answers; gives those that have to be sent again, and why."""
        migrates = any(group[0].call.script == _MIGRATE for group in groups)
        wire = self._connected(will_migrate=migrates)
        confirmation = self._confirmation(groups)
        self._send(wire, groups, confirmation)
        failpoint("store.before_commit")
        again: list[list[_Sent]] = []
        failure: Exception = exceptions.ConnectionError("no answer")
        for place, group in enumerate(groups):
            try:
                _answer(group, wire.read_response())
            except exceptions.NoScriptError as error:
                failure = error
                again.append(group)
            except AWAY as error:
                failure = error
                again.append(group)
                if not isinstance(error, exceptions.ResponseError):
                    # Nothing more comes: what was not answered may have been done, and is asked for again.
                    again += groups[place + 1 :]
                    break
            except exceptions.ResponseError as error:
                _fail([group], error, self._server.shown)
        if confirmation and not again:
            self._confirm(wire, groups)
        elif confirmation:
            # What was answered is not confirmed, and is asked for again behind the rest.
            again += [group for group in groups if group[0].call.size and group not in again and not group[0].error]
        if again:
            # A new connection goes to whoever has the keys now, and brings the scripts.
            self._disconnect()
        if migrates:
            self._see_migrated(groups)
        return failure, again

    def _send(self, wire: Wire, groups: Sequence[Sequence[_Sent]], confirmation: Sequence[tuple[Any, ...]]) -> None:
        if groups[0][0].is_sent:
            # Alone, and only once: if it has to be repeated, it is sent from here.
            groups[0][0].is_sent = False
            return
        wire.send_packed_command(wire.pack_commands([*(self._command(group) for group in groups), *confirmation]))

    def _confirmation(self, groups: Sequence[Sequence[_Sent]]) -> list[tuple[bytes | str | int, ...]]:
        """What to send behind enqueues that count only once they are confirmed."""
        command = CONFIRMATIONS.get(self._server.confirm)
        if command is None or not any(group[0].call.size for group in groups):
            return []
        # It waits for what this connection wrote; an enqueue that is repeated finds its jobs, and writes nothing.
        return [("SET", self._server.base + b":confirming", 1), command]

    def _confirm(self, wire: Wire, groups: Sequence[Sequence[_Sent]]) -> None:
        confirm, shown = self._server.confirm, self._server.shown
        try:
            *_, confirmed = read_answers(wire, len(self._confirmation(groups)))
            doubt = find_doubt(confirm, confirmed, shown)
        except exceptions.ResponseError as error:
            doubt = refuse(confirm, error, shown)
        if doubt is not None:
            _fail([group for group in groups if group[0].call.size], doubt, shown)

    def _see_migrated(self, groups: Sequence[Sequence[_Sent]]) -> None:
        for group in groups:
            if group[0].call.script == _MIGRATE and group[0].answer is not None:
                try:
                    self._server.see_schema(*group[0].answer)
                except StoreError as error:
                    group[0].error = error

    def _command(self, group: Sequence[_Sent]) -> tuple[Any, ...]:
        call = group[0].call
        args = call.args
        if call.size:
            args = (pack_groups([one.call.group for one in group]),)
        elif call.script == _MIGRATE:
            args = (SCHEMA,)
        return ("EVALSHA", SCRIPTS[call.script].digest, 1, self._server.base, *args)

    def _connected(self, *, will_migrate: bool) -> Wire:
        if self._wire is None:
            wire = self._server.open()
            try:
                self._server.prepare(wire)
                self._server.check_schema(wire, will_migrate=will_migrate)
            except BaseException:
                wire.disconnect()
                raise
            self._wire = wire
        return self._wire

    def _disconnect(self) -> None:
        if self._wire is not None:
            self._wire.disconnect()
            self._wire = None

    def _pause(self, seconds: float) -> None:
        with self._condition:
            if not self._is_closing:
                self._condition.wait(seconds)


def _join_enqueues(sent: Sequence[_Sent]) -> list[list[_Sent]]:
    """The calls, each alone, but enqueues that follow each other together."""
    groups: list[list[_Sent]] = []
    size = 0
    for one in sent:
        if one.call.size and groups and groups[-1][0].call.size and size + one.call.size <= _MOST_JOBS:
            groups[-1].append(one)
            size += one.call.size
        else:
            groups.append([one])
            size = one.call.size
    return groups


def _answer(group: Sequence[_Sent], answer: Any) -> None:
    if group[0].call.size:
        for one, its in zip(group, answer, strict=True):
            one.answer = its
    else:
        group[0].answer = answer


def _fail(groups: Sequence[Sequence[_Sent]], error: Exception, shown: str) -> None:
    for group in groups:
        for one in group:
            one.error = translate(error, shown)
            one.error.__cause__ = error if one.error is not error else None
