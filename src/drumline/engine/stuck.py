"""Executions that do not end though their time is long over: where their code is, and how that is said."""

from __future__ import annotations

import logging
import sys
import traceback
from asyncio import Task
from collections.abc import Iterator
from types import FrameType
from typing import Any

from drumline.engine.execution import Execution

__all__ = ["complain", "find_stack"]

logger = logging.getLogger("drumline.engine")


def complain(execution: Execution) -> None:
    """Say that an execution is stuck, once, with all that helps to find the fault."""
    claim = execution.claim
    logger.error(
        "task %s, job %s: does not end though its time limit is long over; recorded as a timeout, its slot is stuck "
        "until it really ends. It is here:\n%s",
        claim.task,
        claim.id,
        find_stack(execution),
    )


def find_stack(execution: Execution) -> str:
    """Where the execution's code is now, outermost first."""
    if execution.thread is not None:
        # The only way to another thread's frame, and documented for just this.
        frame = sys._current_frames().get(execution.thread)  # noqa: SLF001
        return "".join(traceback.format_stack(frame)) if frame is not None else ""
    if execution.task is None:
        return ""
    frames = ((frame, frame.f_lineno) for frame in _suspended(execution.task))
    return "".join(traceback.StackSummary.extract(frames).format())


def _suspended(task: Task[Any]) -> Iterator[FrameType]:
    """The frames of a coroutine and of all that it waits for."""
    step: Any = task.get_coro()
    while step is not None:
        frame = getattr(step, "cr_frame", None) or getattr(step, "gi_frame", None)
        if frame is not None:
            yield frame
        step = getattr(step, "cr_await", None) or getattr(step, "gi_yieldfrom", None)
