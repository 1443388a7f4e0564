"""What a worker's process and its children log, and in which form: a line of text, or an object of JSON.

A line that is written inside a task names the job, whichever logger of the program writes it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from drumline.model.context import current
from drumline.model.view import instant_text

__all__ = ["Logging", "find_logging", "set_up_logging"]


class Logging(NamedTuple):
    """From which level on is logged, and in which form."""

    level: str
    form: Literal["text", "json"]


def set_up_logging(level: str, form: Literal["text", "json"]) -> None:
    """Log to standard error, with the id of the job that is being run on each line of it."""
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonLine() if form == "json" else _TextLine())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def find_logging() -> Logging | None:
    """What was set up here, so that a child process can do the same; None where the program sees to it itself."""
    root = logging.getLogger()
    for handler in root.handlers:
        if isinstance(handler.formatter, _JsonLine | _TextLine):
            form: Literal["text", "json"] = "json" if isinstance(handler.formatter, _JsonLine) else "text"
            return Logging(logging.getLevelName(root.level).lower(), form)
    return None


def _at(record: logging.LogRecord) -> str:
    return instant_text(datetime.fromtimestamp(record.created, UTC))


class _TextLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        job_id = current().job_id
        job = f"[job {job_id}] " if job_id else ""
        line = f"{_at(record)} {record.levelname:<8} {job}{record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _JsonLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **dict(_facts()),
            "error": self.formatException(record.exc_info) if record.exc_info else None,
        }
        return json.dumps({name: value for name, value in line.items() if value is not None})


def _facts() -> Iterator[tuple[str, str | int | None]]:
    """Which job, and which tick of which schedule, is being run here."""
    context = current()
    if context.job_id:
        yield "job", context.job_id
        yield "task", context.task
        yield "queue", context.queue
        yield "attempt", context.attempt
        yield "schedule", context.schedule
        yield "tick", None if context.tick is None else instant_text(context.tick)
