"""series: what was folded, and what was appended since."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from drumline.model.instant import from_millis
from drumline.model.query import HISTOGRAM_MILLIS, SeriesPoint
from drumline.stores.files import read_statements
from drumline.stores.rows import ceil_millis
from drumline.stores.statements import Operation, Row, Statement

__all__ = ["series"]

_SQL = read_statements(__package__, "series.sql")


def series(start: datetime, end: datetime) -> Operation[list[SeriesPoint]]:
    which = {"start": ceil_millis(start), "end": ceil_millis(end), "last": len(HISTOGRAM_MILLIS)}
    points: dict[Row, list[Any]] = {}
    for name in ("read_series", "read_recent_series"):
        for row in (yield Statement(_SQL[name], which)):
            known = points.get(row[:3])
            points[row[:3]] = (
                list(row[3:]) if known is None else [_add(*pair) for pair in zip(known, row[3:], strict=True)]
            )
    return [_point(place, points[place]) for place in sorted(points)]


def _add(one: Any, other: Any) -> Any:
    """The sum of two numbers, or of two histograms."""
    return [a + b for a, b in zip(one, other, strict=True)] if isinstance(one, list) else one + other


def _point(place: Row, numbers: list[Any]) -> SeriesPoint:
    (minute, queue, task), (done, failed, dead, cancelled, wait, ran) = place, numbers
    return SeriesPoint(
        minute=from_millis(minute),
        queue=queue,
        task=task,
        done=done,
        failed=failed,
        dead=dead,
        cancelled=cancelled,
        wait=tuple(wait),
        run=tuple(ran),
    )
