"""pause, command and purge, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import TypeVar, assert_never

import msgspec

from drumline.model.job import JobState
from drumline.model.options import PRIVATE
from drumline.model.query import Answer, AuditRow, By, Command, CommandKind, Keep, PauseKind
from drumline.model.schedule import start_epoch
from drumline.model.sealed import Resealing
from drumline.stores.base import topic
from drumline.stores.memory.schedule import tell_change, tell_pause
from drumline.stores.memory.state import Plan, Purged, Record, State, Total, due_at

__all__ = ["command", "pause", "paused", "purge", "reseal"]

T = TypeVar("T")


def pause(
    state: State, now: datetime, kind: PauseKind, names: Sequence[str], by: By, token: str, *, paused: bool
) -> list[bool]:
    if token not in state.audit:
        step = _pause_queue if kind is PauseKind.QUEUE else _pause_schedule
        answers = tuple(step(state, now, name, by, paused=paused) for name in names)
        action = f"{'pause' if paused else 'resume'} {kind}"
        state.audit[token] = AuditRow(id=token, at=now, by=by, action=action, targets=tuple(names), answers=answers)
        if kind is PauseKind.QUEUE and Answer.APPLIED in answers:
            tell_change(state)
    return [answer is Answer.APPLIED for answer in state.audit[token].answers]


def paused(state: State, kind: PauseKind) -> dict[str, By]:
    if kind is PauseKind.QUEUE:
        return dict(state.pauses)
    return {name: plan.paused_by for name, plan in state.plans.items() if plan.paused_by is not None}


def command(state: State, now: datetime, asked: Command) -> list[Answer]:
    if asked.id not in state.audit:
        answers = tuple(_command_one(state, now, asked, job_id) for job_id in asked.ids)
        state.audit[asked.id] = AuditRow(
            id=asked.id,
            at=now,
            by=asked.by,
            action=asked.kind.value,
            targets=asked.ids,
            answers=answers,
            part_of=asked.part_of,
        )
    return list(state.audit[asked.id].answers)


def purge(state: State, now: datetime, keep: Keep, limit: int) -> int:
    slice_of = _Slice(limit)
    ended = (record for record in state.jobs.values() if record.expires_at is not None and record.expires_at <= now)
    for record in slice_of(sorted(ended, key=lambda record: (record.expires_at, record.id))):
        state.forget(record)
    _purge_ticks(state, now, keep, slice_of)
    for row in slice_of([row for row in state.audit.values() if row.at <= now - keep.audit]):
        del state.audit[row.id]
    for point in slice_of([place for place in state.series if place[0] <= now - keep.series]):
        del state.series[point]
    for gone in slice_of([m.info.id for m in state.members.values() if m.seen_at <= now - keep.replicas]):
        del state.members[gone]
    for place in slice_of([p for p, holder in state.keys.items() if holder.until is not None and holder.until <= now]):
        del state.keys[place]
    _join_private_totals(state)
    return limit - slice_of.room


def _join_private_totals(state: State) -> None:
    """Add together what private queues have come to of which nothing is left."""
    in_use = {PRIVATE, *(record.options.queue for record in state.jobs.values())}
    spent = [place for place in state.totals if place[0].startswith(PRIVATE) and place[0] not in in_use]
    for place in spent:
        total = state.totals.pop(place)
        together = state.totals.setdefault((PRIVATE, place[1]), Total())
        together.done += total.done
        together.failures += total.failures
        together.last_error = total.last_error or together.last_error


class _Slice:
    """Gives out items until the slice is full."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __call__(self, items: Iterable[T]) -> list[T]:
        taken = list(islice(items, self.room))
        self.room -= len(taken)
        return taken


