"""The context of a running job: what a task may know of the job it runs for, and say about it.

`current()` gives it in any helper, thread or coroutine below the task. Outside a job it is detached: its log goes to
`logging`, its progress does nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Protocol

import msgspec

from drumline.errors import BadOption
from drumline.model.job import Progress, Source

__all__ = ["LEVELS", "Context", "Sink", "active", "current"]

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}

logger = logging.getLogger("drumline.task")


class Sink(Protocol):
    """Where a context's words go, and where its flags come from. Called from any thread."""

    stopping: bool
    cancelled: bool
    held: bool

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None: ...

    def progress(self, progress: Progress) -> None: ...

    def user_error(self, message: str) -> None: ...


class _Detached:
    """The sink of a context outside any job."""

    stopping = False
    cancelled = False
    held = True

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        logger.log(LEVELS[level], "%s%s", message, "".join(f" {name}={value!r}" for name, value in fields.items()))

    def progress(self, progress: Progress) -> None:
        """Nobody watches."""

    def user_error(self, message: str) -> None:
        """Nobody is to be told."""


class Context(msgspec.Struct, kw_only=True, eq=False):
    """What a task knows of its job."""

    job_id: str = ""
    task: str = ""
    queue: str = ""
    attempt: int = 0
    max_attempts: int = 0
    fence: int = 0
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = {}
    source: Source = Source.MANUAL
    # The schedule that made the job, and the instant this run is for, in the schedule's zone.
    schedule: str | None = None
    tick: datetime | None = None
    # What the app's lifespan yielded in this process.
    state: Any = None
    # Not for tasks.
    sink: Sink = _Detached()

    @property
    def stopping(self) -> bool:
        """This replica is being stopped: long work should come to an end."""
        return self.sink.stopping

    @property
    def cancelled(self) -> bool:
        """Somebody asked for this job to be cancelled."""
        return self.sink.cancelled

    @property
    def held(self) -> bool:
        """Whether this replica still holds the job; if not, its result will be refused."""
        return self.sink.held

    def log(self, message: str, level: str = "info", **fields: Any) -> None:
        """Add a line to the job's log, visible while the task runs."""
        if level not in LEVELS:
            raise BadOption("level", f"one of {', '.join(LEVELS)}", level, "ctx.log")
        self.sink.log(level, message, fields)

    async def progress(self, value: float, message: str = "") -> None:
        """Say how far the job is, 0 to 1."""
        self.sink.progress(Progress(value, message))

    def progress_sync(self, value: float, message: str = "") -> None:
        """The same, from code that is not async."""
        self.sink.progress(Progress(value, message))

    def user_error(self, message: str) -> None:
        """Leave a text for the person for whom the job runs; the raw error is never shown to them."""
        self.sink.user_error(message)


# Set by the engine around each run of a task.
active: ContextVar[Context] = ContextVar("drumline_context")
_DETACHED = Context()


def current() -> Context:
    """The context of the job that runs here, or a detached one."""
    return active.get(_DETACHED)
