"""Charts, twice: as numbers for uPlot, and as shapes for a browser that runs no scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from drumline.web.dashboard.wording import span

__all__ = ["Bar", "Plot", "draw_bars", "draw_lines", "draw_spark"]

# The room of a chart and of a sparkline, in the units of their own pictures.
WIDTH, HEIGHT = 600, 160
SPARK_WIDTH, SPARK_HEIGHT = 220, 28


class Bar(msgspec.Struct, frozen=True):
    """One step of a bar chart."""

    x: float
    width: float
    done_y: float
    done_height: float
    failed_y: float
    failed_height: float


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """One chart. `data`: seconds, then one list of numbers for each line, as JSON."""

    title: str
    data: str
    is_empty: bool
    top: str
    begin: str
    bars: list[Bar] = []
    # The points of polylines.
    low: str = ""
    high: str = ""


def draw_bars(at: Sequence[datetime], done: Sequence[int], failed: Sequence[int], title: str) -> Plot:
    """Done below, failed on top of it."""
    most = max((good + bad for good, bad in zip(done, failed, strict=True)), default=0)
    step = WIDTH / max(len(at), 1)
    scale = (HEIGHT - 8) / most if most else 0
    bars = [
        Bar(
            x=round(place * step, 2),
            width=round(step * 0.8, 2),
            done_y=round(HEIGHT - good * scale, 2),
            done_height=round(good * scale, 2),
            failed_y=round(HEIGHT - (good + bad) * scale, 2),
            failed_height=round(bad * scale, 2),
        )
        for place, (good, bad) in enumerate(zip(done, failed, strict=True))
    ]
    return Plot(
        title=title,
        data=_data(at, done, failed),
        is_empty=not most,
        top=f"{most:,}",
        begin=_begin(at),
        bars=bars,
    )


def draw_lines(at: Sequence[datetime], low: Sequence[float | None], high: Sequence[float | None], title: str) -> Plot:
    """Two lines of milliseconds, the lower in front."""
    most = max((value for value in high if value is not None), default=0.0)
    return Plot(
        title=title,
        data=_data(at, low, high),
        is_empty=not any(value is not None for value in high),
        top=span(timedelta(milliseconds=most)),
        begin=_begin(at),
        low=_points([value or 0 for value in low], most, WIDTH, HEIGHT),
        high=_points([value or 0 for value in high], most, WIDTH, HEIGHT),
    )


def draw_spark(values: Sequence[float]) -> str:
    """The points of a sparkline's polyline."""
    return _points(values, max(values, default=0), SPARK_WIDTH, SPARK_HEIGHT)


def _points(values: Sequence[float], most: float, width: int, height: int) -> str:
    scale = (height - 6) / most if most else 0
    step = width / max(len(values) - 1, 1)
    return " ".join(f"{place * step:.1f},{height - 2 - value * scale:.1f}" for place, value in enumerate(values))


def _data(at: Sequence[datetime], *lines: Sequence[float | None]) -> str:
    rounded = [[None if value is None else round(value, 1) for value in line] for line in lines]
    return json.dumps([[int(instant.timestamp()) for instant in at], *rounded], separators=(",", ":"))


def _begin(at: Sequence[datetime]) -> str:
    return f"{at[0]:%H:%M}" if at else ""
