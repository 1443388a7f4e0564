"""What a step leaves beside its rows, written once for all that share a commit: counts, the minute's series, hints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache

import msgspec

from drumline.model.outcome import Outcome, OutcomeKind
from drumline.model.query import HISTOGRAM_MILLIS, histogram_bucket
from drumline.stores.base import Topic
from drumline.stores.files import read_statements
from drumline.stores.rows import FAILED, json_text, span_millis
from drumline.stores.statements import Many, Operation, Statement

__all__ = ["Step", "settle"]

_SQL = read_statements(__package__, "step.sql")
_MINUTE = 60_000
_BUCKETS = len(HISTOGRAM_MILLIS) + 1
# The columns in which the jobs of each stored state are counted.
_COLUMNS = {
    "ready": frozenset("r"),
    "delayed": frozenset("db"),
    "running": frozenset("x"),
    "done": frozenset("o"),
    "dead": frozenset("f"),
    "cancelled": frozenset("c"),
}
_histogram = msgspec.json.Decoder(list[int])

Lane = tuple[str, str]


# The jobs of one batch have waited and run equally long, give or take a few milliseconds.
@lru_cache(maxsize=1024)
def _bucket(span: timedelta) -> int:
    return histogram_bucket(span_millis(span))


class _Runs(msgspec.Struct):
    """Attempts closed by one step: of one task in one queue, in one minute."""

    done: int = 0
    failed: int = 0
    dead: int = 0
    cancelled: int = 0
    attempts: int = 0
    last_error: str | None = None
    wait: list[int] = msgspec.field(default_factory=lambda: [0] * _BUCKETS)
    run: list[int] = msgspec.field(default_factory=lambda: [0] * _BUCKETS)

    def add(self, other: _Runs) -> None:
        self.done += other.done
        self.failed += other.failed
        self.dead += other.dead
        self.cancelled += other.cancelled
        self.attempts += other.attempts
        self.last_error = other.last_error or self.last_error
        self.wait = [mine + more for mine, more in zip(self.wait, other.wait, strict=True)]
        self.run = [mine + more for mine, more in zip(self.run, other.run, strict=True)]


class Step:
    """The present instant of one step, and what it adds to counts, series and hints."""

    __slots__ = ("_moves", "_of_schedules", "_runs", "ended", "news", "now", "topics")

    def __init__(self, now: int) -> None:
        self.now = now
        # What to tell the listeners of this process once all is committed.
        self.topics: set[Topic] = set()
        # The jobs that have ended, likewise.
        self.ended: list[str] = []
        # The numbers that the hints got in the store.
        self.news: dict[Topic, int] = {}
        # How many jobs of a lane went from one stored state to another.
        self._moves: Counter[tuple[str, str, str | None, str | None]] = Counter()
        self._runs: dict[Lane, _Runs] = {}
        # Of each schedule, how many attempts were closed, and how many of them had failed.
        self._of_schedules: dict[str, tuple[int, int]] = {}

    def move(self, queue: str, task: str, before: str | None, after: str | None, count: int = 1) -> None:
        """Count jobs that go from one stored state to another; None is outside the store."""
        self._moves[queue, task, before, after] += count

    def close(self, outcome: Outcome, kind: OutcomeKind) -> None:
        """Count a closed attempt. A released one never happened."""
        if kind is OutcomeKind.RELEASE:
            return
        claim, attempt = outcome.claim, outcome.attempt
        runs = self._runs.get((claim.queue, claim.task))
        if runs is None:
            runs = self._runs[claim.queue, claim.task] = _Runs()
        runs.attempts += 1
        runs.wait[_bucket(attempt.started_at - claim.due_at)] += 1
        runs.run[_bucket(attempt.ended_at - attempt.started_at)] += 1
        has_failed = False
        if kind is OutcomeKind.DONE:
            runs.done += 1
        else:
            has_failed = attempt.ended in FAILED
            runs.failed += has_failed
            runs.dead += kind is OutcomeKind.DEAD
            runs.cancelled += kind is OutcomeKind.CANCELLED
            runs.last_error = attempt.died_of or runs.last_error
        if claim.schedule is not None:
            closed, failed = self._of_schedules.get(claim.schedule, (0, 0))
            self._of_schedules[claim.schedule] = (closed + 1, failed + has_failed)

    def hint(self, news: Topic) -> None:
        self.topics.add(news)

    def end(self, ids: Iterable[str]) -> None:
        """These jobs have ended. Who waits for that looks into history: no hint is stored."""
        self.ended.extend(ids)

    def join(self, other: Step) -> None:
        """Take over what the other step, which is part of the same commit, has to leave."""
        self.topics |= other.topics
        self.ended += other.ended
        self._moves.update(other._moves)
        for lane, runs in other._runs.items():
            self._runs.setdefault(lane, _Runs()).add(runs)
        for name, (closed, failed) in other._of_schedules.items():
            before = self._of_schedules.get(name, (0, 0))
            self._of_schedules[name] = (before[0] + closed, before[1] + failed)

    def totals(self) -> list[dict[str, object]]:
        """What to add to the counts of each lane."""
        lanes = dict.fromkeys([*(move[:2] for move in self._moves), *self._runs])
        return [{"queue": queue, "task": task, **self._total(queue, task)} for queue, task in lanes]

    def points(self) -> list[tuple[dict[str, object], _Runs]]:
        """What to add to the present minute of each lane."""
        minute = self.now - self.now % _MINUTE
        return [({"minute": minute, "queue": queue, "task": task}, runs) for (queue, task), runs in self._runs.items()]

    def of_schedules(self) -> list[dict[str, object]]:
        """What to add to the totals of each schedule."""
        return [
            {"name": name, "runs": closed, "failures": failed} for name, (closed, failed) in self._of_schedules.items()
        ]

    def _total(self, queue: str, task: str) -> dict[str, object]:
        moves = [(move[2], move[3], count) for move, count in self._moves.items() if move[:2] == (queue, task)]
        runs = self._runs.get((queue, task), _NONE)
        return {
            **{
                column: sum(((after in states) - (before in states)) * count for before, after, count in moves)
                for column, states in _COLUMNS.items()
            },
            "attempts": runs.attempts,
            "total_done": runs.done,
            "total_failures": runs.failed,
            "last_error": runs.last_error,
        }


_NONE = _Runs()


def settle(step: Step) -> Operation[None]:
    """Write what the step leaves. A step that changed nothing writes nothing."""
    totals, of_schedules = step.totals(), step.of_schedules()
    if totals:
        yield Many(_SQL["add_totals"], totals)
    for place, runs in step.points():
        rows = yield Statement(_SQL["find_point"], place)
        for done, failed, dead, cancelled, wait, ran in rows:
            runs.add(_Runs(done, failed, dead, cancelled, wait=_histogram.decode(wait), run=_histogram.decode(ran)))
        texts = {"wait": json_text(runs.wait), "run": json_text(runs.run)}
        yield Statement(_SQL["keep_point"], {**place, **msgspec.structs.asdict(runs), **texts})
    if of_schedules:
        yield Many(_SQL["add_runs"], of_schedules)
    for news in sorted(step.topics):
        rows = yield Statement(_SQL["add_hint"], {"topic": news, "now": step.now})
        step.news[news] = rows[0][0]
