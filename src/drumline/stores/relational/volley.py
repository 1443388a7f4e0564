"""A volley: the firings of one call as a store with statements decides them, without a statement for each.

    read: plans, ticks, jobs ─▶ decide one after the other, in memory ─▶ write: jobs, rows, plans

What one firing changes, the next one sees here. Whoever has to see it in the store writes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from drumline.model.instant import to_millis
from drumline.model.job import NewJob
from drumline.model.schedule import OVERLAPPED, Decision, Fired, FiredAnswer, Firing, Overlap, Rule, start_epoch
from drumline.stores.statements import Row

__all__ = ["Move", "Plan", "Volley", "tick_row"]

Place = tuple[str, str, str]


class _Spec(msgspec.Struct):
    """Of a schedule only what matters here: it is read for every tick."""

    overlap: Overlap


_spec = msgspec.json.Decoder(_Spec)


class Plan(msgspec.Struct):
    """A schedule, as far as its ticks have to know it; instants in milliseconds."""

    overlap: Overlap
    version: int
    paused: int | None
    last_tick: int
    purged_to: int | None
    purged_start: int | None

    @classmethod
    def of(cls, spec: bytes | str, *rest: Any) -> Plan:
        return cls(_spec.decode(spec).overlap, *rest)


class Move(msgspec.Struct):
    """How a schedule moves on: up to where instants are decided, and its newest fired tick, if one was fired."""

    name: str
    to: int
    fired: int | None = None
    mark: str | None = None
    by: str | None = None


class Volley:
    """What the store holds about some firings, and what is to be written of them."""

    def __init__(self, now: int, by: str, firings: Sequence[Firing]) -> None:
        self._now = now
        self._by = by
        self._plans: dict[str, Plan] = {}
        # The jobs of the ticks that stand in the ledger, and the ids that stand for a job.
        self._ticks: dict[Place, str | None] = {}
        self._ids: set[str] = set()
        self.names = sorted({firing.schedule for firing in firings})
        self.places = [place_of(firing) for firing in firings]
        self.ids = [firing.job.id for firing in firings if firing.job is not None]
        # To be written: jobs that wait for nobody, rows by their place, and moves by schedule.
        self.jobs: list[NewJob] = []
        self.rows: dict[Place, dict[str, Any]] = {}
        self.moves: dict[str, Move] = {}

    def know(self, plans: Iterable[Row], ticks: Iterable[Row], ids: Iterable[str]) -> None:
        """Take in what the store holds: plans by name, ticks with their jobs, ids of jobs."""
        self._plans = {name: Plan.of(*rest) for name, *rest in plans}
        self._ticks = {(schedule, replica, mark): job_id for schedule, replica, mark, job_id in ticks}
        self._ids = set(ids)

    def refuse(self, firing: Firing) -> Fired | None:
        """Why it is not to be recorded; None if it is. A trigger is asked for by a person, and decides no instant."""
        plan = self._plans.get(firing.schedule)
        if plan is None:
            return Fired(FiredAnswer.UNKNOWN)
        if plan.paused is not None and firing.is_tick:
            return Fired(FiredAnswer.PAUSED)
        if firing.version is not None and firing.version != plan.version:
            return Fired(FiredAnswer.STALE)
        if firing.decision is Decision.TRIGGER:
            return None
        if to_millis(firing.until or firing.instant) > self._now:
            return Fired(FiredAnswer.EARLY)
        if not self._is_decided(plan, firing):
            return None
        # Of many instants only the first is known to be decided.
        if firing.until is None:
            self._pass_over(plan, firing)
        return Fired(FiredAnswer.DUPLICATE, self._ticks.get(place_of(firing)))

    def overlap_of(self, firing: Firing) -> Overlap:
        return self._plans[firing.schedule].overlap

    def has_job(self, job: NewJob) -> bool:
        """Whether the id stands for a job; if not, it does from now on."""
        if job.id in self._ids:
            return True
        self._ids.add(job.id)
        return False

    def record(self, firing: Firing, fired: Fired) -> None:
        """Have the ledger's row written, and let the schedule move on."""
        place = place_of(firing)
        self._ticks[place] = fired.job_id
        row = tick_row(firing, self._now, self._by, firing.recorded_as(fired.answer), fired.job_id)
        self.rows[place] = row
        self._pass_over(self._plans[firing.schedule], firing)
        if fired.answer is FiredAnswer.FIRED and firing.decision is Decision.FIRED:
            move = self._move_of(firing)
            move.fired, move.mark, move.by = self._now, firing.mark, self._by

    def change(self, firing: Firing, version: int) -> None:
        """The schedule has another version from here on."""
        self._plans[firing.schedule].version = version

    def clear(self) -> None:
        """All is written."""
        self.jobs, self.rows, self.moves = [], {}, {}

    def _is_decided(self, plan: Plan, firing: Firing) -> bool:
        place = place_of(firing)
        if firing.decision is Decision.BACKFILL and place in self._ticks and self._ticks[place] is None:
            return False
        is_behind = firing.follows_last_tick and to_millis(firing.instant) <= plan.last_tick
        return place in self._ticks or is_behind or _is_purged(plan, firing)

    def _pass_over(self, plan: Plan, firing: Firing) -> None:
        """Count the instants of this firing as decided."""
        to = to_millis(firing.until or firing.instant)
        if firing.moves_on and to > plan.last_tick:
            plan.last_tick = self._move_of(firing).to = to

    def _move_of(self, firing: Firing) -> Move:
        name = firing.schedule
        return self.moves.setdefault(name, Move(name, self._plans[name].last_tick))


def place_of(firing: Firing) -> Place:
    """Where it stands in the ledger."""
    return firing.schedule, firing.replica, firing.mark


def tick_row(
    firing: Firing, now: int, by: str, decision: Decision, job_id: str | None = None, rule: Rule | None = None
) -> dict[str, Any]:
    """The ledger's row of this firing, by the names of its columns."""
    return {
        "schedule": firing.schedule,
        "replica": firing.replica,
        "mark": firing.mark,
        "instant": to_millis(firing.instant),
        "decision": decision.value,
        "reason": OVERLAPPED if decision is Decision.OVERLAP else firing.reason,
        "by": by,
        "recorded": now,
        "job": job_id,
        "until": None if firing.until is None else to_millis(firing.until),
        "count": firing.count,
        "rule": None if rule is None else msgspec.json.encode(rule).decode(),
    }


def _is_purged(plan: Plan, firing: Firing) -> bool:
    """Whether the tick may have stood in the ledger before that was purged."""
    if plan.purged_to is None or plan.purged_start is None:
        return False
    return (
        to_millis(firing.instant) <= plan.purged_to
        or 0 <= start_epoch(firing.replica, firing.mark) <= plan.purged_start
    )
