"""A day in quarters of an hour. Those that are over do not change, so they are read from the store once, and kept."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from drumline.model.options import PRIVATE
from drumline.policy.minutes import Minute, Minutes, add_up

if TYPE_CHECKING:
    from drumline.web.web import Web

__all__ = ["Quarters"]

WIDTH = 15
_QUARTER = timedelta(minutes=WIDTH)
_DAY = timedelta(days=1)
# A transaction that began in a quarter may commit a little after it.
_SETTLES_IN = timedelta(minutes=2)


class Quarters:
    """One for each process."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._kept: dict[datetime, Minute] = {}

    async def day(self, now: datetime) -> Minutes:
        """The last day, up to the end of the quarter that is under way."""
        end = now.replace(minute=now.minute - now.minute % WIDTH, second=0, microsecond=0) + _QUARTER
        start = end - _DAY
        self._kept = {at: quarter for at, quarter in self._kept.items() if at >= start}
        missing = next(at for at in _steps(start, end) if at not in self._kept)
        points = await self._web.glance.series(missing, end)
        shown = [point for point in points if not point.queue.startswith(PRIVATE)]
        read = {step.at: step for step in add_up(shown, missing, end, WIDTH).steps}
        self._kept |= {at: step for at, step in read.items() if at + _QUARTER + _SETTLES_IN < now}
        return Minutes([read.get(at) or self._kept[at] for at in _steps(start, end)], WIDTH)


def _steps(start: datetime, end: datetime) -> list[datetime]:
    return [start + place * _QUARTER for place in range((end - start) // _QUARTER)]
