"""A job's log: which lines of a note are new, and where they stand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drumline.model.claim import Note
from drumline.model.instant import to_millis
from drumline.model.job import LogLine
from drumline.stores.base import KEPT_LINES
from drumline.stores.rows import json_text

__all__ = ["line_rows"]

# The number of the line that says that a log was cut: one that no task's own line has. It is shown as 0.
_CUT = -1


def line_rows(note: Note, place: int, numbers: Iterable[int]) -> list[dict[str, Any]]:
    """The rows of those lines that are new to a log of so many lines, which has these numbers of the same claim."""
    known = set(numbers)
    rows: list[dict[str, Any]] = []
    for line in note.lines:
        if line.number in known or place > KEPT_LINES:
            continue
        if place == KEPT_LINES:
            line = LogLine(_CUT, line.at, "warning", f"only the first {KEPT_LINES:,} lines are kept", {}, line.attempt)
        known.add(line.number)
        rows.append(_row(note, place, line))
        place += 1
    return rows


def _row(note: Note, place: int, line: LogLine) -> dict[str, Any]:
    return {
        "job": note.ref.id,
        "place": place,
        "fence": note.ref.fence,
        "number": line.number,
        "at": to_millis(line.at),
        "level": line.level,
        "message": line.message,
        "fields": json_text(line.fields) if line.fields else None,
        "attempt": line.attempt,
    }
