"""Instants at a fixed distance: anchor + k × every, in whole milliseconds, so that no number of ticks drifts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Every"]


@dataclass(frozen=True, slots=True)
class Every:
    """All instants anchor + k × step, for every whole k. All numbers are milliseconds."""

    step: int
    anchor: int = 0

    def after(self, instant: int) -> int:
        """The first strictly after."""
        return self.anchor + ((instant - self.anchor) // self.step + 1) * self.step

    def count(self, after: int, until: int) -> int:
        """How many lie after `after` up to and including `until`."""
        return max((until - self.anchor) // self.step - (after - self.anchor) // self.step, 0)

    def between(self, after: int, until: int) -> Iterator[int]:
        """Those that `count` counts, in order."""
        return iter(range(self.after(after), until + 1, self.step))

    def bucket(self, instant: int) -> int:
        """The number of the step that the instant lies in, counted from the Unix epoch."""
        return instant // self.step
