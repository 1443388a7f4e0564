"""Instants and durations: how they are given, checked, and kept (whole milliseconds, UTC)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import durationpy
import msgspec

from drumline.errors import BadOption

__all__ = ["Duration", "from_millis", "millis", "parse_duration", "parse_instant", "to_millis"]

Duration = float | str | timedelta

_DURATION = 'a duration (seconds, "500ms", "1h30m", an ISO 8601 duration or a timedelta)'
_LONGEST = timedelta(days=36_500)


def parse_duration(value: object, option: str) -> timedelta:
    """A duration of zero or more, however it was written."""
    span = _read_duration(value, option)
    if span < timedelta():
        raise BadOption(option, f"{_DURATION} of zero or more", value)
    if span > _LONGEST:
        raise BadOption(option, f"{_DURATION} of at most 100 years", value)
    return timedelta(milliseconds=millis(span))


def parse_instant(value: object, option: str) -> datetime:
    """An instant in UTC. A naive datetime is refused: nobody knows which zone was meant."""
    instant = value
    if isinstance(value, str):
        try:
            instant = datetime.fromisoformat(value)
        except ValueError:
            raise BadOption(option, "an instant with a time zone, such as 2026-05-05T14:00:00Z", value) from None
    if not isinstance(instant, datetime) or instant.tzinfo is None:
        raise BadOption(option, "an instant with a time zone (an aware datetime)", value)
    try:
        return from_millis(to_millis(instant))
    except (OverflowError, ValueError):
        raise BadOption(option, "an instant of the years 1 to 9999, in UTC", value) from None


def millis(span: timedelta) -> int:
    """The span in milliseconds; parts of one are dropped."""
    return span // timedelta(milliseconds=1)


def to_millis(instant: datetime) -> int:
    """Milliseconds since the Unix epoch; parts of one are dropped."""
    elapsed = instant - _EPOCH
    # In a third of the time that a division takes: it is asked for with every job.
    return elapsed.days * 86_400_000 + elapsed.seconds * 1000 + elapsed.microseconds // 1000


def from_millis(value: int) -> datetime:
    """The instant so many milliseconds after the Unix epoch."""
    # Whole seconds through the C conversion, which is exact for integers; a float of milliseconds would not be.
    seconds, rest = divmod(value, 1000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _read_duration(value: object, option: str) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool):
        raise BadOption(option, _DURATION, value)
    if isinstance(value, int | float):
        most = _LONGEST.total_seconds()
        # So asked, it is true of no NaN, and an int need not fit into a float.
        if not -most <= value <= most:
            raise BadOption(option, f"{_DURATION} of at most 100 years", value)
        return timedelta(seconds=value)
    if isinstance(value, str):
        return _read_text(value, option)
    raise BadOption(option, _DURATION, value)


def _read_text(text: str, option: str) -> timedelta:
    try:
        if text.lstrip("+-")[:1] in ("P", "p"):
            return msgspec.convert(text, timedelta)
        return durationpy.from_str(text)
    except (durationpy.DurationError, msgspec.ValidationError, OverflowError, ValueError):
        raise BadOption(option, _DURATION, text) from None
