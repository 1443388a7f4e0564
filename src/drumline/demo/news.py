"""What the stage has heard and read: the last events, the throughput, the jobs that are shown."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from drumline.clock import Clock
from drumline.events import Event, JobClosed, JobStarted, ReplicaStarted, TickSkipped
from drumline.model.job import Job
from drumline.model.query import Counts
from drumline.schedules import ScheduleView

__all__ = ["News", "Scene"]

SPAN = 5.0


@dataclass(frozen=True, slots=True)
class Scene:
    """One look at the store."""

    elapsed: float
    per_second: float
    counts: Counts
    running: list[Job]
    dead: list[Job]
    schedules: list[ScheduleView]
    events: list[tuple[str, str]]


class News:
    """Hears the events of this process: the newest few, and how many jobs were done in the last seconds."""

    def __init__(self, clock: Clock) -> None:
        # Set when the worker is at work, and the fleet knows of it.
        self.begun = asyncio.Event()
        self._clock = clock
        self._started = clock.monotonic()
        self._done: deque[float] = deque()
        # A word for its colour, and a line.
        self._lines: deque[tuple[str, str]] = deque(maxlen=8)

    @property
    def elapsed(self) -> float:
        return self._clock.monotonic() - self._started

    def hear(self, event: Event) -> None:
        match event:
            case ReplicaStarted():
                self.begun.set()
            case JobStarted() if event.attempt > 1:
                self._lines.append(("retry", f"{event.task}: attempt {event.attempt} begins"))
            case TickSkipped():
                self._lines.append(("release", f"{event.schedule}: tick {event.instant:%H:%M:%S} skipped"))
            case JobClosed():
                if event.outcome == "done":
                    self._done.append(self.elapsed)
                self._lines.append((event.outcome, _line(event)))

    def look(self, counts: Counts, running: list[Job], dead: list[Job], schedules: list[ScheduleView]) -> Scene:
        now = self.elapsed
        while self._done and self._done[0] < now - SPAN:
            self._done.popleft()
        per_second = len(self._done) / max(min(now, SPAN), 0.1)
        return Scene(now, per_second, counts, running, dead, schedules, list(self._lines))


def _line(event: JobClosed) -> str:
    ran = f"{event.ran.total_seconds():.2f} s"
    match event.outcome:
        case "done":
            return f"{event.task}: done in {ran}"
        case "retry":
            return f"{event.task}: attempt {event.attempt} {event.ended}, tried again later ({event.error})"
        case "dead":
            return f"{event.task}: dead after attempt {event.attempt} ({event.error})"
        case _:
            return f"{event.task}: {event.ended}"
