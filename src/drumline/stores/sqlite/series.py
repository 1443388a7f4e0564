"""series: what the minutes came to."""

from __future__ import annotations

from datetime import datetime

import msgspec

from drumline.model.instant import from_millis
from drumline.model.query import SeriesPoint
from drumline.stores.files import read_statements
from drumline.stores.rows import ceil_millis
from drumline.stores.statements import Operation, Statement

__all__ = ["series"]

_SQL = read_statements(__package__, "series.sql")
_histogram = msgspec.json.Decoder(tuple[int, ...])


def series(start: datetime, end: datetime) -> Operation[list[SeriesPoint]]:
    rows = yield Statement(_SQL["read_series"], {"start": ceil_millis(start), "end": ceil_millis(end)})
    return [
        SeriesPoint(
            minute=from_millis(minute),
            queue=queue,
            task=task,
            done=done,
            failed=failed,
            dead=dead,
            cancelled=cancelled,
            wait=_histogram.decode(wait),
            run=_histogram.decode(ran),
        )
        for minute, queue, task, done, failed, dead, cancelled, wait, ran in rows
    ]
