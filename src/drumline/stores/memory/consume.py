"""claim, report, finish, beat and expired, in memory."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from drumline.model.claim import ANY_QUEUE, Claim, Claimed, ClaimRef, Note, Share
from drumline.model.instant import millis
from drumline.model.job import JobState, LogLine
from drumline.model.options import PRIVATE
from drumline.model.outcome import Outcome, OutcomeKind
from drumline.model.query import SeriesPoint, histogram_bucket
from drumline.model.replica import Beat, ReplicaInfo, ReplicaState
from drumline.stores.base import KEPT_ATTEMPTS, KEPT_LINES
from drumline.stores.memory.state import Member, Record, State, Total, due_at

__all__ = ["beat", "claim", "expired", "finish", "report"]

_TOKEN_LIFE = timedelta(minutes=1)
_FAILED = ("failed", "timeout", "lost")


def claim(
    state: State, now: datetime, replica: str, queues: Sequence[Share], limit: int, tasks: Sequence[str], token: str
) -> Claimed:
    _forget_tokens(state, now)
    if token in state.tokens:
        return Claimed(claims=_held(state, state.tokens[token][1]), now=now, next_due=_next_due(state, now))
    known = frozenset(tasks)
    taken: list[Record] = []
    for share in queues:
        taken += _take(state, now, share, limit - len(taken), known, replica)
    if taken:
        state.tokens[token] = (now, [(record.id, record.fence) for record in taken])
    return Claimed(claims=[record.as_claim() for record in taken], now=now, next_due=_next_due(state, now))


def report(state: State, notes: Sequence[Note]) -> list[bool]:
    return [_note(state, note) for note in notes]


def finish(state: State, now: datetime, outcomes: Sequence[Outcome]) -> list[bool]:
    return [_finish_one(state, now, outcome) for outcome in outcomes]


def beat(state: State, now: datetime, info: ReplicaInfo, held: Sequence[ClaimRef]) -> Beat:
    _register(state, now, info)
    lost: list[ClaimRef] = []
    cancelling: list[ClaimRef] = []
    for ref in held:
        record = _running(state, ref.id, ref.fence)
        if record is None:
            lost.append(ref)
            continue
        record.lease_until = now + record.options.lease
        if record.cancelling:
            cancelling.append(ref)
    named = set(held)
    mine = [record.as_claim() for record in state.running.values() if record.replica == info.id]
    return Beat(
        now=now,
        lost=lost,
        cancelling=cancelling,
        unknown=[claim for claim in mine if claim.ref not in named],
        epoch=state.epoch,
        next_lease_end=min((r.lease_until for r in state.running.values() if r.lease_until), default=None),
        version=state.version,
    )


def expired(state: State, now: datetime, limit: int) -> list[Claim]:
    past = [r for r in state.running.values() if r.lease_until is not None and r.lease_until <= now]
    past.sort(key=lambda record: (record.lease_until, record.id))
    return [record.as_claim() for record in past[:limit]]


def _running(state: State, job_id: str, fence: int) -> Record | None:
    """The job, if it runs under this very claim."""
    record = state.running.get(job_id)
    return record if record is not None and record.fence == fence else None


def _held(state: State, refs: list[tuple[str, int]]) -> list[Claim]:
    records = (_running(state, job_id, fence) for job_id, fence in refs)
    return [record.as_claim() for record in records if record is not None]


def _next_due(state: State, now: datetime) -> datetime | None:
    ahead = (r.due_at for r in state.waiting.values() if r.due_at > now and r.waits_for is None)
    return min(ahead, default=None)


def _forget_tokens(state: State, now: datetime) -> None:
    for token in [token for token, (at, _) in state.tokens.items() if at <= now - _TOKEN_LIFE]:
        del state.tokens[token]


def _take(state: State, now: datetime, share: Share, room: int, tasks: frozenset[str], replica: str) -> list[Record]:
    def is_offered(queue: str) -> bool:
        if queue in state.pauses:
            return False
        is_any = share.queue == ANY_QUEUE and not queue.startswith(PRIVATE) and queue not in share.but
        return is_any or queue == share.queue

    due = (
        record
        for record in state.waiting.values()
        if record.due_at <= now
        and record.waits_for is None
        and record.task in tasks
        and is_offered(record.options.queue)
    )
    first = heapq.nsmallest(min(share.limit, room), due, key=lambda r: (-r.options.priority, r.due_at, r.id))
    for record in first:
        state.run(record, replica, now)
    return first


def _note(state: State, note: Note) -> bool:
    record = _running(state, note.ref.id, note.ref.fence)
    if record is None:
        return False
    record.progress = note.progress or record.progress
    record.user_error = note.user_error or record.user_error
    kept = state.logs.setdefault(record.id, {})
    for line in note.lines:
        if len(kept) < KEPT_LINES:
            kept.setdefault((note.ref.fence, line.number), line)
        elif len(kept) == KEPT_LINES and (note.ref.fence, line.number) not in kept:
            cut = LogLine(0, line.at, "warning", f"only the first {KEPT_LINES:,} lines are kept", {}, line.attempt)
            kept[note.ref.fence, 0] = cut
    return True


def _finish_one(state: State, now: datetime, outcome: Outcome) -> bool:
    record = _running(state, outcome.claim.id, outcome.claim.fence)
    if record is None:
        standing = state.jobs.get(outcome.claim.id)
        return standing is not None and outcome.attempt in standing.attempts
    record.attempts = (*record.attempts, outcome.attempt)[-KEPT_ATTEMPTS:]
    kind = outcome.kind
    if record.cancelling and kind in (OutcomeKind.RETRY, OutcomeKind.RELEASE):
        kind = OutcomeKind.CANCELLED
    _count(state, now, outcome, kind)
    record.releases = outcome.releases
    if kind is OutcomeKind.RETRY:
        state.wait(record, due_at(outcome.start, now))
    elif kind is OutcomeKind.RELEASE:
        record.attempt -= 1
        state.wait(record, record.due_at if outcome.start is None else due_at(outcome.start, now))
    else:
        record.result, record.result_is_repr = outcome.result, outcome.result_is_repr
        state.end(record, JobState(kind.value), now, outcome.attempt.ended_at - outcome.attempt.started_at)
    return True


def _count(state: State, now: datetime, outcome: Outcome, kind: OutcomeKind) -> None:
    """Add the closed attempt to totals and series. A released one never happened."""
    if kind is OutcomeKind.RELEASE:
        return
    claim, attempt = outcome.claim, outcome.attempt
    failed = attempt.ended in _FAILED
    total = state.totals.setdefault((claim.queue, claim.task), Total())
    total.done += kind is OutcomeKind.DONE
    total.failures += failed
    total.last_error = attempt.died_of or total.last_error
    plan = state.plans.get(claim.schedule or "")
    if plan is not None:
        plan.total_runs += 1
        plan.total_failures += failed
    place = (now.replace(second=0, microsecond=0), claim.queue, claim.task)
    point = state.series.get(place) or SeriesPoint(minute=place[0], queue=claim.queue, task=claim.task)
    state.series[place] = msgspec.structs.replace(
        point,
        done=point.done + (kind is OutcomeKind.DONE),
        failed=point.failed + failed,
        dead=point.dead + (kind is OutcomeKind.DEAD),
        cancelled=point.cancelled + (kind is OutcomeKind.CANCELLED),
        wait=_counted(point.wait, attempt.started_at - claim.due_at),
        run=_counted(point.run, attempt.ended_at - attempt.started_at),
    )


def _counted(histogram: tuple[int, ...], span: timedelta) -> tuple[int, ...]:
    place = histogram_bucket(millis(span))
    return (*histogram[:place], histogram[place] + 1, *histogram[place + 1 :])


def _register(state: State, now: datetime, info: ReplicaInfo) -> None:
    if info.state is ReplicaState.GONE:
        state.members.pop(info.id, None)
        return
    known = state.members.get(info.id)
    if known is None:
        others = (member for member in state.members.values() if member.info.role.fires and member.is_alive(now))
        if info.role.fires and next(others, None) is None:
            state.epoch += 1
        state.members[info.id] = Member(info, now, now)
    else:
        known.info, known.seen_at = info, now
