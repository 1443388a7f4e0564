"""How often somebody may act: a bucket of actions that fills again with time."""

from __future__ import annotations

from drumline.clock import Clock
from drumline.web.answers import Refusal

__all__ = ["Pace"]

PER_SECOND = 50.0
AT_ONCE = 200.0
_MOST_NAMES = 10_000


class Pace:
    """So many actions a second for each name, and a few seconds' worth at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # By name: what is left, and when that was counted.
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, name: str) -> None:
        """Count one action; 429 if there are too many."""
        now = self._clock.monotonic()
        left, counted = self._left.get(name, (AT_ONCE, now))
        left = min(AT_ONCE, left + (now - counted) * PER_SECOND)
        if left < 1:
            raise Refusal(429, "too many actions: slow down", headers={"Retry-After": "1"})
        if len(self._left) >= _MOST_NAMES:
            self._left.clear()
        self._left[name] = (left - 1, now)
