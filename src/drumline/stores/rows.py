"""How values stand in rows, and come back from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import msgspec

from drumline.model.claim import Claim
from drumline.model.instant import from_millis, millis, to_millis
from drumline.model.job import Attempt, Job, JobState, KeyWindow, NewJob, Progress, Source, Start
from drumline.model.options import JobOptions, decode_options, encode_options
from drumline.model.outcome import OutcomeKind
from drumline.stores.base import SHORTEST_KEEP_MILLIS
from drumline.stores.statements import Row

__all__ = [
    "ENDS",
    "FAILED",
    "as_claim",
    "as_job",
    "attempt_bytes",
    "attempt_line",
    "ceil_millis",
    "due_of",
    "expires_of",
    "find_uuids",
    "instant",
    "instant_or_none",
    "job_params",
    "json_text",
    "options_params",
    "reads_as",
    "span_millis",
    "state_due",
    "window_letter",
]

# How an attempt ended that counts as a failure.
FAILED = frozenset(("failed", "timeout", "lost"))
# The stored letter of each end.
ENDS = {OutcomeKind.DONE: "o", OutcomeKind.DEAD: "f", OutcomeKind.CANCELLED: "c"}
_ENDED_STATES = {"o": JobState.DONE, "f": JobState.DEAD, "c": JobState.CANCELLED}
_WINDOWS = {KeyWindow.UNFINISHED: "u", KeyWindow.PENDING: "p", KeyWindow.TIME: "t"}
_MANUAL = Source.MANUAL.value
# What an id looks like that can stand in the store; one that cannot is just not found.
_HEX = frozenset("0123456789abcdefABCDEF")
_DASHES = (8, 13, 18, 23)

_tags = msgspec.json.Decoder(tuple[str, ...])
_meta = msgspec.json.Decoder(dict[str, Any])
_progress = msgspec.json.Decoder(Progress)
_attempts = msgspec.json.Decoder(Attempt)


# The same few instants come again and again in the rows of one claim.
instant = lru_cache(maxsize=4096)(from_millis)


def span_millis(span: timedelta) -> int:
    """As `millis`, in a third of the time: it is asked for three times for every job that ends."""
    return span.days * 86_400_000 + span.seconds * 1000 + span.microseconds // 1000


def due_of(start: Start, now: int) -> int:
    """When a job that starts so becomes due; a past start counts as now."""
    if start is None:
        return now
    return max(now + millis(start) if isinstance(start, timedelta) else to_millis(start), now)


def state_due(due: int, now: int) -> str:
    """The stored state of a job that waits for nothing but its due time."""
    return "d" if due > now else "r"


def reads_as(state: str, due: int, now: int, *, cancelling: bool = False) -> JobState:
    """The state in which a stored job reads now."""
    if state == "x":
        return JobState.CANCELLING if cancelling else JobState.RUNNING
    if state in _ENDED_STATES:
        return _ENDED_STATES[state]
    return JobState.DELAYED if state == "b" or due > now else JobState.READY


def expires_of(options: JobOptions, state: str, now: int) -> int:
    """Until when a job is kept that ends now in this state."""
    retention = options.retention
    kept = retention.done if state == "o" else retention.dead if state == "f" else retention.cancelled
    return now + max(span_millis(kept), SHORTEST_KEEP_MILLIS)


def find_uuids(ids: Iterable[str]) -> list[str]:
    """Those of the ids that can be ids of jobs."""
    return [job_id for job_id in ids if _is_uuid(job_id)]


def _is_uuid(text: str) -> bool:
    if len(text) != 36 or any(text[place] != "-" for place in _DASHES):
        return False
    return text.count("-") == len(_DASHES) and _HEX.issuperset(text.replace("-", ""))


def window_letter(window: KeyWindow) -> str:
    return _WINDOWS[window]


def attempt_line(attempt: Attempt) -> str:
    """The attempt as one line of a job's history; equal attempts have equal lines."""
    return attempt_bytes(attempt).decode()


