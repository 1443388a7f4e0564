"""beat, expired and report: what a replica says, and hears, while it holds claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from drumline.model.claim import Claim, ClaimRef, Note
from drumline.model.instant import from_millis, millis, to_millis
from drumline.model.job import LogLine
from drumline.model.replica import Beat, ReplicaInfo, ReplicaState
from drumline.stores.base import KEPT_LINES
from drumline.stores.files import read_statements
from drumline.stores.rows import as_claim, instant_or_none, json_text
from drumline.stores.sqlite.claim import find_claims
from drumline.stores.sqlite.finish import find_held
from drumline.stores.sqlite.step import Step
from drumline.stores.statements import Many, Operation, Statement

__all__ = ["CUT", "Member", "beat", "expired", "find_members", "report"]

_SQL = read_statements(__package__, "beat.sql")
_SILENT_BEATS = 3
# The number of the line that says that a log was cut: one that no task's own line has. It is shown as 0.
CUT = -1
_info = msgspec.json.Decoder(ReplicaInfo)


class Member(NamedTuple):
    """A replica, as last heard of."""

    info: ReplicaInfo
    started: int
    seen: int

    def is_alive(self, now: int) -> bool:
        return now - self.seen <= _SILENT_BEATS * millis(self.info.beat_every)


def beat(step: Step, info: ReplicaInfo, held: Sequence[ClaimRef]) -> Operation[Beat]:
    yield from _register(step, info)
    running = yield from find_held(ref.id for ref in held)
    kept = [ref for ref in held if (ref.id, ref.fence) in running]
    if kept:
        yield Many(_SQL["prolong"], [{"id": ref.id, "now": step.now} for ref in kept])
    unknown = yield from _find_unknown(info.id, held)
    ((epoch, version, lease),) = yield Statement(_SQL["find_fleet"])
    return Beat(
        now=from_millis(step.now),
        lost=[ref for ref in held if (ref.id, ref.fence) not in running],
        cancelling=[ref for ref in kept if running[ref.id, ref.fence]],
        unknown=unknown,
        epoch=epoch,
        next_lease_end=instant_or_none(lease),
        version=version,
    )


def expired(step: Step, limit: int) -> Operation[list[Claim]]:
    rows = yield Statement(_SQL["find_expired"], {"now": step.now, "limit": limit})
    return [as_claim(row) for row in rows]


def report(notes: Sequence[Note]) -> Operation[list[bool]]:
    held = yield from find_held(note.ref.id for note in notes)
    kept = [note for note in notes if (note.ref.id, note.ref.fence) in held]
    words = [_words(note) for note in kept if note.progress is not None or note.user_error is not None]
    if words:
        yield Many(_SQL["keep_words"], words)
    for note in kept:
        if note.lines:
            yield from _add_lines(note)
    return [(note.ref.id, note.ref.fence) in held for note in notes]


def find_members() -> Operation[list[Member]]:
    """All replicas that are known, the oldest first."""
    rows = yield Statement(_SQL["find_replicas"])
    return [Member(_info.decode(info), started, seen) for _, info, started, seen in rows]


def _register(step: Step, info: ReplicaInfo) -> Operation[None]:
    if info.state is ReplicaState.GONE:
        yield Statement(_SQL["drop_replica"], {"id": info.id})
        return
    if info.role.fires:
        members = yield from find_members()
        is_new = all(member.info.id != info.id for member in members)
        if is_new and not any(member.info.role.fires and member.is_alive(step.now) for member in members):
            yield Statement(_SQL["start_epoch"])
    yield Statement(_SQL["keep_replica"], {"id": info.id, "info": msgspec.json.encode(info), "now": step.now})


def _find_unknown(replica: str, named: Sequence[ClaimRef]) -> Operation[list[Claim]]:
    rows = yield Statement(_SQL["find_running"], {"replica": replica})
    known = {(ref.id, ref.fence) for ref in named}
    unknown = [job_id for job_id, fence in rows if (job_id, fence) not in known]
    return (yield from find_claims(unknown)) if unknown else []


def _words(note: Note) -> dict[str, Any]:
    progress = None if note.progress is None else json_text(note.progress)
    return {"id": note.ref.id, "progress": progress, "user_error": note.user_error or None}


def _add_lines(note: Note) -> Operation[None]:
    rows = yield Statement(_SQL["find_lines"], {"job": note.ref.id, "fence": note.ref.fence})
    place, known = rows[0][0], {number for _, number in rows}
    new: list[dict[str, Any]] = []
    for line in note.lines:
        if line.number in known or place > KEPT_LINES:
            continue
        if place == KEPT_LINES:
            line = LogLine(CUT, line.at, "warning", f"only the first {KEPT_LINES:,} lines are kept", {}, line.attempt)
        known.add(line.number)
        new.append(_line_row(note.ref, place, line))
        place += 1
    if new:
        yield Many(_SQL["add_line"], new)


def _line_row(ref: ClaimRef, place: int, line: LogLine) -> dict[str, Any]:
    return {
        "job": ref.id,
        "place": place,
        "fence": ref.fence,
        "number": line.number,
        "at": to_millis(line.at),
        "level": line.level,
        "message": line.message,
        "fields": msgspec.json.encode(line.fields) if line.fields else None,
        "attempt": line.attempt,
    }
