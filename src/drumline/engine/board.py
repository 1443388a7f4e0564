"""The board: what this process last saw of the fleet's schedules, and of the store's clock. Reading it is no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta

from drumline.clock import Clock
from drumline.model.schedule import Schedule, ScheduleStatus

__all__ = ["Board"]

# After somebody has read it, so many seconds pass until it is kept fresh no more.
WANTED_FOR = 5.0


class Board:
    """Written by the ticker and by verbs on schedules; read by whoever wants to know."""

    def __init__(self, clock: Clock, declared: Mapping[str, Schedule] | None = None) -> None:
        # By name: what the code declares, and what the store was last seen to hold.
        self.declared: Mapping[str, Schedule] = {} if declared is None else declared
        self.statuses: dict[str, ScheduleStatus] = {}
        self._clock = clock
        # What the store's clock showed, and when that answer came.
        self._shown: tuple[datetime, float] | None = None
        self._read_at = float("-inf")
        self._keepers: tuple[Callable[[], object], ...] = ()

    @property
    def is_wanted(self) -> bool:
        """Whether somebody reads it, so that it should be no older than a second."""
        return self._clock.monotonic() - self._read_at < WANTED_FOR

    def want(self) -> None:
        """Somebody reads it, from any thread: let it be kept fresh for a while. What is read now is as it is."""
        was_wanted = self.is_wanted
        self._read_at = self._clock.monotonic()
        if not was_wanted:
            for keep_fresh in self._keepers:
                keep_fresh()

    @contextmanager
    def kept_by(self, keep_fresh: Callable[[], object]) -> Iterator[None]:
        """Meanwhile call this, from any thread, when somebody begins to read."""
        self._keepers += (keep_fresh,)
        try:
            yield
        finally:
            self._keepers = tuple(other for other in self._keepers if other is not keep_fresh)

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
