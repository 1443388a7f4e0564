"""beat, expired and report: what a replica says, and hears, while it holds claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from drumline.model.claim import Claim, ClaimRef, Note
from drumline.model.instant import from_millis
from drumline.model.replica import Beat, ReplicaInfo, ReplicaState
from drumline.stores.postgres.claim import find_claims, row_claim
from drumline.stores.postgres.step import Step
from drumline.stores.postgres.ways import WAYS
from drumline.stores.relational.lines import line_rows
from drumline.stores.relational.members import find_members, starts_fleet
from drumline.stores.rows import instant_or_none, json_text
from drumline.stores.statements import Operation, Statement

__all__ = ["beat", "expired", "join_fleet", "report"]

_kept = msgspec.json.Decoder(list[tuple[str, int, bool]])
_ids = msgspec.json.Decoder(list[str])


def beat(info: ReplicaInfo, held: Sequence[ClaimRef]) -> Operation[tuple[Beat, bool]]:
    """The answer, and whether the replica has yet to join the fleet: by `join_fleet`, which tells the epoch anew."""
    is_gone = info.state is ReplicaState.GONE
    params = {"replica": info.id, "info": json_text(info), "is_gone": is_gone, "held": json_text(held)}
    ((now, epoch, version, is_known, kept_text, unknown_text, lease),) = yield Statement(WAYS.sql["beat"], params)
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
    ((epoch,),) = yield Statement(WAYS.sql["lock_fleet"])
    if info.role.fires:
        members = yield from find_members(WAYS)
        if starts_fleet(info, members, step.now):
            ((epoch,),) = yield Statement(WAYS.sql["start_epoch"])
    yield Statement(WAYS.sql["keep_replica"], {"id": info.id, "info": json_text(info), "now": step.now})
    grown: int = epoch
    return grown


def expired(limit: int) -> Operation[list[Claim]]:
    rows = yield Statement(WAYS.sql["find_expired"], {"limit": limit})
    return [row_claim(row) for row in rows]


def report(notes: Sequence[Note]) -> Operation[list[bool]]:
    refs = json_text([note.ref for note in notes])
    held = set((yield Statement(WAYS.sql["hold_claims"], {"refs": refs})))
    kept = [note for note in notes if (note.ref.id, note.ref.fence) in held]
    words: dict[str, dict[str, Any]] = {}
    for note in kept:
        words[note.ref.id] = {**words.get(note.ref.id, {}), **_words(note)}
    said = [{"id": job_id, **word} for job_id, word in words.items() if word]
    if said:
        yield Statement(WAYS.sql["keep_words"], {"words": json_text(said)})
    for note in kept:
        if note.lines:
            yield from _add_lines(note)
    return [(note.ref.id, note.ref.fence) in held for note in notes]


def _words(note: Note) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if note.progress is not None:
        said["progress"] = json_text(note.progress)
    if note.user_error:
        said["user_error"] = note.user_error
    return said


def _add_lines(note: Note) -> Operation[None]:
    which = {"job": note.ref.id, "fence": note.ref.fence}
    ((place, numbers),) = yield Statement(WAYS.sql["find_lines"], which)
    rows = line_rows(note, place, numbers)
    if rows:
        yield Statement(WAYS.sql["add_lines"], {"lines": json_text(rows)})
