"""What should have fired in a history, worked out from what people and replicas did, and from nothing of the engine.

An instant belongs to a span: the time in which a rule was in force, from its declaration, change, resumption or
adoption to its pause, change, withdrawal or orphaning. It has to be decided when, within the span, some replica was
well for as long as it takes to notice; where none was, it may be. It may never be decided early, twice, or outside
its span.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from drumline.model.job import Job
from drumline.model.query import JobFilter
from drumline.model.replica import ReplicaState
from drumline.model.schedule import Coordination, Decision, FiredAnswer, Misfire, Schedule, Tick
from tests.engine.histories import BEAT, SLOWEST, STIRRED, Done, History, Life

# How long a replica takes to come to work, to come to itself after errors, and to notice what is due: a beat until it
# hears of a change that nobody told it, the grace, and a few calls there and back.
TO_BEGIN = 3_000
TO_RECOVER = 7_500
TO_NOTICE = BEAT + 400 + 10 * 2 * SLOWEST
# From the look at the clock to the record: what the clock lags behind, and the call's way.
TO_RECORD = 2 * SLOWEST + 10


class Span(msgspec.Struct, kw_only=True):
    """A time in which a schedule was in force; instants after `begin`, decided up to `end`. In milliseconds."""

    schedule: Schedule
    begin: int
    end: int

    @property
    def step(self) -> int:
        assert self.schedule.rule.every is not None
        return self.schedule.rule.every // timedelta(milliseconds=1)

    def instants(self) -> range:
        return range((self.begin // self.step + 1) * self.step, self.end, self.step)


class Held(msgspec.Struct):
    """A schedule as the store holds it at some time."""

    schedule: Schedule
    is_paused: bool
    is_orphaned: bool = False
    span: Span | None = None


class Spans:
    """Reads the log, and says when which rule was in force."""

    def __init__(self, origin: int) -> None:
        self._origin = origin
        self._held: dict[str, Held] = {}
        # By replica: when it beat, and what it declares.
        self._beats: dict[str, list[int]] = {}
        self._declared: dict[str, tuple[str, ...]] = {}
        self.found: list[Span] = []

    def read(self, log: Iterable[Done], end: int) -> list[Span]:
        for done in log:
            self._take_in(done)
        for held in self._held.values():
            self._close(held, end)
        return self.found

    def _take_in(self, done: Done) -> None:
        match done.operation:
            case "declare":
                for schedule in done.given[0]:
                    self._declare(schedule, done.at)
            case "withdraw":
                held = self._held.pop(done.given[0][0], None) if done.answer[0] else None
                if held is not None:
                    self._close(held, done.at)
            case "pause" | "resume":
                self._pause(done)
            case "beat":
                self._hear(done)
            case "fire":
                self._look_for_orphans(done)

    def _hear(self, done: Done) -> None:
        info = done.given[0]
        if info.state is ReplicaState.GONE:
            self._beats.pop(info.id, None)
        else:
            self._beats.setdefault(info.id, []).append(done.at)
            self._declared[info.id] = info.schedules

    def _look_for_orphans(self, done: Done) -> None:
        for firing, fired in zip(done.given[0], done.answer, strict=True):
            if firing.decision is Decision.ORPHANED and fired.answer is FiredAnswer.RECORDED:
                self._orphan(firing.schedule, done.at)

    def _declare(self, schedule: Schedule, at: int) -> None:
        held = self._held.get(schedule.name)
        if held is None:
            held = self._held[schedule.name] = Held(schedule, schedule.paused)
        elif held.schedule.in_code and not schedule.in_code:
            return
        elif held.schedule.rule == schedule.rule and not held.is_orphaned:
            held.schedule = schedule
            return
        self._close(held, at)
        held.schedule, held.is_orphaned = schedule, False
        self._open(held, at)

    def _pause(self, done: Done) -> None:
        held = self._held.get(done.given[0][0])
        if held is None or not done.answer[0]:
            return
        held.is_paused = done.operation == "pause"
        self._close(held, done.at)
        self._open(held, done.at)

    def _orphan(self, name: str, at: int) -> None:
        held = self._held[name]
        # When whoever tells of it may have looked: one that came back in between is adopted again.
        looked = at - TO_RECORD
        declarers = [
            who
            for who, beats in self._beats.items()
            if name in self._declared[who] and any(0 <= looked - beat <= 3 * BEAT - TO_RECORD for beat in beats)
        ]
        assert not declarers, f"{name} was called orphaned at {at}, but {declarers} declare it"
        held.is_orphaned = True
        self._close(held, at)

    def _open(self, held: Held, at: int) -> None:
        if not held.is_paused and not held.is_orphaned:
            held.span = Span(schedule=held.schedule, begin=self._origin + at, end=0)

    def _close(self, held: Held, at: int) -> None:
        if held.span is not None:
            held.span.end = self._origin + at
            self.found.append(held.span)
            held.span = None


class Row(msgspec.Struct, frozen=True):
    """A row of the ledger, in milliseconds."""

    instant: int
    recorded: int
    decision: Decision


def check(history: History) -> None:
    """Fail, saying what is wrong, if the ledger is not what it should be."""
    origin = _millis(history.start)
    end = history.now
    spans = Spans(origin).read(history.log, end)
    ticks = history.memory.ticks(limit=1_000_000).run().items
    jobs = history.memory.jobs(JobFilter(), limit=1_000_000).run().items
    rows = [tick for tick in ticks if tick.decision in (Decision.FIRED, Decision.MISSED)]
    _check_jobs(rows, jobs)
    by_place: dict[tuple[str, str], list[Row]] = {}
    for tick in rows:
        assert tick.until is None, f"{tick} stands for many"
        row = Row(_millis(tick.instant), _millis(tick.recorded_at), tick.decision)
        by_place.setdefault((tick.schedule, tick.replica), []).append(row)
    placed: Counter[tuple[str, str]] = Counter()
    for span in spans:
        for owner, wells in _owners(span, history.lives, origin, end):
            mine = [row for row in by_place.get((span.schedule.name, owner), ()) if _is_of(span, row)]
            placed[span.schedule.name, owner] += len(mine)
            _check_span(span, mine, wells, owner)
    for place, found in by_place.items():
        twice = [instant for instant, times in Counter(row.instant for row in found).items() if times > 1]
        assert not twice, f"{place}: twice in the ledger: {twice}"
        stray = f"{place}: rows that no rule asked for: {found}, spans {spans}"
        assert placed[place] == len(found), stray


def _check_jobs(rows: list[Tick], jobs: list[Job]) -> None:
    fired = {tick.job_id for tick in rows if tick.decision is Decision.FIRED}
    assert fired == {job.id for job in jobs}, "jobs and fired ticks are not the same"
    assert len(fired) == sum(tick.decision is Decision.FIRED for tick in rows), "two ticks share a job"
    for tick in rows:
        assert tick.recorded_at >= tick.instant, f"early: {tick}"


def _is_of(span: Span, row: Row) -> bool:
    return span.begin < row.instant <= row.recorded <= span.end and row.instant % span.step == 0


def _owners(span: Span, lives: list[Life], origin: int, end: int) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Whose ticks there are, and when there was somebody well to decide them."""
    name = span.schedule.name
    able = [life for life in lives if not span.schedule.in_code or name in life.declared]
    if span.schedule.coordination is Coordination.FLEET:
        yield "", [well for life in able for well in _wells(life, origin, end)]
        return
    for life in lives:
        yield life.id, list(_wells(life, origin, end)) if life in able else []


