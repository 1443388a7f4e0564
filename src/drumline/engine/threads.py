"""A pool of daemon threads: a task that never returns must not keep the process from leaving."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any

__all__ = ["DaemonPool"]

# A future refuses the first, and an event loop takes the others for its own.
_NOT_FOR_A_FUTURE = (StopIteration, asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)


class DaemonPool:
    """Runs plain functions in at most `size` threads, each in a copy of its caller's context variables."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._work: SimpleQueue[_Call | None] = SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._lock = threading.Lock()

    async def run(self, function: Callable[[], Any]) -> Any:
        """Call the function in a thread and give its answer, or raise its error."""
        call = _Call(function, copy_context(), asyncio.get_running_loop())
        with self._lock:
            if self._idle <= 0 and self._threads < self._size:
                threading.Thread(target=self._serve, name=f"drumline-task-{self._threads + 1}", daemon=True).start()
                # Only now: where the system has no thread to give, the pool has not got one.
                self._threads += 1
            else:
                self._idle -= 1
        self._work.put(call)
        return await call.answer

    def resize(self, size: int) -> None:
        """Keep at most so many threads from now on: idle ones beyond it go now, busy ones when they are through."""
        with self._lock:
            self._size = size
            leaving = max(min(self._idle, self._threads - size), 0)
            self._threads -= leaving
            self._idle -= leaving
        for _ in range(leaving):
            self._work.put(None)

    def close(self) -> None:
        """Let idle threads go; busy ones are left to themselves."""
        for _ in range(self._threads):
            self._work.put(None)

    def _serve(self) -> None:
        while (call := self._work.get()) is not None:
            call.perform()
            # An idle thread keeps nothing of the last task alive.
            del call
            with self._lock:
                # Unless calls already wait for it, from before there were too many.
                if self._threads > self._size and self._idle >= 0:
                    self._threads -= 1
                    return
                self._idle += 1


class _Call:
    """One function on its way through the pool."""

    def __init__(self, function: Callable[[], Any], context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self.answer: asyncio.Future[Any] = loop.create_future()
        self._function = function
        self._context = context
        self._loop = loop

    def perform(self) -> None:
        try:
            value = self._context.run(self._function)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the job and not to the thread
            self._tell(self._fail, error)
        else:
            self._tell(self._succeed, value)

    def _tell(self, settle: Callable[[Any], None], what: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(settle, what)
        except RuntimeError:
            # The loop has gone: the worker did not wait for this thread, and has given its job back.
            return

    def _succeed(self, value: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(value)

    def _fail(self, error: BaseException) -> None:
        if self.answer.done():
            return
        if isinstance(error, _NOT_FOR_A_FUTURE):
            wrapped = RuntimeError(f"the task raised {type(error).__name__}: {error}")
            wrapped.__cause__ = error
            error = wrapped
        self.answer.set_exception(error)
