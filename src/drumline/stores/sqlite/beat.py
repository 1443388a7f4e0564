"""beat, expired and report: what a replica says, and hears, while it holds claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drumline.model.claim import Claim, ClaimRef, Note
from drumline.model.instant import from_millis
from drumline.model.replica import Beat, ReplicaInfo, ReplicaState
from drumline.stores.relational.lines import line_rows
from drumline.stores.relational.members import find_members, starts_fleet
from drumline.stores.rows import as_claim, instant_or_none, json_text
from drumline.stores.sqlite.claim import find_claims
from drumline.stores.sqlite.finish import find_held
from drumline.stores.sqlite.step import Step
from drumline.stores.sqlite.ways import WAYS
from drumline.stores.statements import Many, Operation, Statement

__all__ = ["beat", "expired", "report"]


def beat(step: Step, info: ReplicaInfo, held: Sequence[ClaimRef]) -> Operation[Beat]:
    yield from _register(step, info)
    running = yield from find_held(ref.id for ref in held)
    kept = [ref for ref in held if (ref.id, ref.fence) in running]
    if kept:
        yield Many(WAYS.sql["prolong"], [{"id": ref.id, "now": step.now} for ref in kept])
    unknown = yield from _find_unknown(info.id, held)
    ((epoch, version, lease),) = yield Statement(WAYS.sql["find_fleet"])
    return Beat(
        now=from_millis(step.now),
        lost=[ref for ref in held if (ref.id, ref.fence) not in running],
        cancelling=[ref for ref in kept if running[ref.id, ref.fence][0]],
        unknown=unknown,
        epoch=epoch,
        next_lease_end=instant_or_none(lease),
        version=version,
    )


def expired(step: Step, limit: int) -> Operation[list[Claim]]:
    rows = yield Statement(WAYS.sql["find_expired"], {"now": step.now, "limit": limit})
    return [as_claim(row, row[5]) for row in rows]


def report(notes: Sequence[Note]) -> Operation[list[bool]]:
    held = yield from find_held(note.ref.id for note in notes)
    kept = [note for note in notes if (note.ref.id, note.ref.fence) in held]
    words = [_words(note) for note in kept if note.progress is not None or note.user_error is not None]
    if words:
        yield Many(WAYS.sql["keep_words"], words)
    for note in kept:
        if note.lines:
            yield from _add_lines(note)
    return [(note.ref.id, note.ref.fence) in held for note in notes]


def _register(step: Step, info: ReplicaInfo) -> Operation[None]:
    if info.state is ReplicaState.GONE:
        yield Statement(WAYS.sql["drop_replica"], {"id": info.id})
        return
    if info.role.fires:
        members = yield from find_members(WAYS)
        if starts_fleet(info, members, step.now):
            yield Statement(WAYS.sql["start_epoch"])
    yield Statement(WAYS.sql["keep_replica"], {"id": info.id, "info": json_text(info), "now": step.now})


def _find_unknown(replica: str, named: Sequence[ClaimRef]) -> Operation[list[Claim]]:
    rows = yield Statement(WAYS.sql["find_running"], {"replica": replica})
    known = {(ref.id, ref.fence) for ref in named}
    unknown = [job_id for job_id, fence in rows if (job_id, fence) not in known]
    return (yield from find_claims(unknown)) if unknown else []


def _words(note: Note) -> dict[str, Any]:
    progress = None if note.progress is None else json_text(note.progress)
    return {"id": note.ref.id, "progress": progress, "user_error": note.user_error or None}


def _add_lines(note: Note) -> Operation[None]:
    rows = yield Statement(WAYS.sql["find_lines"], {"job": note.ref.id, "fence": note.ref.fence})
    new = line_rows(note, rows[0][0], (number for _, number in rows))
    if new:
        yield Many(WAYS.sql["add_line"], new)
