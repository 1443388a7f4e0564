"""Has a schedule fired when it should have?"""

from __future__ import annotations

from datetime import datetime, timedelta

from drumline.errors import BadOption
from drumline.model.schedule import ScheduleStatus
from drumline.policy.rule import times

__all__ = ["late_by"]

# A tick may be fired by a standby, after a grace, or be looked for at the next poll.
LATE_AFTER = timedelta(seconds=15)


def late_by(status: ScheduleStatus, now: datetime) -> timedelta | None:
    """How long ago the schedule should have fired and has not; None if it is on time, or not meant to fire."""
    if status.paused_at is not None or status.orphaned:
        return None
    try:
        expected = times(status.schedule.rule).after(status.last_tick)
    except BadOption:
        return None
    if expected is None or now - expected < max(LATE_AFTER, status.schedule.misfire_grace):
        return None
    return now - expected
