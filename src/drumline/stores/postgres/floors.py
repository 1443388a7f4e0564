"""Where in each lane the last look has ended: what lies before was taken.

While an old snapshot is open in the database, the entries of ended jobs stay at the front of the index, and each look
from the beginning walks over all of them. So a process remembers, for each lane and rank, the last job that it took:
the floor. Once a look from the beginning is slow, the next ones ask only for bands, in the lane's order:

    rank      -5            0                  (none yet)
    taken     ██████│ band  ██████████│ band   │ band ...
                    floor             floor

A floor is a hint of this process; nothing of it is stored. Looks from the beginning go on, at least one a second, so
that a job that came late, with an older due time, is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from drumline.clock import Clock, SystemClock
from drumline.model.claim import ANY_QUEUE, Claim
from drumline.model.instant import to_millis
from drumline.model.options import PRIVATE

__all__ = ["Floors"]

# A look from the beginning that takes longer, in seconds, is slow; then bands are used for ten times as long.
_SLOW = 0.010
_TIMES = 10
_LONGEST = 0.9
# A process that has taken fewer jobs has left no entries behind that would be worth it.
_FEWEST = 5_000
_MOST_LANES = 1_000
_LOWEST, _HIGHEST = -1_000, 1_000
_START = (0, "00000000-0000-0000-0000-000000000000")

Lane = tuple[str, str]


class Floors:
    """The floors of one process, by lane and rank."""

    def __init__(self, timer: Clock | None = None) -> None:
        self._timer = timer or SystemClock()
        self._lanes: dict[Lane, dict[int, tuple[int, str]]] = {}
        self._taken = 0
        # Until when bands are used, by the queue that is asked for.
        self._until: dict[str, float] = {}

    def begin(self) -> float:
        """Before a look: the time, for `note`."""
        return self._timer.monotonic()

    def remaining(self, queue: str) -> float:
        """For how many seconds the queue is still looked at by bands."""
        return max(self._until.get(queue, 0) - self._timer.monotonic(), 0)

    def bands(self, queue: str, tasks: Iterable[str]) -> list[dict[str, Any]] | None:
        """The stretches that may hold something new; None for a look from the beginning."""
        if not self.remaining(queue):
            return None
        known = set(tasks)
        return [
            band
            for lane, floors in self._lanes.items()
            if lane[1] in known and (lane[0] == queue or (queue == ANY_QUEUE and not lane[0].startswith(PRIVATE)))
            for band in _bands(lane, floors)
        ]

    def note(self, queue: str, began: float, claims: Sequence[Claim], *, is_full: bool) -> None:
        """After a look: remember where it ended, and how long it took."""
        self._taken += len(claims)
        last = {(claim.queue, claim.task, claim.options.priority): claim for claim in claims}
        for (lane_queue, task, priority), claim in last.items():
            if len(self._lanes) > _MOST_LANES:
                self._lanes.clear()
            floors = self._lanes.setdefault((lane_queue, task), {})
            floors[-priority] = (to_millis(claim.due_at), claim.id)
        took = self._timer.monotonic() - began
        if is_full and took > _SLOW and self._taken >= _FEWEST:
            self._until[queue] = self._timer.monotonic() + min(_TIMES * took, _LONGEST)


def _bands(lane: Lane, floors: dict[int, tuple[int, str]]) -> Iterator[dict[str, Any]]:
    """Behind each floor, and the gaps between the ranks that have one, so that no rank is missed."""
    low = _LOWEST
    for rank in sorted(floors):
        if low < rank:
            yield _band(lane, low, _START, rank - 1)
        yield _band(lane, rank, floors[rank], rank)
        low = rank + 1
    yield _band(lane, low, _START, _HIGHEST)


def _band(lane: Lane, rank: int, place: tuple[int, str], top: int) -> dict[str, Any]:
    return {"queue": lane[0], "task": lane[1], "rank": rank, "due": place[0], "id": place[1], "top": top}
