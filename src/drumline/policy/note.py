"""What a change of the clocks did to one instant of a cron expression, in words."""

from __future__ import annotations

from itertools import takewhile

from drumline.policy.cron import Cron
from drumline.policy.zone import Stretch, show_wall, stretches

__all__ = ["note_change"]

# A day was once lived through twice, and none ever a third time.
_LONGEST_FOLD = 86_400


def note_change(cron: Cron, instant: int) -> str | None:
    """Where the clocks moved, skipped or doubled the instant (milliseconds); None where they did not."""
    second = instant // 1000
    near = stretches(cron.zone, second)
    here = next(near)
    wall = second + here.offset
    if second == here.since and cron.is_moved(here):
        return f"moved: {_named_in(cron, here)} does not exist, the clocks go forward to {show_wall(here.gap[1])}"
    if here.fold[0] <= wall < here.fold[1]:
        return f"the second of two: the clocks have gone back to {show_wall(here.fold[0])}"
    # Not the next one only: at the end of a year a stretch ends without a change.
    soon = takewhile(lambda stretch: stretch.start <= second + _LONGEST_FOLD, near)
    if any(following.fold[0] <= wall < following.fold[1] for following in soon):
        return "the first of two" if cron.runs_twice else "happens twice: only the first runs"
    return _note_skipped(cron, here, second)


def _note_skipped(cron: Cron, here: Stretch, second: int) -> str | None:
    """The first instant after a gap tells what the gap has swallowed."""
    if cron.runs_after_gap or not cron.expression.names_hours or not cron.names_any(here.gap):
        return None
    if cron.count(here.since * 1000 - 1, second * 1000) != 1:
        return None
    return (
        f"skipped before it: {_named_in(cron, here)} does not exist, the clocks go forward to {show_wall(here.gap[1])}"
    )


def _named_in(cron: Cron, stretch: Stretch) -> str:
    """The first named wall of the gap, and how many follow it there."""
    low, high = stretch.gap
    first = cron.expression.first(low)
    assert first is not None
    more = cron.expression.count(low, high) - 1
    return show_wall(first) + (f" (with {more} more)" if more else "")
