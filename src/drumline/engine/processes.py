"""Child processes: a pool in which what kills one child, or holds it up, harms one job and nothing else.

Each child has a connection of its own and shares nothing with the others, no queue and no lock; so it can be killed
at any moment. In the worker a thread speaks with it while it runs a job. Why: docs/decisions/0007-own-process-pool.md.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import msgspec

from drumline.engine.border import (
    Answer,
    Balked,
    Began,
    Call,
    Flags,
    Gave,
    Leave,
    Message,
    Progressed,
    Said,
    Threw,
    ToldUser,
    encode,
    read_message,
)
from drumline.engine.child import STAND_FIRM
from drumline.engine.childrun import Died
from drumline.engine.execution import Execution
from drumline.engine.finding import MAIN, find_main, locate
from drumline.engine.threads import DaemonPool
from drumline.logs import find_logging
from drumline.middleware import carried
from drumline.model.job import Progress
from drumline.policy.task import TaskDefinition

__all__ = ["ProcessPool", "count_cores"]

# How often the worker's side looks up from waiting for words: flags reach the child, and a silent death is noticed.
LOOK_EVERY = 0.25
# How long a child may take from its start to the call of its first task: imports, and the lifespan.
START_LIMIT = 60.0
# How long a child may take to close its lifespan.
GOODBYE = 5.0

_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; sys.argv[:] = {argv!r}; "
    "from drumline.engine.child import main; main({handle}, {logs!r})"
)


def count_cores() -> int:
    """How many children can really work at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ProcessPool:
    """Runs tasks in child processes, one in each at a time. Used on one event loop."""

    def __init__(self, definitions: Iterable[TaskDefinition], *, size: int, jobs_per_child: int) -> None:
        """BadOption for a task that a child could not find. `size`: the most that its user will run at once."""
        self.size = size
        self._addresses = {definition.name: locate(definition) for definition in definitions}
        self._jobs_per_child = jobs_per_child
        self._idle: list[_Child] = []
        self._children: set[_Child] = set()
        self._leaving: set[asyncio.Future[None]] = set()
        self._threads = DaemonPool(10_000)

    async def run(self, execution: Execution, began: Callable[[], None]) -> Answer | Died:
        """Have the execution's task run in a child. `began` is called, on the event loop, when the task is."""
        address = self._addresses[execution.definition.name]
        main = find_main() if address.module == MAIN else None
        call = encode(Call(execution.claim, address.module, address.qualname, main, dict(carried.get({}))))
        began = partial(_call_on, asyncio.get_running_loop(), began)
        # It may have been told to stop before, while middleware waited for something.
        while execution.reason is None:
            child = self._take()
            is_fresh = child.jobs == 0
            execution.kill = child.kill
            try:
                answer: Answer | Died = await self._threads.run(partial(child.perform, call, execution, began))
            except BaseException:
                # Nobody waits for the answer any more. The thread that speaks with the child clears it away.
                child.kill()
                self._children.discard(child)
                raise
            finally:
                execution.kill = None
            self._put_back(child)
            # A child that died while it was idle was not killed by this job: the next one, then.
            if not isinstance(answer, Died) or answer.has_begun or is_fresh:
                return answer
        return Died(-signal.SIGKILL, has_begun=False)

    def resize(self, size: int) -> None:
        """Keep at most so many children from now on: idle ones beyond it go now, busy ones when they are through."""
        self.size = size
        while len(self._idle) > size:
            self._let_go(self._idle.pop())

    async def close(self) -> None:
        """Let idle children close what they have open, and kill the rest. None is left."""
        idle, self._idle = self._idle, []
        for child in idle:
            self._let_go(child)
        for child in self._children.difference(idle):
            child.kill()
        if self._leaving:
            await asyncio.wait(self._leaving)
        self.shut()

    def shut(self) -> None:
        """Kill every child that is left, at once."""
        for child in self._children:
            child.kill()
        for child in self._children:
            child.reap()
        self._children.clear()
        self._idle.clear()
        self._threads.close()

    def _take(self) -> _Child:
        while self._idle:
            child = self._idle.pop()
            if child.is_usable():
                return child
            self._let_go(child)
        child = _Child()
        self._children.add(child)
        return child

    def _put_back(self, child: _Child) -> None:
        if child not in self._children:
            return
        if child.is_usable() and child.jobs < self._jobs_per_child and len(self._idle) < self.size:
            self._idle.append(child)
        else:
            self._let_go(child)

    def _let_go(self, child: _Child) -> None:
        """Have a child leave, in its own time; others can start meanwhile."""
        leaving = asyncio.ensure_future(self._threads.run(child.leave))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        leaving.add_done_callback(lambda _: self._children.discard(child))


