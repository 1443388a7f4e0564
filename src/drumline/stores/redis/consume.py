"""claim, report, finish, beat and expired."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from drumline.model.claim import Claim, Claimed, ClaimRef, Note, Share
from drumline.model.instant import millis, to_millis
from drumline.model.job import LogLine
from drumline.model.options import JobOptions
from drumline.model.outcome import Outcome, OutcomeKind
from drumline.model.query import HISTOGRAM_MILLIS, histogram_bucket
from drumline.model.replica import Beat, ReplicaInfo, ReplicaState
from drumline.stores.redis.calls import Call, Operation
from drumline.stores.redis.pack import key_place, lane_of, opaque, pack, pack_id, start_item
from drumline.stores.redis.rows import as_claim, held_claim, read_body
from drumline.stores.rows import FAILED, attempt_bytes, instant, instant_or_none, span_millis

__all__ = ["beat", "claim", "claim_call", "expired", "finish", "read_claimed", "report"]

_KINDS = {
    OutcomeKind.DONE: "o",
    OutcomeKind.DEAD: "f",
    OutcomeKind.CANCELLED: "c",
    OutcomeKind.RETRY: "r",
    OutcomeKind.RELEASE: "l",
}
# The fields in which the buckets of both histograms are counted.
_WAITS = tuple(f"w{bucket}" for bucket in range(len(HISTOGRAM_MILLIS) + 1))
_RUNS = tuple(f"r{bucket}" for bucket in range(len(HISTOGRAM_MILLIS) + 1))


def claim(replica: str, queues: Sequence[Share], limit: int, tasks: Sequence[str], token: str) -> Operation[Claimed]:
    answer = yield claim_call(replica, queues, limit, tasks, token)
    return read_claimed(replica, answer)


def claim_call(
    replica: str, queues: Sequence[Share], limit: int, tasks: Sequence[str], token: str, *, stands_by: bool = False
) -> Call:
    shares = [(share.queue, share.limit, share.but) for share in queues]
    return Call("claim", (pack((replica, token, limit, shares, tasks, stands_by)),))


def read_claimed(replica: str, answer: Any) -> Claimed:
    now, next_due, held = answer[:3]
    if held is not None:
        claims = [held_claim(row) for row in held]
    else:
        claims = [
            _new_claim(job_id, read_body(body), fence, attempt, releases, due, replica, now)
            for job_id, fence, attempt, releases, due, body in zip(*answer[3:], strict=True)
        ]
    return Claimed(claims=claims, now=instant(now), next_due=instant_or_none(next_due))


def report(notes: Sequence[Note]) -> Operation[list[bool]]:
    answers = yield Call("report", (pack([_note_item(note) for note in notes]),))
    return [bool(answer) for answer in answers]


def finish(outcomes: Sequence[Outcome]) -> Operation[list[bool]]:
    answers = yield Call("finish", (pack([_outcome_item(outcome) for outcome in outcomes]),))
    return [bool(answer) for answer in answers]


def beat(info: ReplicaInfo, held: Sequence[ClaimRef]) -> Operation[Beat]:
    refs = [(opaque(pack_id(ref.id)), ref.fence) for ref in held]
    is_gone = info.state is ReplicaState.GONE
    told = opaque(msgspec.json.encode(info))
    answer = yield Call("beat", (pack((info.id, is_gone, int(info.role.fires), millis(info.beat_every), told, refs)),))
    now, lost, cancelling, unknown, epoch, lease_end, version = answer
    return Beat(
        now=instant(now),
        lost=[held[place - 1] for place in lost],
        cancelling=[held[place - 1] for place in cancelling],
        unknown=[held_claim(row) for row in unknown],
        epoch=epoch,
        next_lease_end=instant_or_none(lease_end),
        version=version,
    )


def expired(limit: int) -> Operation[list[Claim]]:
    rows = yield Call("expired", (limit,))
    return [held_claim(row) for row in rows]


def _new_claim(
    job_id: bytes, body: Any, fence: int, attempt: int, releases: int, due: int, replica: str, now: int
) -> Claim:
    return as_claim(job_id, body, fence, attempt, releases, due, replica, now, now + _lease_of(body.options))


@lru_cache(maxsize=1024)
def _lease_of(options: JobOptions) -> int:
    return millis(options.lease)


def _note_item(note: Note) -> tuple[Any, ...]:
    progress = opaque(msgspec.json.encode(note.progress)) if note.progress else False
    lines = [_line_item(line) for line in note.lines]
    return opaque(pack_id(note.ref.id)), note.ref.fence, progress, note.user_error or False, lines


def _line_item(line: LogLine) -> tuple[Any, ...]:
    return line.number, opaque(msgspec.json.encode(line)), line.at.isoformat(), line.attempt


def _outcome_item(outcome: Outcome) -> tuple[Any, ...]:
    claim, attempt = outcome.claim, outcome.attempt
    ran = span_millis(attempt.ended_at - attempt.started_at)
    return (
        opaque(pack_id(claim.id)),
        claim.fence,
        _KINDS[outcome.kind],
        lane_of(claim.queue, claim.task),
        -claim.options.priority,
        to_millis(claim.created_at),
        *start_item(outcome.start),
        _keep_of(claim.options, outcome.kind),
        opaque(attempt_bytes(attempt)),
        False if outcome.result is None else opaque(outcome.result),
        outcome.result_is_repr,
        attempt.died_of or False,
        int(attempt.ended in FAILED),
        _WAITS[histogram_bucket(span_millis(attempt.started_at - claim.due_at))],
        _RUNS[histogram_bucket(ran)],
        ran,
        False if claim.key is None else key_place(claim.task, claim.key),
        claim.schedule or False,
        outcome.releases,
    )


@lru_cache(maxsize=1024)
def _keep_of(options: JobOptions, kind: OutcomeKind) -> int:
    """How long the job is kept once it has ended so; one that shall run again may still end as cancelled."""
    kept = options.retention
    if kind is OutcomeKind.DONE:
        return millis(kept.done)
    return millis(kept.dead if kind is OutcomeKind.DEAD else kept.cancelled)
