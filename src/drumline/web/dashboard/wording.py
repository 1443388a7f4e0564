"""Numbers, spans and instants in the words that people use. The exact value stands beside them, on hover."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

__all__ = [
    "count",
    "cut",
    "join",
    "per_cent",
    "plural",
    "relative",
    "span",
    "span_parts",
    "wall",
]

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
# From here on a span is told in the next greater unit: "90 min" says less than "1.5 h", and "36 h" more than "1 day".
_MANY_MINUTES, _MANY_HOURS = 100 * _MINUTE, 48 * _HOUR


def count(number: int) -> str:
    """1284 as `1,284`."""
    return f"{number:,}"


def plural(number: int, word: str, many: str | None = None) -> str:
    """`1 job`, `2 jobs`, `1,284 jobs`."""
    return f"{count(number)} {word if number == 1 else many or word + 's'}"


def per_cent(part: float, whole: float) -> str:
    """The share in per cent: `0`, `0.7`, `12`; a small one is never rounded to nothing."""
    if not whole or not part:
        return "0"
    share = 100 * part / whole
    return f"{share:.0f}" if share >= 10 else f"{max(share, 0.1):.1f}"


def span(length: timedelta) -> str:
    """`31 ms`, `0.9 s`, `38 s`, `4 min`, `8 h`, `3 days`; without a sign."""
    return " ".join(span_parts(length))


def span_parts(length: timedelta) -> tuple[str, str]:
    """The number and its unit."""
    seconds = abs(length.total_seconds())
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}", "ms"
    if seconds < 9.95:
        return f"{seconds:.1f}", "s"
    if seconds < 99.5:
        return f"{seconds:.0f}", "s"
    if seconds < _MANY_MINUTES:
        return f"{seconds / _MINUTE:.0f}", "min"
    if seconds < _MANY_HOURS:
        return _short(seconds / _HOUR), "h"
    return f"{seconds / _DAY:.0f}", "days"


def relative(instant: datetime, now: datetime) -> str:
    """`in 4 s`, `8 h ago`, `now`; whole seconds only."""
    length = instant - now
    seconds = abs(length.total_seconds())
    if seconds < 0.5:
        return "now"
    told = f"{seconds:.0f} s" if seconds < 9.95 else span(length)
    return f"in {told}" if length > timedelta() else f"{told} ago"


def wall(instant: datetime, now: datetime, zone: tzinfo = UTC) -> str:
    """The clock on the wall of that zone, and the day unless it is today: `14:10:20`, `tomorrow 09:00`, `Mon 01:30`."""
    there, today = instant.astimezone(zone), now.astimezone(zone).date()
    clock = f"{there:%H:%M:%S}" if there.second else f"{there:%H:%M}"
    days = (there.date() - today).days
    if days == 0:
        return clock
    if days in (-1, 1):
        return f"{'tomorrow' if days == 1 else 'yesterday'} {clock}"
    if 1 < days < 7:
        return f"{there:%a} {clock}"
    year = "" if there.year == today.year else f" {there.year}"
    return f"{there.day} {there:%b}{year} {clock}"


def cut(text: str, length: int) -> str:
    """The text, or as much of it as fits, with a mark that there is more."""
    return text if len(text) <= length else text[: length - 1] + "…"


def join(words: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0") if number < 10 else f"{number:.0f}"
