"""counts, series, ticks, workers, logs and audit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from drumline.errors import BadOption
from drumline.model.job import LogLine
from drumline.model.query import HISTOGRAM_MILLIS, Answer, AuditRow, By, Count, Page, SeriesPoint
from drumline.model.replica import Replica, ReplicaInfo, ReplicaState
from drumline.model.schedule import Decision, Rule, Tick
from drumline.stores.base import KEPT_LINES
from drumline.stores.redis.calls import Call, Operation
from drumline.stores.redis.pack import pack_id, unpack_id
from drumline.stores.rows import ceil_millis, instant, instant_or_none

__all__ = ["audit", "counts", "logs", "series", "ticks", "workers"]

_BUCKETS = len(HISTOGRAM_MILLIS) + 1
_COLUMNS = {"r": "ready", "d": "delayed", "x": "running", "o": "done", "f": "dead", "c": "cancelled"}
_TOTALS = {"done": "total_done", "failures": "total_failures"}
_ENDS = {"o": "done", "failed": "failed", "f": "dead", "c": "cancelled"}
_info = msgspec.json.Decoder(ReplicaInfo)
_rule = msgspec.json.Decoder(Rule)
_line = msgspec.json.Decoder(LogLine)
_audit = msgspec.json.Decoder(tuple[By, str, tuple[str, ...], str | None])
# What marks the line that says that there were more.
_CUT = b"!"


def counts() -> Operation[list[Count]]:
    numbers, totals, since = yield Call("counts")
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for lane, state, number in _fields(numbers):
        rows.setdefault(lane, {})[_COLUMNS[state]] = int(number)
    for lane, what, value in _fields(totals):
        row = rows.setdefault(lane, {})
        if what == "error":
            row["last_error"] = value.decode()
        elif what in _TOTALS:
            row[_TOTALS[what]] = int(value)
    for name, due in zip(since[::2], since[1::2], strict=True):
        queue, task = name.decode().split(" ")
        rows.setdefault((queue, task), {})["oldest_ready"] = instant(int(due))
    return [Count(queue=queue, task=task, **row) for (queue, task), row in sorted(rows.items())]


def series(start: datetime, end: datetime) -> Operation[list[SeriesPoint]]:
    rows = yield Call("series", (ceil_millis(start), ceil_millis(end)))
    return [point for minute, fields in rows for point in _points(int(minute), fields)]


def ticks(schedule: str | None, after: str | None, limit: int) -> Operation[Page[Tick]]:
    recorded, tick = _read_cursor(after)
    rows = yield Call("ticks", (schedule or "", recorded, tick, limit + 1))
    page = [_tick(row) for row in rows[:limit]]
    if len(rows) <= limit:
        return Page(page)
    last = rows[limit - 1]
    return Page(page, f"{last[7]} {_tick_name(last).decode()}")


def workers() -> Operation[list[Replica]]:
    now, rows = yield Call("workers")
    members = [(started, seen, every, _info.decode(info), running) for started, seen, every, info, running in rows]
    members.sort(key=lambda member: (member[0], member[3].id))
    alive: dict[str, int] = {}
    found: list[Replica] = []
    for started, seen, every, info, running in members:
        shown, is_alive = info.name, now - seen <= 3 * every
        if is_alive:
            alive[shown] = alive.get(shown, 0) + 1
            if alive[shown] > 1:
                shown = f"{shown}#{alive[shown]}"
        found.append(
            Replica(
                info=info,
                shown=shown,
                state=info.state if is_alive else ReplicaState.LOST,
                started_at=instant(started),
                seen_at=instant(seen),
                running=tuple(sorted(unpack_id(job_id) for job_id in running)),
            )
        )
    return found


def logs(job_id: str, after: int, limit: int) -> Operation[list[LogLine]]:
    if limit <= 0:
        return []
    lines = yield Call("logs", (pack_id(job_id), after, limit))
    return [_cut_line(line) if line.startswith(_CUT) else _line.decode(line) for line in lines]


def audit(after: str | None, limit: int) -> Operation[Page[AuditRow]]:
    at, row_id = _read_cursor(after)
    rows = yield Call("audit", (at, row_id, limit + 1))
    page = [_audit_row(row) for row in rows[:limit]]
    last = rows[limit - 1] if len(rows) > limit else None
    return Page(page, None if last is None else f"{last[1]} {last[0].decode()}")


def _fields(flat: Sequence[bytes]) -> Iterator[tuple[tuple[str, str], str, bytes]]:
    """Lane, what, and value, of each field 'queue task what' of a hash."""
    for field, value in zip(flat[::2], flat[1::2], strict=True):
        queue, task, what = field.decode().split(" ")
        yield (queue, task), what, value


def _points(minute: int, flat: Sequence[bytes]) -> list[SeriesPoint]:
    points: dict[tuple[str, str], dict[str, Any]] = {}
    for lane, what, value in _fields(flat):
        point = points.setdefault(lane, {"wait": [0] * _BUCKETS, "run": [0] * _BUCKETS})
        if what in _ENDS:
            point[_ENDS[what]] = int(value)
        else:
            point["wait" if what[0] == "w" else "run"][int(what[1:])] = int(value)
    return [
        SeriesPoint(
            minute=instant(minute),
            queue=queue,
            task=task,
            **{**point, "wait": tuple(point["wait"]), "run": tuple(point["run"])},
        )
        for (queue, task), point in sorted(points.items())
    ]


def _read_cursor(after: str | None) -> tuple[str, str]:
    if after is None:
        return "", ""
    moment, _, rest = after.partition(" ")
    if not moment.isdecimal() or not rest:
        raise BadOption("after", "the `next` of an earlier page", after)
    return moment, rest


def _tick_name(row: Sequence[Any]) -> bytes:
    schedule, mark, replica = row[:3]
    return b"\n".join((schedule, replica, mark))


def _tick(row: Sequence[Any]) -> Tick:
    schedule, mark, replica, at, decision, reason, by, recorded, job, until, count, outcome, run_time, rule = row
    return Tick(
        schedule=schedule.decode(),
        mark=mark.decode(),
        replica=replica.decode(),
        instant=instant(at),
        decision=Decision(decision.decode()),
        reason=reason.decode(),
        by=by.decode(),
        recorded_at=instant(recorded),
        job_id=unpack_id(job) if job else None,
        until=instant_or_none(until),
        count=count,
        outcome=outcome.decode() if outcome else None,
        run_time=None if run_time is None else timedelta(milliseconds=run_time),
        rule=_rule.decode(rule) if rule else None,
    )


def _cut_line(line: bytes) -> LogLine:
    attempt, _, at = line.removeprefix(_CUT).decode().partition(" ")
    message = f"only the first {KEPT_LINES:,} lines are kept"
    return LogLine(0, datetime.fromisoformat(at), "warning", message, {}, int(attempt))


def _audit_row(row: Sequence[Any]) -> AuditRow:
    row_id, at, answers, text = row
    by, action, targets, part_of = _audit.decode(text)
    return AuditRow(
        id=row_id.decode(),
        at=instant(at),
        by=by,
        action=action,
        targets=targets,
        answers=tuple(Answer(answer.decode()) for answer in answers),
        part_of=part_of,
    )
