"""An execution: one claim being run here, with its times, flags and words; and all of them together."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any

from drumline.clock import Clock
from drumline.model.claim import Claim, ClaimRef, Note
from drumline.model.job import LogLine, Progress
from drumline.model.result import cut, decode_result, encode_result
from drumline.policy.options import Executor
from drumline.policy.task import TaskDefinition

__all__ = ["Execution", "Executions", "Reason"]


# The tasks of one batch begin and end in the same few milliseconds.
@lru_cache(maxsize=256)
def _later(instant: datetime, millis: int) -> datetime:
    return instant + timedelta(milliseconds=millis)


class Reason(StrEnum):
    """Why an execution was interrupted."""

    CANCEL = "cancel"
    LOST = "lost"
    STOP = "stop"
    TIMEOUT = "timeout"


class Execution:
    """One claim being run. Its words may come from any thread."""

    __slots__ = (
        "_clock",
        "_lines",
        "_numbers",
        "_on_words",
        "_progress",
        "_user_error",
        "cancelled",
        "claim",
        "deadline",
        "definition",
        "has_begun",
        "held",
        "kill",
        "reason",
        "received",
        "ref",
        "started",
        "stopping",
        "task",
        "thread",
    )

    def __init__(
        self,
        claim: Claim,
        definition: TaskDefinition,
        clock: Clock,
        received: float,
        on_words: Callable[[Execution], None],
    ) -> None:
        self.claim = claim
        self.ref = claim.ref
        self.definition = definition
        self.stopping = False
        self.cancelled = claim.cancelling
        self.held = True
        self.reason: Reason | None = None
        self.task: asyncio.Task[None] | None = None
        # Ends the child process in which the task runs, and the thread, where it has either.
        self.kill: Callable[[], None] | None = None
        self.thread: int | None = None
        self.started = received
        self.has_begun = False
        self.deadline: float | None = None
        self._clock = clock
        # The replica's monotonic time at which the claim arrived: the store's times are reckoned from there, so that
        # no replica's clock enters the record.
        self.received = received
        self._on_words = on_words
        self._numbers = itertools.count(1)
        self._lines: list[LogLine] = []
        self._progress: Progress | None = None
        self._user_error: str | None = None

    def begin(self) -> None:
        """The task is called now."""
        self.has_begun = True
        self.started = self._clock.monotonic()
        timeout = self.claim.options.timeout
        self.deadline = None if timeout is None else self.started + timeout.total_seconds()

    @property
    def started_at(self) -> datetime:
        return self.at(self.started)

    def at(self, monotonic: float) -> datetime:
        """A moment of this process, by the store's clock."""
        return _later(self.claim.claimed_at, int((monotonic - self.received) * 1000))

    def now(self) -> datetime:
        """The present, by the store's clock."""
        return self.at(self._clock.monotonic())

    def interrupt(self, reason: Reason) -> None:
        """Tell the task to stop; a coroutine is cancelled, a child killed, a thread can only look at its flags."""
        if self.reason is None:
            self.reason = reason
        if reason is Reason.LOST:
            self.held = False
        self.cancelled = self.cancelled or reason in (Reason.CANCEL, Reason.TIMEOUT)
        # One that has not begun looks for the reason itself: cancelled now, it would never get so far.
        if self.has_begun and self.task is not None and self.definition.executor is Executor.COROUTINE:
            # The word is for middleware, which sees no more of it than the error.
            self.task.cancel(self.reason.value)
        if self.kill is not None:
            self.kill()

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        # As a store can keep it: one line that it cannot write would hold up everything behind it.
        plain = {cut(name): decode_result(encode_result(value)[0]) for name, value in fields.items()}
        line = LogLine(next(self._numbers), self.now(), level, cut(str(message)), plain, self.claim.attempt)
        self._lines.append(line)
        self._on_words(self)

    def progress(self, progress: Progress) -> None:
        self._progress = Progress(float(progress.value), cut(str(progress.message)))
        self._on_words(self)

    def user_error(self, message: str) -> None:
        self._user_error = cut(str(message))
        self._on_words(self)

    def take_words(self) -> Note | None:
        """What was said since the last time."""
        # So many as there are now: others may add to them meanwhile.
        lines = self._lines[:]
        del self._lines[: len(lines)]
        progress, self._progress = self._progress, None
        user_error, self._user_error = self._user_error, None
        if not lines and progress is None and user_error is None:
            return None
        return Note(self.ref, progress, tuple(lines), user_error)


class Executions:
    """All claims held here. Changed on the event loop; the heartbeat's thread reads a copy."""

    def __init__(self) -> None:
        self._by_ref: dict[ClaimRef, Execution] = {}

    def __len__(self) -> int:
        return len(self._by_ref)

    def __iter__(self) -> Iterator[Execution]:
        return iter(list(self._by_ref.values()))

    def add(self, execution: Execution) -> None:
        self._by_ref[execution.ref] = execution

    def remove(self, execution: Execution) -> None:
        self._by_ref.pop(execution.ref, None)

    def get(self, ref: ClaimRef) -> Execution | None:
        return self._by_ref.get(ref)
