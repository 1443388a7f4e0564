"""The tick strip: one stroke a tick; colour is the outcome, height the run time, and a gap a tick that did not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from drumline.model.schedule import Decision, Tick
from drumline.web.dashboard.wording import join, plural, span

__all__ = ["HEIGHT", "STEP", "WIDTH", "Strip", "Stroke", "draw_strip"]

# The size of one stroke, and the way from one to the next.
WIDTH, STEP, HEIGHT = 4, 6, 22
_LOWEST, _SKIPPED = 8, 4
# A tick recorded so much later than its instant gets a mark.
LATE = timedelta(seconds=5)
# One row that stands for many instants takes the room of at most so many.
_MOST_OF_ONE_ROW = 8
_SKIPPING = {Decision.MISSED: "missed", Decision.OVERLAP: "skipped: the one before was unfinished"}
_ABOUT_ITSELF = (Decision.CHANGED, Decision.ORPHANED)


class Stroke(msgspec.Struct, frozen=True, kw_only=True):
    """One tick as it is drawn, from the left; `y` is measured from the top."""

    x: int
    y: int
    height: int
    kind: str
    is_late: bool
    title: str
    job_id: str | None


class Strip(msgspec.Struct, frozen=True):
    """The strokes, oldest first, in a picture of that width; and the same in words."""

    strokes: list[Stroke]
    width: int
    words: str


def draw_strip(ticks: Sequence[Tick], places: int, paused: Sequence[datetime] = ()) -> Strip:
    """The newest ticks, given newest first, in so many places; and the instants that a pause has passed over since."""
    shown = [_passed_over(instant) for instant in paused[-_MOST_OF_ONE_ROW:][::-1]]
    for tick in ticks:
        if tick.decision in _ABOUT_ITSELF:
            continue
        shown += [tick] * (min(tick.count, _MOST_OF_ONE_ROW) if tick.job_id is None else 1)
        if len(shown) >= places:
            break
    shown = shown[:places][::-1]
    longest = max((tick.run_time for tick in shown if tick.run_time), default=timedelta())
    # The newest stands at the right edge, so that strips below each other line up.
    first = places - len(shown)
    strokes = [_stroke(tick, first + place, longest) for place, tick in enumerate(shown)]
    return Strip(strokes, places * STEP - (STEP - WIDTH), _say(strokes))


def _passed_over(instant: datetime) -> Tick:
    """The row that this instant would have, had the pause ended."""
    return Tick(
        schedule="",
        mark="",
        replica="",
        instant=instant,
        decision=Decision.PAUSED,
        reason="",
        by="",
        recorded_at=instant,
    )


def kind_of(tick: Tick) -> str:
    """The state whose colour a tick has."""
    if tick.decision is not Decision.FIRED:
        return "skipped"
    return tick.outcome or "running"


def _stroke(tick: Tick, place: int, longest: timedelta) -> Stroke:
    kind = kind_of(tick)
    height = _SKIPPED if kind == "skipped" else _height(tick.run_time, longest)
    return Stroke(
        x=place * STEP,
        y=HEIGHT - height,
        height=height,
        kind=kind,
        is_late=tick.decision is Decision.FIRED and tick.recorded_at - tick.instant >= LATE,
        title=_title(tick),
        job_id=tick.job_id,
    )


def _height(run_time: timedelta | None, longest: timedelta) -> int:
    if run_time is None or not longest:
        return _LOWEST + 4
    return _LOWEST + round((HEIGHT - _LOWEST) * (run_time / longest))


def _title(tick: Tick) -> str:
    at = f"{tick.instant:%-d %b %H:%M:%S} UTC"
    if tick.decision is Decision.PAUSED:
        return f"{at} · paused"
    if tick.decision is not Decision.FIRED:
        many = f"{tick.count:,} ticks " if tick.count > 1 else ""
        return f"{at} · {many}{_SKIPPING.get(tick.decision, tick.decision.value)}"
    parts = [at, tick.outcome or "not ended yet"]
    if tick.run_time is not None:
        parts.append(f"ran {span(tick.run_time)}")
    parts.append(f"fired by {_who(tick)}, {_lateness(tick.recorded_at, tick.instant)}")
    if tick.job_id is not None:
        parts.append(f"job {tick.job_id}")
    return " · ".join(parts)


def _who(tick: Tick) -> str:
    return tick.by.rpartition(":")[0] or tick.by


def _lateness(recorded: datetime, instant: datetime) -> str:
    late = recorded - instant
    return f"{span(late)} late" if late >= timedelta(milliseconds=1) else "on time"


def _say(strokes: Sequence[Stroke]) -> str:
    if not strokes:
        return "no ticks yet"
    kinds = Counter(stroke.kind for stroke in strokes)
    return f"last {plural(len(strokes), 'tick')}: {join([f'{number} {kind}' for kind, number in kinds.most_common()])}"
