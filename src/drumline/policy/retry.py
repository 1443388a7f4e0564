"""How long to wait before the next attempt."""

from __future__ import annotations

from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from random import Random

from drumline.errors import BadOption
from drumline.model.instant import parse_duration, parse_instant
from drumline.model.options import Backoff

__all__ = ["parse_after", "wait_after"]

# However great the jitter.
LONGEST = timedelta(days=36_500)

# Of whole seconds in a header: another server wrote it, and Python makes no number of any text.
_MOST_DIGITS = 20
_AFTER = "seconds, a duration, an instant with a time zone, or the text of a Retry-After header"


def wait_after(backoff: Backoff, attempt: int, seed: str) -> timedelta:
    """The wait after failed attempt `attempt` (from 1). The same seed gives the same jitter."""
    steps = backoff.steps
    base = steps[min(attempt, len(steps)) - 1] if steps else _grown(backoff, attempt)
    spread = Random(f"{seed}/{attempt}").random()
    if backoff.jitter == "full":
        return base * spread
    return _times(base, 1 + backoff.jitter * spread, LONGEST)


def parse_after(after: object) -> datetime | timedelta:
    """When a task that raised Retry or Snooze wants to run again."""
    if isinstance(after, datetime):
        return _read_instant(after, after)
    if isinstance(after, str):
        return _read_text(after.strip())
    return parse_duration(after, "after")


def _grown(backoff: Backoff, attempt: int) -> timedelta:
    try:
        return _times(backoff.initial, backoff.factor ** (attempt - 1), backoff.cap)
    except OverflowError:
        # Nothing stays nothing, however often it is doubled.
        return backoff.cap if backoff.initial else backoff.initial


def _times(span: timedelta, factor: float, most: timedelta) -> timedelta:
    try:
        return min(span * factor, most)
    except OverflowError:
        return most


def _read_instant(instant: datetime, given: object) -> datetime:
    try:
        return parse_instant(instant, "after")
    except (OverflowError, ValueError):
        # Naive, or so far away that UTC has no year for it.
        raise BadOption("after", _AFTER, given) from None


def _read_text(text: str) -> datetime | timedelta:
    if text.isdecimal() and len(text) <= _MOST_DIGITS:
        return parse_duration(int(text), "after")
    try:
        return parse_duration(text, "after")
    except BadOption:
        pass
    try:
        instant = parsedate_to_datetime(text)
    except (IndexError, OverflowError, TypeError, ValueError):
        raise BadOption("after", _AFTER, text) from None
    return _read_instant(instant, text)
