"""The minutes of the series as people look at them: a number a minute, however many queues and tasks there are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

import msgspec

from drumline.model.query import HISTOGRAM_MILLIS, SeriesPoint

__all__ = ["Minute", "Minutes", "add_up", "merge", "quantile"]

_MINUTE = timedelta(minutes=1)
_NOTHING = (0,) * (len(HISTOGRAM_MILLIS) + 1)
# What was longer than the last bucket's end is told as this long.
_BEYOND = HISTOGRAM_MILLIS[-1]


class Minute(NamedTuple):
    """One step of a chart; it may be longer than a minute."""

    at: datetime
    done: int
    failed: int
    wait: tuple[int, ...]
    run: tuple[int, ...]


class Minutes(msgspec.Struct, frozen=True):
    """A stretch of time in equal steps, none left out."""

    steps: list[Minute]
    # How many minutes one of them is.
    width: int

    @property
    def done(self) -> list[int]:
        return [step.done for step in self.steps]

    @property
    def failed(self) -> list[int]:
        return [step.failed for step in self.steps]

    def waits(self, share: float) -> list[float | None]:
        """In each step, how many milliseconds this share of the attempts waited at most; None where there were none."""
        return [quantile(step.wait, share) for step in self.steps]

    def runs(self, share: float) -> list[float | None]:
        return [quantile(step.run, share) for step in self.steps]

    def busy(self) -> list[float]:
        """In each step, how many jobs ran at once, on average."""
        return [_total(step.run) / (self.width * 60_000) for step in self.steps]

    def wait(self, share: float) -> float | None:
        """The same of all steps together."""
        return quantile(merge(step.wait for step in self.steps), share)

    def run(self, share: float) -> float | None:
        return quantile(merge(step.run for step in self.steps), share)


def add_up(points: Iterable[SeriesPoint], start: datetime, end: datetime, width: int = 1) -> Minutes:
    """Steps of `width` minutes from `start` to `end`; one without a point has nothing in it."""
    length = width * _MINUTE
    places: dict[int, list[SeriesPoint]] = {}
    for point in points:
        places.setdefault((point.minute - start) // length, []).append(point)
    number = -((start - end) // length)
    return Minutes([_step(start + place * length, places.get(place, ())) for place in range(number)], width)


def quantile(histogram: Sequence[int], share: float) -> float | None:
    """Milliseconds below which this share lies, as if each bucket were evenly filled; None of an empty one."""
    total = sum(histogram)
    if not total:
        return None
    wanted = min(share, 1) * total
    reached = list(accumulate(histogram))
    place = bisect_left(reached, wanted, lo=next(place for place, number in enumerate(histogram) if number))
    low = HISTOGRAM_MILLIS[place - 1] if place else 0
    high = HISTOGRAM_MILLIS[place] if place < len(HISTOGRAM_MILLIS) else _BEYOND
    return low + (high - low) * (wanted - reached[place] + histogram[place]) / histogram[place]


def _total(histogram: Sequence[int]) -> float:
    """All of it together, in milliseconds, as if each stood in the middle of its bucket."""
    ends = (0, *HISTOGRAM_MILLIS, _BEYOND)
    return sum(number * (ends[place] + ends[place + 1]) / 2 for place, number in enumerate(histogram))


def _step(at: datetime, points: Sequence[SeriesPoint]) -> Minute:
    # A dead job's last attempt has failed too: `failed` counts attempts.
    done, failed = sum(point.done for point in points), sum(point.failed for point in points)
    return Minute(at, done, failed, merge(point.wait for point in points), merge(point.run for point in points))


def merge(histograms: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """One histogram of all of these."""
    return tuple(map(sum, zip(_NOTHING, *histograms, strict=True)))