def attempt_bytes(attempt: Attempt) -> bytes:
    return msgspec.json.encode(attempt) + b"\n"


def json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def instant_or_none(value: int | None) -> datetime | None:
    return None if value is None else instant(value)


def ceil_millis(instant: datetime) -> int:
    """The first whole millisecond that is not before the instant."""
    whole = to_millis(instant)
    return whole if from_millis(whole) == instant else whole + 1


def job_params(job: NewJob, now: int) -> dict[str, Any]:
    """The row of a new job that waits for nothing but its due time."""
    due = due_of(job.start, now)
    key = job.key
    return {
        "id": job.id,
        "task": job.task,
        "state": state_due(due, now),
        "due": due,
        "created": now,
        "args": job.args,
        "key": key and key.name,
        "key_window": key and _WINDOWS[key.window],
        "key_span": millis(key.span) if key is not None and key.span is not None else None,
        "tags": json_text(job.tags) if job.tags else None,
        "meta": msgspec.json.encode(job.meta) if job.meta else None,
        "source": job.source.value,
        "origin": job.origin,
        "schedule": job.schedule,
        "tick": None if job.tick is None else to_millis(job.tick),
        "waits_for": None,
        **options_params(job.options),
    }


# Nearly all jobs of a task share their options.
@lru_cache(maxsize=1024)
def options_params(options: JobOptions) -> Mapping[str, Any]:
    """The options as a row keeps them: whole, and those again that statements look at."""
    return MappingProxyType(
        {
            "queue": options.queue,
            "rank": -options.priority,
            "term": millis(options.lease),
            "options": encode_options(options),
        }
    )


def as_claim(row: Row, args: bytes) -> Claim:
    """A claim, from its arguments and a row with the columns in the order of its fields."""
    return Claim(
        row[0],
        row[1],
        row[2],
        row[3],
        row[4],
        args,
        decode_options(row[6]),
        row[7],
        instant(row[8]),
        instant(row[9]),
        instant(row[10]),
        instant(row[11]),
        _tags.decode(row[12]) if row[12] else (),
        _meta.decode(row[13]) if row[13] else {},
        Source.MANUAL if row[14] == _MANUAL else Source.SCHEDULED,
        row[15],
        instant_or_none(row[16]),
        row[17],
        bool(row[18]),
        row[19],
    )


def as_job(row: Row, now: int) -> Job:
    """A job, from a row of `pick_jobs` or `pick_ended`."""
    (job_id, task, queue, state, attempt, fence, args, options_text, created, due, claimed, lease, replica) = row[:13]
    (finished, expires, key, tags, meta, source, origin, schedule, tick, waits_for) = row[13:23]
    (progress, attempts, result, result_is_repr, user_error, cancelling) = row[23:]
    options = decode_options(options_text)
    return Job(
        id=job_id,
        task=task,
        queue=queue,
        state=reads_as(state, due, now, cancelling=bool(cancelling)),
        priority=options.priority,
        attempt=attempt,
        max_attempts=options.max_attempts,
        fence=fence,
        args=args,
        options=options,
        created_at=instant(created),
        due_at=instant(due),
        claimed_at=instant_or_none(claimed),
        lease_until=instant_or_none(lease),
        replica=replica,
        finished_at=instant_or_none(finished),
        expires_at=instant_or_none(expires),
        key=key,
        tags=_tags.decode(tags) if tags else (),
        meta=_meta.decode(meta) if meta else {},
        source=Source(source),
        origin=origin,
        schedule=schedule,
        tick=instant_or_none(tick),
        waits_for=waits_for,
        progress=_progress.decode(progress) if progress else None,
        attempts=tuple(_attempts.decode_lines(attempts)) if attempts else (),
        result=result,
        result_is_repr=bool(result_is_repr),
        user_error=user_error,
    )
