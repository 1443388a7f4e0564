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
from drumline.stores.postgres.claim import find_claims, row_claim
from drumline.stores.postgres.step import Step
from drumline.stores.rows import instant_or_none, json_text
from drumline.stores.statements import Operation, Statement

__all__ = ["CUT", "Member", "beat", "expired", "find_members", "join_fleet", "report"]

_SQL = read_statements(__package__, "beat.sql")
_SILENT_BEATS = 3
# The number of the line that says that a log was cut: one that no task's own line has. It is shown as 0.
CUT = -1
_info = msgspec.json.Decoder(ReplicaInfo)
_kept = msgspec.json.Decoder(list[tuple[str, int, bool]])
_ids = msgspec.json.Decoder(list[str])


class Member(NamedTuple):
    """A replica, as last heard of."""

    info: ReplicaInfo
    started: int
    seen: int

    def is_alive(self, now: int) -> bool:
        return now - self.seen <= _SILENT_BEATS * millis(self.info.beat_every)


def beat(info: ReplicaInfo, held: Sequence[ClaimRef]) -> Operation[tuple[Beat, bool]]:
    """The answer, and whether the replica has yet to join the fleet: by `join_fleet`, which tells the epoch anew."""
    is_gone = info.state is ReplicaState.GONE
    params = {"replica": info.id, "info": json_text(info), "is_gone": is_gone, "held": json_text(held)}
    ((now, epoch, version, is_known, kept_text, unknown_text, lease),) = yield Statement(_SQL["beat"], params)
    kept = {(job_id, fence): flag for job_id, fence, flag in _kept.decode(kept_text)}
    unknown = _ids.decode(unknown_text)
    claims: list[Claim] = []
    if unknown:
        claims = yield from find_claims(unknown)
    answer = Beat(
        now=from_millis(now),
        lost=[ref for ref in held if (ref.id, ref.fence) not in kept],
        cancelling=[ref for ref in held if kept.get((ref.id, ref.fence))],
        unknown=claims,
        epoch=epoch,
        next_lease_end=instant_or_none(lease),
        version=version,
    )
    return answer, not is_known and not is_gone


def join_fleet(step: Step, info: ReplicaInfo) -> Operation[int]:
    """Register a replica that is not known; the fleet's epoch, which grows if a fleet starts with it."""
    ((epoch,),) = yield Statement(_SQL["lock_fleet"])
    if info.role.fires:
        members = yield from find_members()
        is_new = all(member.info.id != info.id for member in members)
        if is_new and not any(member.info.role.fires and member.is_alive(step.now) for member in members):
            ((epoch,),) = yield Statement(_SQL["start_epoch"])
    yield Statement(_SQL["keep_replica"], {"id": info.id, "info": json_text(info), "now": step.now})
    grown: int = epoch
    return grown


def expired(limit: int) -> Operation[list[Claim]]:
    rows = yield Statement(_SQL["find_expired"], {"limit": limit})
    return [row_claim(row) for row in rows]


def report(notes: Sequence[Note]) -> Operation[list[bool]]:
    refs = json_text([note.ref for note in notes])
    held = set((yield Statement(_SQL["hold_claims"], {"refs": refs})))
    kept = [note for note in notes if (note.ref.id, note.ref.fence) in held]
    words: dict[str, dict[str, Any]] = {}
    for note in kept:
        words[note.ref.id] = {**words.get(note.ref.id, {}), **_words(note)}
    said = [{"id": job_id, **word} for job_id, word in words.items() if word]
    if said:
        yield Statement(_SQL["keep_words"], {"words": json_text(said)})
    for note in kept:
        if note.lines:
            yield from _add_lines(note)
    return [(note.ref.id, note.ref.fence) in held for note in notes]


def find_members() -> Operation[list[Member]]:
    """All replicas that are known, the oldest first."""
    rows = yield Statement(_SQL["find_replicas"])
    return [Member(_info.decode(info), started, seen) for _, info, started, seen in rows]


def _words(note: Note) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if note.progress is not None:
        said["progress"] = json_text(note.progress)
    if note.user_error:
        said["user_error"] = note.user_error
    return said


def _add_lines(note: Note) -> Operation[None]:
    which = {"job": note.ref.id, "fence": note.ref.fence}
    ((place, numbers),) = yield Statement(_SQL["find_lines"], which)
    known = set(numbers)
    new: list[dict[str, Any]] = []
    for line in note.lines:
        if line.number in known or place > KEPT_LINES:
            continue
        if place == KEPT_LINES:
            line = LogLine(CUT, line.at, "warning", f"only the first {KEPT_LINES:,} lines are kept", {}, line.attempt)
        known.add(line.number)
        new.append(_line_row(place, line))
        place += 1
    if new:
        yield Statement(_SQL["add_lines"], {**which, "lines": json_text(new)})


def _line_row(place: int, line: LogLine) -> dict[str, Any]:
    return {
        "place": place,
        "number": line.number,
        "at": to_millis(line.at),
        "level": line.level,
        "message": line.message,
        "fields": json_text(line.fields) if line.fields else None,
        "attempt": line.attempt,
    }