def _purge_ticks(state: State, now: datetime, keep: Keep, slice_of: _Slice) -> None:
    by_schedule: dict[str, list[tuple[str, str, str]]] = {}
    for place in state.ticks:
        by_schedule.setdefault(place[0], []).append(place)
    for name, places in sorted(by_schedule.items()):
        places.sort(key=lambda place: (state.ticks[place].instant, place))
        old = places[: max(len(places) - keep.newest_ticks, 0)]
        for place in slice_of([place for place in old if state.ticks[place].recorded_at <= now - keep.ticks]):
            tick = state.ticks.pop(place)
            if tick.job_id is not None:
                state.tick_of.pop(tick.job_id, None)
            before = state.purged.get(name) or Purged(tick.instant)
            start = max(before.start, start_epoch(tick.replica, tick.mark))
            state.purged[name] = Purged(max(before.to, tick.until or tick.instant), start)


def _pause_queue(state: State, _now: datetime, name: str, by: By, *, paused: bool) -> Answer:
    if paused == (name in state.pauses):
        return Answer.REFUSED
    if paused:
        state.pauses[name] = by
    else:
        del state.pauses[name]
        state.news.add(topic.queue(name))
    return Answer.APPLIED


def _pause_schedule(state: State, now: datetime, name: str, by: By, *, paused: bool) -> Answer:
    plan = state.plans.get(name)
    if plan is None:
        return Answer.NOT_FOUND
    if paused == (plan.paused_at is not None):
        return Answer.REFUSED
    if paused:
        plan.paused_at, plan.paused_by = now, by
    else:
        _resume(state, now, plan, by)
    tell_change(state, plan)
    return Answer.APPLIED


def _resume(state: State, now: datetime, plan: Plan, by: By) -> None:
    tell_pause(state, now, plan, plan.schedule.rule, by)
    plan.paused_at = plan.paused_by = None
    plan.begun_at = plan.last_tick = now


def _command_one(state: State, now: datetime, asked: Command, job_id: str) -> Answer:
    record = state.jobs.get(job_id)
    if record is None:
        return Answer.NOT_FOUND
    match asked.kind:
        case CommandKind.CANCEL:
            return _cancel(state, now, record)
        case CommandKind.RETRY:
            return _retry(state, now, record)
        case CommandKind.DISCARD:
            if record.finished_at is None:
                return Answer.REFUSED
            state.forget(record)
        case CommandKind.RESCHEDULE:
            if not record.is_waiting:
                return Answer.REFUSED
            state.wait(record, due_at(asked.start, now))
        case _:
            assert_never(asked.kind)
    return Answer.APPLIED


def _cancel(state: State, now: datetime, record: Record) -> Answer:
    if record.is_waiting:
        state.end(record, JobState.CANCELLED, now)
        return Answer.APPLIED
    if record.state is not JobState.RUNNING:
        return Answer.REFUSED
    record.cancelling = True
    state.news.add(topic.cancel(record.replica or ""))
    return Answer.REQUESTED


def _retry(state: State, now: datetime, record: Record) -> Answer:
    if record.finished_at is None:
        return Answer.REFUSED
    if record.key is not None:
        holder = state.held_key(record.task, record.key.name, now)
        if holder is not None and holder.job_id != record.id:
            return Answer.KEY_TAKEN
        state.take_key(record)
    record.attempt = record.releases = 0
    record.finished_at = record.expires_at = record.result = record.progress = record.user_error = None
    record.result_is_repr = False
    state.wait(record, now)
    return Answer.APPLIED


def reseal(state: State, resealings: Sequence[Resealing]) -> list[bool]:
    return [_reseal_one(state, one) for one in resealings]


def _reseal_one(state: State, one: Resealing) -> bool:
    if one.schedule is not None:
        return _reseal_schedule(state, state.plans.get(one.schedule), one)
    record = state.jobs.get(one.job or "")
    if record is None or record.args not in (one.before, one.after):
        return False
    record.args = one.after
    return True


def _reseal_schedule(state: State, plan: Plan | None, one: Resealing) -> bool:
    if plan is None or plan.schedule.args not in (one.before, one.after):
        return False
    if plan.schedule.args == one.before:
        plan.schedule = msgspec.structs.replace(plan.schedule, args=one.after)
        tell_change(state, plan)
    return True
