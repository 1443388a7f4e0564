"""counts, ticks, workers, logs and audit."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from drumline.errors import BadOption
from drumline.model.instant import from_millis
from drumline.model.job import LogLine
from drumline.model.query import Answer, AuditRow, By, Count, Page
from drumline.model.replica import Replica, ReplicaState
from drumline.model.schedule import Decision, Rule, Tick
from drumline.stores.relational.members import find_members
from drumline.stores.relational.ways import S, Ways
from drumline.stores.rows import find_uuids, instant_or_none
from drumline.stores.statements import Operation, Row, Statement

__all__ = ["audit", "counts", "logs", "ticks", "workers"]

# Above every instant and every text that is stored.
_TOP = 2**62
_fields = msgspec.json.Decoder(dict[str, Any])
_by = msgspec.json.Decoder(By)
_texts = msgspec.json.Decoder(tuple[str, ...])
_answers = msgspec.json.Decoder(tuple[Answer, ...])
_rule = msgspec.json.Decoder(Rule)


def counts(ways: Ways[S]) -> Operation[list[Count]]:
    rows = yield Statement(ways.sql["count_jobs"])
    oldest: dict[tuple[str, str], int] = {}
    for queue, task, due in (yield Statement(ways.sql["find_oldest_ready"])):
        oldest[queue, task] = min(due, oldest.get((queue, task), due))
    # A row that has become empty, and of which no attempt was ever closed, tells nothing.
    return [_count(row, oldest.get((row[0], row[1]))) for row in rows if any(row[2:9])]


def ticks(ways: Ways[S], schedule: str | None, after: str | None, limit: int) -> Operation[Page[Tick]]:
    place = _read_cursor(after, 5) or [_TOP, _TOP, "", "", ""]
    names = ("recorded", "instant", "schedule", "replica", "mark")
    which = {"name": schedule, "limit": limit + 1, **dict(zip(names, place, strict=True))}
    rows = yield Statement(ways.sql["read_ticks" if schedule is None else "read_ticks_of"], which)
    page = [_tick(row) for row in rows[:limit]]
    last = rows[limit - 1] if len(rows) > limit else None
    return Page(page, None if last is None else _cursor(last[7], last[3], last[0], last[2], last[1]))


def workers(ways: Ways[S], step: S) -> Operation[list[Replica]]:
    members = yield from find_members(ways)
    running: dict[str, list[str]] = {}
    for replica, job_id in (yield Statement(ways.sql["find_all_running"])):
        running.setdefault(replica, []).append(job_id)
    seen: dict[str, int] = {}
    found: list[Replica] = []
    for member in members:
        shown, is_alive = member.info.name, member.is_alive(step.now)
        if is_alive:
            seen[shown] = seen.get(shown, 0) + 1
            if seen[shown] > 1:
                shown = f"{shown}#{seen[shown]}"
        found.append(
            Replica(
                info=member.info,
                shown=shown,
                state=member.info.state if is_alive else ReplicaState.LOST,
                started_at=from_millis(member.started),
                seen_at=from_millis(member.seen),
                running=tuple(sorted(running.get(member.info.id, ()))),
            )
        )
    return found


def logs(ways: Ways[S], job_id: str, after: int, limit: int) -> Operation[list[LogLine]]:
    if not find_uuids([job_id]):
        return []
    rows = yield Statement(ways.sql["read_lines"], {"job": job_id, "after": after, "limit": limit})
    return [
        LogLine(max(number, 0), from_millis(at), level, message, _fields.decode(fields) if fields else {}, attempt)
        for number, at, level, message, fields, attempt in rows
    ]


def audit(ways: Ways[S], after: str | None, limit: int) -> Operation[Page[AuditRow]]:
    at, row_id = _read_cursor(after, 2) or [_TOP, ""]
    rows = yield Statement(ways.sql["read_audit"], {"at": at, "id": row_id, "limit": limit + 1})
    page = [
        AuditRow(
            id=audit_id,
            at=from_millis(moment),
            by=_by.decode(by),
            action=action,
            targets=_texts.decode(targets),
            answers=_answers.decode(answers),
            part_of=part_of,
        )
        for audit_id, moment, by, action, targets, answers, part_of in rows[:limit]
    ]
    last = rows[limit - 1] if len(rows) > limit else None
    return Page(page, None if last is None else _cursor(last[1], last[0]))


def _cursor(*place: int | str) -> str:
    return msgspec.json.encode(place).decode()


def _read_cursor(after: str | None, size: int) -> list[Any] | None:
    if after is None:
        return None
    try:
        place: list[int | str] = msgspec.json.decode(after, type=list[int | str])
    except msgspec.MsgspecError:
        place = []
    is_ours = len(place) == size and all(isinstance(part, str) or abs(part) <= _TOP for part in place)
    if not is_ours:
        raise BadOption("after", "the `next` of an earlier page", after)
    return place


def _count(row: Row, oldest: int | None) -> Count:
    queue, task, ready, delayed, running, done, dead, cancelled, _, total_done, total_failures, last_error = row
    return Count(
        queue=queue,
        task=task,
        ready=ready,
        delayed=delayed,
        running=running,
        done=done,
        dead=dead,
        cancelled=cancelled,
        total_done=total_done,
        total_failures=total_failures,
        last_error=last_error,
        oldest_ready=instant_or_none(oldest),
    )


def _tick(row: Row) -> Tick:
    schedule, mark, replica, instant, decision, reason, by, recorded, job, until, count, outcome, run_time, rule = row
    return Tick(
        schedule=schedule,
        mark=mark,
        replica=replica,
        instant=from_millis(instant),
        decision=Decision(decision),
        reason=reason,
        by=by,
        recorded_at=from_millis(recorded),
        job_id=job,
        until=instant_or_none(until),
        count=count,
        outcome=outcome,
        run_time=None if run_time is None else timedelta(milliseconds=run_time),
        rule=None if rule is None else _rule.decode(rule),
    )
