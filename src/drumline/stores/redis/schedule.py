"""declare, withdraw, schedules and fire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from drumline.model.act import Act
from drumline.model.instant import to_millis
from drumline.model.query import By
from drumline.model.replica import ReplicaInfo
from drumline.model.schedule import OVERLAPPED, Fired, FiredAnswer, Firing, Schedule, ScheduleStatus, start_epoch
from drumline.stores.redis.calls import Call, Operation
from drumline.stores.redis.pack import act_item, job_item, opaque, pack, unpack_id
from drumline.stores.rows import instant, instant_or_none

__all__ = ["declare", "fire", "schedules", "withdraw"]

_spec = msgspec.json.Decoder(Schedule)
_by = msgspec.json.Decoder(By)
_info = msgspec.json.Decoder(ReplicaInfo)


def declare(declared: Sequence[Schedule], by: By, act: Act | None) -> Operation[list[bool]]:
    items = [_schedule_item(schedule) for schedule in declared]
    asked = pack(act_item(act, [schedule.name for schedule in declared]))
    answers = yield Call("declare", (pack(items), msgspec.json.encode(by), by.who, asked))
    return [bool(answer) for answer in answers]


def withdraw(names: Sequence[str], by: By, act: Act | None) -> Operation[list[bool]]:
    answers = yield Call("withdraw", (by.who, pack(act_item(act, names)), *names))
    return [bool(answer) for answer in answers]


def schedules(names: Sequence[str]) -> Operation[list[ScheduleStatus]]:
    now, rows, members = yield Call("schedules", tuple(names))
    declared = {
        name for seen, every, info in members if now - seen <= 3 * every for name in _info.decode(info).schedules
    }
    return sorted((_status(row, declared) for row in rows), key=lambda status: status.schedule.name)


def fire(firings: Sequence[Firing], by: str, act: Act | None) -> Operation[list[Fired]]:
    asked = pack(act_item(act, list(dict.fromkeys(firing.schedule for firing in firings))))
    answers = yield Call("fire", (pack([_firing_item(firing) for firing in firings]), by, asked))
    return [Fired(FiredAnswer(answer.decode()), unpack_id(job) if job else None) for answer, job in answers]


def _schedule_item(schedule: Schedule) -> tuple[Any, ...]:
    # Whether it begins paused counts once, so it is no part of what may change. Sorted, so that equals look equal.
    spec = msgspec.json.encode(msgspec.structs.replace(schedule, paused=False), order="sorted")
    rule = msgspec.json.encode(schedule.rule, order="sorted")
    return (
        schedule.name,
        opaque(spec),
        opaque(rule),
        schedule.overlap.value,
        schedule.in_code,
        schedule.paused,
    )


def _firing_item(firing: Firing) -> dict[str, Any]:
    return {
        "schedule": firing.schedule,
        "mark": firing.mark,
        "replica": firing.replica,
        "instant": to_millis(firing.instant),
        "decision": firing.decision.value,
        "reason": firing.reason,
        "overlapped": OVERLAPPED,
        "till": False if firing.until is None else to_millis(firing.until),
        "count": firing.count,
        "version": firing.version or False,
        "is_tick": firing.is_tick,
        "makes_job": firing.makes_job,
        "moves_on": firing.moves_on,
        "follows_last_tick": firing.follows_last_tick,
        "epoch": start_epoch(firing.replica, firing.mark),
        "job": False if firing.job is None else job_item(firing.job),
    }


def _status(row: Sequence[Any], declared: set[str]) -> ScheduleStatus:
    name, spec, paused, declared_at, last_tick, last_fired, last_mark, leader, paused_at, paused_by, orphaned = row[:11]
    version, begun_at, running, runs, failures = row[11:]
    schedule = msgspec.structs.replace(_spec.decode(spec), paused=bool(paused))
    by = _by.decode(paused_by) if paused_by else None
    return ScheduleStatus(
        schedule=schedule,
        version=version,
        declared_at=instant(declared_at),
        begun_at=instant(begun_at),
        last_tick=instant(last_tick),
        last_fired_at=instant_or_none(last_fired),
        last_mark=_text_or_none(last_mark),
        leader=_text_or_none(leader),
        paused_at=instant_or_none(paused_at),
        paused_by=None if by is None else by.who,
        paused_why=None if by is None else by.why,
        orphaned=schedule.in_code and name.decode() not in declared,
        orphaned_at=instant_or_none(orphaned),
        running=running,
        total_runs=runs,
        total_failures=failures,
    )


def _text_or_none(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