def _wells(life: Life, origin: int, end: int) -> Iterator[tuple[int, int]]:
    """When the replica was well."""
    begin = life.began + TO_BEGIN
    for troubled, until in sorted(life.troubles):
        until = min(until, max(STIRRED, troubled))
        if begin < troubled:
            yield origin + begin, origin + min(troubled, end if life.ended is None else life.ended)
        begin = max(begin, until + TO_RECOVER)
    last = end if life.ended is None else life.ended
    if begin < last:
        yield origin + begin, origin + last


def _check_span(span: Span, rows: list[Row], wells: list[tuple[int, int]], owner: str) -> None:
    place = f"{span.schedule.name} of {owner or 'the fleet'}"
    decided = {row.instant: row for row in rows}
    for instant in span.instants():
        enough = [max(instant, begin) for begin, end in wells if _is_enough(span, instant, begin, end)]
        # A replica catches up with nothing from before its start, and nobody else knows when that was.
        if not enough or (owner and not any(begin <= instant < end for begin, end in wells)):
            continue
        row = decided.get(instant)
        assert row is not None, f"{place}: {instant} is missing, in {span}"
        late = row.recorded - min(enough)
        assert late <= TO_NOTICE, f"{place}: {instant} was decided {late} ms after somebody was well: {row}"
    for row in rows:
        _check_policy(span, row, decided, place)


def _is_enough(span: Span, instant: int, begin: int, end: int) -> bool:
    """Whether that time of being well, as far as it lies after the instant, is long enough to have it decided."""
    return min(end, span.end) - max(instant, begin) >= TO_NOTICE


def _check_policy(span: Span, row: Row, decided: dict[int, Row], place: str) -> None:
    late = row.recorded - row.instant
    grace = span.schedule.misfire_grace // timedelta(milliseconds=1)
    is_fired = row.decision is Decision.FIRED
    if late < grace:
        assert is_fired, f"{place}: on time, and not fired: {row}"
    elif late < grace + TO_RECORD:
        return
    elif span.schedule.misfire is Misfire.SKIP:
        assert not is_fired, f"{place}: late, and fired: {row}"
    elif span.schedule.misfire is Misfire.ALL:
        assert is_fired, f"{place}: late, and not fired: {row}"
    else:
        newer = range(row.instant + span.step, row.recorded - TO_RECORD, span.step)
        fired = [other for other in decided.values() if other.instant > row.instant and other.recorded <= row.recorded]
        has_newer = any(other.decision is Decision.FIRED for other in fired)
        assert not (is_fired and newer), f"{place}: late and fired, though {list(newer)} are newer: {row}"
        assert is_fired or has_newer, f"{place}: missed, and nothing newer was fired: {row}"


def _millis(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)