class _Child:
    """One child process, seen from the worker. Its methods block; `kill` can be called from anywhere at any time."""

    def __init__(self) -> None:
        self.jobs = 0
        self._is_killed = False
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def perform(self, call: bytes, execution: Execution, began: Callable[[], None]) -> Answer | Died:
        """Have the child run the call, and hand on what its task says meanwhile."""
        self.jobs += 1
        process, connection = self._start()
        talk = _Talk(connection, execution, began)
        try:
            connection.send_bytes(call)
            while talk.answer is None and not talk.is_slow:
                if connection.poll(LOOK_EVERY):
                    talk.hear(read_message(connection.recv_bytes()))
                elif process.poll() is not None:
                    # What it has started lives on, and keeps the connection open.
                    break
                talk.tell()
        except (OSError, EOFError, msgspec.DecodeError):
            # It is gone, or something in it wrote where only we do. The rest is the same.
            pass
        return talk.answer or Died(self._bury(), talk.has_begun, START_LIMIT if talk.is_slow else None)

    def is_usable(self) -> bool:
        if self._is_killed or self._process is None or self._connection is None:
            return False
        # One that waits for work has nothing to say: what can be read now is the end.
        return self._process.poll() is None and not self._connection.poll(0)

    def kill(self) -> None:
        """End the child, and all that its tasks have started."""
        with self._lock:
            if self._is_killed:
                return
            self._is_killed = True
            if self._process is not None:
                # A zombie's group may not be there any more, or (on macOS) not be ours to kill.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)

    def reap(self) -> int:
        """Kill the child if it lives; its exit code."""
        # One that has ended by itself keeps the code it had: its group is killed before it is waited for.
        self.kill()
        # At once, unless the system itself holds it up; that must not hold up the worker.
        with suppress(subprocess.TimeoutExpired):
            return -signal.SIGKILL if self._process is None else self._process.wait(GOODBYE)
        return -signal.SIGKILL

    def leave(self) -> None:
        """Ask the child to go; one that takes too long is killed."""
        if self.is_usable() and self._process is not None and self._connection is not None:
            with suppress(OSError, subprocess.TimeoutExpired):
                self._connection.send_bytes(encode(Leave()))
                self._process.wait(GOODBYE)
        self._bury()

    def _bury(self) -> int:
        """Clear the child away; only for the thread that speaks with it."""
        code = self.reap()
        if self._connection is not None:
            self._connection.close()
        return code

    def _start(self) -> tuple[subprocess.Popen[bytes], Connection]:
        with self._lock:
            if self._process is None or self._connection is None:
                self._connection, theirs = Pipe()
                with theirs:
                    self._process = _spawn(theirs.fileno())
                if self._is_killed:
                    self._process.kill()
            return self._process, self._connection


class _Talk:
    """What is said between a worker and its child about one execution."""

    def __init__(self, connection: Connection, execution: Execution, began: Callable[[], None]) -> None:
        self.answer: Answer | None = None
        self.has_begun = False
        self._connection = connection
        self._execution = execution
        self._began = began
        # How often it was waited for in vain, until the task began.
        self._looks = 0
        self._told = self._flags()

    @property
    def is_slow(self) -> bool:
        return self._looks * LOOK_EVERY >= START_LIMIT

    def hear(self, message: Message) -> None:
        execution = self._execution
        match message:
            case Began():
                self.has_begun = True
                self._began()
            case Said():
                execution.log(message.level, message.message, message.fields)
            case Progressed():
                execution.progress(Progress(message.value, message.message))
            case ToldUser():
                execution.user_error(message.message)
            case Gave() | Threw() | Balked():
                self.answer = message

    def tell(self) -> None:
        """Pass on what has become known since the last time."""
        self._looks += not self.has_begun
        flags = self._flags()
        if flags != self._told:
            self._connection.send_bytes(encode(flags))
            self._told = flags

    def _flags(self) -> Flags:
        execution = self._execution
        return Flags(execution.claim.fence, execution.stopping, execution.cancelled, execution.held)


def _call_on(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    with suppress(RuntimeError):
        # Unless the event loop has gone, and with it all that would be told.
        loop.call_soon_threadsafe(function)


def _spawn(handle: int) -> subprocess.Popen[bytes]:
    """Start a child, in a process group of its own, with this end of a connection."""
    path, logs = [str(entry) for entry in sys.path], find_logging()
    program = _PROGRAM.format(path=path, argv=sys.argv, handle=handle, logs=None if logs is None else tuple(logs))
    flags = [*["-O"] * sys.flags.optimize, *(f"-W{option}" for option in sys.warnoptions)]
    # Until the child has said for itself that it stands firm. The mask is this thread's, and the child inherits it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STAND_FIRM)
    try:
        return subprocess.Popen(  # noqa: S603 - this interpreter, with a program that is written above
            [sys.executable, *flags, "-c", program], stdin=subprocess.DEVNULL, pass_fds=[handle], process_group=0
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
