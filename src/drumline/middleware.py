"""Middleware: the program's own code around every enqueue and around every run. The first one added is outermost.

Around enqueue it is a generator, so that it serves blocking and async callers alike: it is given the new jobs, yields
them, changed or not, and is sent what became of them. Around a run it is a coroutine function on the worker's event
loop, whatever executor the task has: it is given the context and the rest of the run, which it awaits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from types import TracebackType
from typing import Any

import msgspec

from drumline.errors import BadOption
from drumline.model.context import Context
from drumline.model.job import Enqueued, NewJob

__all__ = ["AroundEnqueue", "AroundRun", "Enqueueing", "Run", "called_from", "carried", "wrap_run"]

Run = Callable[[], Awaitable[Any]]
AroundEnqueue = Callable[[list[NewJob]], Generator[list[NewJob], list[Enqueued], None]]
AroundRun = Callable[[Context, Run], Awaitable[Any]]

# Tells where the code that runs was called from, such as a route, for jobs that name no origin of their own.
called_from: ContextVar[Callable[[], str]] = ContextVar("drumline_called_from")
# What of a trace goes along into the child process in which the task is run: set by middleware around the run.
carried: ContextVar[Mapping[str, str]] = ContextVar("drumline_carried")


class Enqueueing:
    """One enqueue on its way through the middleware: `jobs` is what to enqueue, `answer` what came of it."""

    def __init__(self, jobs: list[NewJob], around: Sequence[AroundEnqueue]) -> None:
        self.jobs = _name_origin(jobs)
        self.answer: list[Enqueued] = []
        self._around = around
        self._open: list[Generator[list[NewJob], list[Enqueued], None]] = []

    def __enter__(self) -> Enqueueing:
        count = len(self.jobs)
        for middleware in self._around:
            layer = middleware(self.jobs)
            self.jobs = list(next(layer))
            self._open.append(layer)
            if len(self.jobs) != count:
                raise BadOption("jobs", f"as many as were given, {count}", len(self.jobs), "middleware around enqueue")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for layer in reversed(self._open):
            try:
                if error is None:
                    layer.send(self.answer)
                else:
                    layer.throw(error)
            except StopIteration:
                continue
            layer.close()


def _name_origin(jobs: list[NewJob]) -> list[NewJob]:
    tell = called_from.get(None)
    if tell is None:
        return jobs
    return [job if job.origin is not None else msgspec.structs.replace(job, origin=tell()) for job in jobs]


def wrap_run(around: Sequence[AroundRun], context: Context, run: Run) -> Run:
    """The run with all middleware around it."""
    for middleware in reversed(around):
        run = partial(middleware, context, run)
    return run
