"""The run's own ledger: a file to which every execution writes that it began and how it ended, whatever the store says.

Written by one call each to a file opened for appending, so that lines of many processes do not mix, and what a process
wrote before it was killed stands.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

import msgspec

from drumline.clock import Clock, SystemClock
from drumline.model.context import Context

__all__ = ["Ledger", "Line", "What", "read_lines"]


class What(StrEnum):
    """What an execution has to tell."""

    BEGAN = "began"
    RETURNED = "returned"
    RAISED = "raised"
    # Told to stop before its end: cancelled, or interrupted because its claim was lost.
    LEFT = "left"


class Line(msgspec.Struct, frozen=True):
    """One line: which execution, in which process, and when by the machine's monotonic clock, which all share."""

    what: What
    job: str
    fence: int
    attempt: int
    pid: int
    at: float


class Ledger:
    """Where the executions of one process write."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._clock = clock or SystemClock()

    def write(self, what: What, context: Context) -> None:
        line = Line(what, context.job_id, context.fence, context.attempt, os.getpid(), self._clock.monotonic())
        os.write(self._file, msgspec.json.encode(line) + b"\n")

    def close(self) -> None:
        os.close(self._file)


def read_lines(path: Path) -> list[Line]:
    """All lines, in the order in which they were written."""
    decoder = msgspec.json.Decoder(Line)
    with path.open("rb") as file:
        return [decoder.decode(line) for line in file]
