"""A child process of a worker: runs one task after the other, as it is told through its connection.

It finds tasks by module and name, opens the app's lifespan once, and has an event loop of its own for async tasks; a
plain function runs in the main thread, outside that loop. When the worker is gone the child goes too, with all that
its tasks have started.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial
from multiprocessing.connection import Connection
from queue import SimpleQueue
from types import ModuleType
from typing import Any, Literal

from drumline.engine.border import (
    Answer,
    Began,
    Call,
    Flags,
    Leave,
    Main,
    Message,
    Progressed,
    Said,
    ToldUser,
    encode,
    pack,
    read_order,
)
from drumline.engine.context import context_of
from drumline.engine.failure import failure, raised
from drumline.engine.finding import MAIN, Address, FoundTask, find_task
from drumline.engine.lifespan import HeldLifespan, Lifespan
from drumline.engine.preparing import preparing
from drumline.engine.resuming import resume
from drumline.logs import set_up_logging
from drumline.model.context import active
from drumline.model.job import Progress
from drumline.model.result import cut, decode_result, encode_result
from drumline.policy.verdict import Misfit, Raised, Returned

__all__ = ["STAND_FIRM", "Child", "main"]

# Asked of the whole process group, by Ctrl-C or a supervisor: it is the worker that says when a child has to go.
STAND_FIRM = (signal.SIGINT, signal.SIGTERM)
# How often to look whether the worker is still there, where nothing else would tell.
LOOK_EVERY = 5.0
# The name by which the standard library's own child processes know the main program.
MAIN_HERE = "__mp_main__"


def main(handle: int, logs: tuple[str, Literal["text", "json"]] | None = None) -> None:
    """Serve the connection until told to leave. Called by the worker, as the whole program of this process.

    `logs`: the level and form in which the worker logs, where it was the command line that set that up.
    """
    if logs is not None:
        set_up_logging(*logs)
    for number in STAND_FIRM:
        # A handler and not SIG_IGN, which the programs that a task starts would inherit.
        signal.signal(number, _stand_firm)
    # The worker blocked them, for the time until here.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STAND_FIRM)
    Child(Connection(handle)).serve()


def _stand_firm(_number: int, _frame: object) -> None:
    """The worker will say when it is time."""


class Child:
    """One child process, seen from inside."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._work: SimpleQueue[tuple[Call, _Sink] | None] = SimpleQueue()
        self._runner = asyncio.Runner(loop_factory=_find_loop_factory())
        self._has_main = False
        self._tasks: dict[tuple[Address, str], FoundTask] = {}
        self._lifespans: dict[Lifespan, tuple[HeldLifespan, Any]] = {}

    def serve(self) -> None:
        """Run what is asked for, one after the other."""
        threading.Thread(target=self._listen, name="drumline-orders", daemon=True).start()
        with self._runner:
            while (work := self._work.get()) is not None:
                call, sink = work
                answer = self._perform(call, sink)
                with self._sending:
                    # Threads that the task has left behind say no more: their words would be the next job's.
                    sink.is_open = False
                    self._connection.send_bytes(encode(answer))
            for held, _ in self._lifespans.values():
                self._runner.run(held.close())

    def say(self, message: Message, sink: _Sink) -> None:
        """Tell the worker what the task of this sink says."""
        with self._sending:
            if sink.is_open:
                self._connection.send_bytes(encode(message))

    def _listen(self) -> None:
        """Take orders, also while a task runs; when there is nobody any more to give them, end it all."""
        worker = os.getppid()
        sink: _Sink | None = None
        try:
            while self._connection.poll(LOOK_EVERY) or os.getppid() == worker:
                if not self._connection.poll(0):
                    continue
                match read_order(self._connection.recv_bytes()):
                    case Call() as call:
                        sink = _Sink(self, call)
                        self._work.put((call, sink))
                    case Flags() as flags:
                        if sink is not None:
                            sink.learn(flags)
                    case Leave():
                        self._work.put(None)
        finally:
            os.killpg(os.getpgrp(), signal.SIGKILL)

    def _perform(self, call: Call, sink: _Sink) -> Answer:
        try:
            task = self._find(call)
            state = self._open(task.lifespan)
        except BaseException as error:  # noqa: BLE001 - the user's modules and lifespan may fail in any way
            return pack(Raised(failure(error)))
        definition = task.definition
        try:
            args, kwargs = definition.codec.decode(call.claim.args)
        except Exception as misfit:  # noqa: BLE001 - a model's own code may fail in any way on a shape it does not know
            return pack(Misfit(failure(misfit)))
        context = context_of(call.claim, sink, state)
        self.say(Began(), sink)
        given = (context,) if definition.takes_context else ()
        around = copy_context()
        around.run(active.set, context)
        around.run(resume, call.carried)
        try:
            value = around.run(self._call, partial(definition.function, *given, *args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - SystemExit in a task belongs to its job, and must not end the child
            return pack(raised(definition, error))
        return pack(Returned(*encode_result(value)))

    def _call(self, call: Callable[[], Any]) -> Any:
        value = call()
        if not inspect.iscoroutine(value):
            return value
        answer, error = self._runner.run(_settle(value), context=copy_context())
        if error is not None:
            raise error
        return answer

    def _find(self, call: Call) -> FoundTask:
        if call.main is not None and not self._has_main:
            _load_main(call.main)
            self._has_main = True
        address = Address(call.module, call.qualname)
        key = (address, call.claim.task)
        if key not in self._tasks:
            self._tasks[key] = find_task(*key)
        return self._tasks[key]

    def _open(self, lifespan: Lifespan | None) -> Any:
        """What the app's lifespan yields; it is opened when first a task of the app is run here."""
        if lifespan is None:
            return None
        if lifespan not in self._lifespans:
            self._lifespans[lifespan] = self._runner.run(_enter(lifespan))
        return self._lifespans[lifespan][1]


class _Sink:
    """Where the context of one call sends its words, and where its flags come from."""

    def __init__(self, child: Child, call: Call) -> None:
        self.stopping = False
        self.cancelled = call.claim.cancelling
        self.held = True
        self.is_open = True
        self._child = child
        self._fence = call.claim.fence
        self._pid = os.getpid()

    def learn(self, flags: Flags) -> None:
        if flags.fence == self._fence:
            self.stopping, self.cancelled, self.held = flags.stopping, flags.cancelled, flags.held

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        plain = {cut(name): decode_result(encode_result(value)[0]) for name, value in fields.items()}
        self._say(Said(level, cut(str(message)), plain))

    def progress(self, progress: Progress) -> None:
        self._say(Progressed(float(progress.value), cut(str(progress.message))))

    def user_error(self, message: str) -> None:
        self._say(ToldUser(cut(str(message))))

    def _say(self, message: Message) -> None:
        # A process that the task has forked shares the connection, and would break into the middle of a message.
        if os.getpid() == self._pid:
            self._child.say(message, self)


async def _settle(coroutine: Any) -> tuple[Any, BaseException | None]:
    """What the coroutine came to; SystemExit, raised inside an event loop, would tear that down."""
    try:
        return await coroutine, None
    except BaseException as error:  # noqa: BLE001 - raised again outside the loop
        return None, error


async def _enter(lifespan: Lifespan) -> tuple[HeldLifespan, Any]:
    held = HeldLifespan(lifespan)
    return held, await held.open()


def _load_main(main: Main) -> None:
    """Make the worker's main program this process's own, as the standard library does for its child processes."""
    module = ModuleType(MAIN_HERE)
    with preparing():
        if main.module is not None:
            content = runpy.run_module(main.module, run_name=MAIN_HERE, alter_sys=True)
        else:
            content = runpy.run_path(str(main.path), run_name=MAIN_HERE)
    vars(module).update(content)
    sys.modules[MAIN] = sys.modules[MAIN_HERE] = module


def _find_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Of uvloop, where it is installed: this process is ours alone."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop
