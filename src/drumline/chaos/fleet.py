"""The fleet of a run: real worker processes, each in a place of its own, which is taken again when its worker ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drumline.chaos.check import Kind, Violation
from drumline.chaos.worker import OUT_OF_REACH
from drumline.clock import Clock

__all__ = ["Fleet", "Place"]

# So long a worker takes to begin, on a machine that has other things to do.
_YOUNG = 2.5
# No clock is wrong.
_TRUE: Mapping[int, float] = {}


@dataclass(slots=True)
class Place:
    """One worker's place, and what is being done to it."""

    number: int
    process: subprocess.Popen[bytes]
    started_at: float
    is_frozen: bool = False
    # Its connections are being disturbed.
    is_cut_off: bool = False
    # Asked to end, by which signal.
    asked: signal.Signals | None = None

    @property
    def is_up(self) -> bool:
        return self.process.poll() is None and self.asked is None

    @property
    def is_well(self) -> bool:
        return self.is_up and not self.is_frozen and not self.is_cut_off

    def send(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)


@dataclass(slots=True)
class Fleet:
    """Worker processes, started again as they end."""

    folder: Path
    # The variables of the worker in a place, whose clock is wrong by so many seconds.
    environment: Callable[[int, float], Mapping[str, str]]
    clock: Clock
    module: str = "drumline.chaos.worker"
    places: dict[int, Place] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)

    def start(self, number: int, skew: float = 0.0) -> None:
        """Start a worker in this place."""
        with (self.folder / "workers.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - this very Python, and a module of ours
                [sys.executable, "-m", self.module],
                cwd=self.folder,
                env={**_inherited(), **self.environment(number, skew)},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # Ctrl-C is for the run, which ends the fleet in its own order.
                process_group=0,
            )
        self.places[number] = Place(number, process, self.clock.monotonic())

    def pick(self, number: int) -> Place | None:
        """The place to disturb: this one or the next that can be; None while too few others are well."""
        now = self.clock.monotonic()
        well = [place for place in self.places.values() if place.is_well and now - place.started_at > _YOUNG]
        numbers = [*range(number, len(self.places) + 1), *range(1, number)]
        for place in (self.places[other] for other in numbers):
            if place.is_well and any(other is not place for other in well):
                return place
        return None

    def ask(self, place: Place, number: signal.Signals) -> None:
        """End the worker by this signal."""
        place.asked = number
        place.send(number)
        if place.is_frozen and number is not signal.SIGKILL:
            place.send(signal.SIGCONT)

    def replace_ended(self, skews: Mapping[int, float] = _TRUE) -> None:
        """Start another worker where one has ended, with the clock of that place; a bad end is remembered."""
        for place in list(self.places.values()):
            if place.process.poll() is not None:
                self._judge(place)
                self.start(place.number, skews.get(place.number, 0.0))

    def stop(self, patience: float) -> None:
        """End all workers in good order, within so many seconds."""
        for place in self.places.values():
            self.ask(place, signal.SIGTERM)
        end = self.clock.monotonic() + patience
        for place in self.places.values():
            try:
                place.process.wait(max(end - self.clock.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                words = f"it has not stopped {patience:g} s after SIGTERM"
                self.violations.append(Violation(Kind.EXIT, f"worker {place.number}", words))
            else:
                self._judge(place)
        self.kill()

    def kill(self) -> None:
        """End all workers at once."""
        for place in self.places.values():
            if place.process.poll() is None:
                place.process.kill()
            place.process.wait()
            if place.process.stdin is not None:
                place.process.stdin.close()

    def _judge(self, place: Place) -> None:
        code = place.process.returncode
        if place.process.stdin is not None:
            place.process.stdin.close()
        # A signal may come before the worker listens for it, and the store be away when it wants to begin.
        expected = {None: (), signal.SIGKILL: (-signal.SIGKILL,)}.get(place.asked, (0, -signal.SIGTERM))
        if code not in (*expected, OUT_OF_REACH):
            asked = "by itself" if place.asked is None else f"after {place.asked.name}"
            words = f"it ended {asked} with code {code}; see workers.log"
            self.violations.append(Violation(Kind.EXIT, f"worker {place.number}", words))


def _inherited() -> dict[str, str]:
    """Without this program's own settings: the fleet's are given, each by its variable."""
    return {name: value for name, value in os.environ.items() if not name.startswith("DRUMLINE_")}
