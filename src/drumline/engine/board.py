"""The board: what this process last saw of the fleet's schedules, and of the store's clock. Reading it is no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from drumline.clock import Clock
from drumline.model.schedule import Schedule, ScheduleStatus

__all__ = ["Board"]


class Board:
    """Written by the ticker and by verbs on schedules; read by whoever wants to know."""

    def __init__(self, clock: Clock, declared: Mapping[str, Schedule] | None = None) -> None:
        # By name: what the code declares, and what the store was last seen to hold.
        self.declared: Mapping[str, Schedule] = {} if declared is None else declared
        self.statuses: dict[str, ScheduleStatus] = {}
        self._clock = clock
        # What the store's clock showed, and when that answer came.
        self._shown: tuple[datetime, float] | None = None

    @property
    def now(self) -> datetime:
        """The store's present, as far as it can be told from here; never ahead of it by more than clocks drift."""
        if self._shown is None:
            return self._clock.now()
        shown, received = self._shown
        return shown + timedelta(seconds=self._clock.monotonic() - received)

    def learn_time(self, shown: datetime, received: float) -> None:
        """The store's clock showed this in an answer that came then. It has gone on since, so this lags a little."""
        self._shown = (shown, received)

    def see_all(self, statuses: Iterable[ScheduleStatus]) -> None:
        self.statuses = {status.schedule.name: status for status in statuses}

    def see(self, names: Iterable[str], statuses: Iterable[ScheduleStatus]) -> None:
        """Of these names, these are what the store holds; the rest are no more."""
        for name in names:
            self.statuses.pop(name, None)
        self.statuses.update((status.schedule.name, status) for status in statuses)

    def find(self, name: str) -> Schedule | None:
        """The schedule of that name, as the store holds it, or else as the code declares it."""
        status = self.statuses.get(name)
        return self.declared.get(name) if status is None else status.schedule
