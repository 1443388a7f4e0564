"""What a worker's process logs, and in which form: a line of text, or an object of JSON."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Literal

from drumline.model.context import current
from drumline.model.view import instant_text

__all__ = ["set_up_logging"]


def set_up_logging(level: str, form: Literal["text", "json"]) -> None:
    """Log to standard error, with the id of the job that is being run on each line of it."""
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonLine() if form == "json" else _TextLine())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


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
            "job": current().job_id or None,
            "error": self.formatException(record.exc_info) if record.exc_info else None,
        }
        return json.dumps({name: value for name, value in line.items() if value is not None})
