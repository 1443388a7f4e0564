"""What comes out of scripts: bodies, states, claims and jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from drumline.model.claim import Claim
from drumline.model.job import Attempt, Job, JobState, Progress, Source
from drumline.model.options import JobOptions, decode_options
from drumline.stores.redis.pack import unpack_id
from drumline.stores.rows import instant, instant_or_none

__all__ = ["as_claim", "as_job", "held_claim", "read_body"]

_HEADER = 22
_ENDS = {b"o": JobState.DONE, b"f": JobState.DEAD, b"c": JobState.CANCELLED}
_part = msgspec.msgpack.Decoder(tuple[bytes, bytes, bytes | None])
_origin = msgspec.msgpack.Decoder(tuple[Source, str | None, int | None])
_meta = msgspec.json.Decoder(dict[str, Any])
_progress = msgspec.json.Decoder(Progress)
_attempts = msgspec.json.Decoder(Attempt)
_NO_ORIGIN: tuple[Source, str | None, int | None] = (Source.MANUAL, None, None)


class Body(NamedTuple):
    """What was asked for when the job was enqueued."""

    created: int
    queue: str
    task: str
    key: str | None
    schedule: str | None
    tags: tuple[str, ...]
    args: bytes
    options: JobOptions
    meta: Mapping[str, Any]
    source: Source
    origin: str | None
    tick: int | None


def read_body(body: bytes) -> Body:
    head_end = _HEADER + int.from_bytes(body[15:18], "big")
    part_end = head_end + int.from_bytes(body[18:22], "big")
    queue, task, key, schedule, tags = _read_head(body[_HEADER:head_end])
    args, options, meta = _part.decode(body[head_end:part_end])
    rest = body[part_end:]
    return Body(
        int.from_bytes(body[:6], "big"),
        queue,
        task,
        key,
        schedule,
        tags,
        args,
        decode_options(options),
        _meta.decode(meta) if meta else {},
        *(_origin.decode(rest) if rest else _NO_ORIGIN),
    )


# Plain jobs of one task have the same head.
@lru_cache(maxsize=1024)
def _read_head(head: bytes) -> tuple[str, str, str | None, str | None, tuple[str, ...]]:
    queue, task, key, _, _, schedule, _, _, _, tags = msgspec.msgpack.decode(head)
    return queue, task, key or None, schedule or None, tuple(tags)


def as_claim(
    job_id: bytes, body: Body, fence: int, attempt: int, releases: int, due: int, replica: str, claimed: int, lease: int
) -> Claim:
    return Claim(
        unpack_id(job_id),
        fence,
        body.task,
        body.queue,
        attempt,
        body.args,
        body.options,
        replica,
        instant(body.created),
        instant(due),
        instant(claimed),
        instant(lease),
        body.tags,
        body.meta,
        body.source,
        body.schedule,
        instant_or_none(body.tick),
        body.key,
        False,
        releases,
    )


def held_claim(row: Sequence[Any]) -> Claim:
    """A claim, from a row of `show_claims`."""
    job_id, fence, attempt, releases, due, replica, claimed, cancelling, lease, body = row
    claim = as_claim(job_id, read_body(body), fence, attempt, releases, due, replica.decode(), claimed, lease)
    return msgspec.structs.replace(claim, cancelling=True) if cancelling else claim


def as_job(row: Sequence[Any], now: int) -> Job:
    """A job, from a row of `show_jobs`."""
    job_id, text, letter, fence, attempt, _, due, *more, lines, lease, progress, user_error = row
    body = read_body(text)
    return Job(
        id=unpack_id(job_id),
        task=body.task,
        queue=body.queue,
        priority=body.options.priority,
        attempt=attempt,
        max_attempts=body.options.max_attempts,
        fence=fence,
        args=body.args,
        options=body.options,
        created_at=instant(body.created),
        due_at=instant(due),
        lease_until=instant_or_none(lease),
        key=body.key,
        tags=body.tags,
        meta=body.meta,
        source=body.source,
        origin=body.origin,
        schedule=body.schedule,
        tick=instant_or_none(body.tick),
        progress=_progress.decode(progress) if progress else None,
        attempts=tuple(_attempts.decode_lines(lines)) if lines else (),
        user_error=user_error.decode() if user_error else None,
        **_read_state(letter, due, now, more),
    )


def _read_state(letter: bytes, due: int, now: int, more: Sequence[Any]) -> dict[str, Any]:
    """What depends on the stored state: its last four fields mean what that says."""
    if letter == b"x":
        replica, claimed, cancelling, _ = more
        state = JobState.CANCELLING if cancelling else JobState.RUNNING
        return {"state": state, "replica": replica.decode(), "claimed_at": instant(claimed)}
    if letter == b"w":
        leader = more[0]
        state = JobState.DELAYED if leader or due > now else JobState.READY
        return {"state": state, "waits_for": unpack_id(leader) if leader else None}
    finished, expires, result, is_repr = more
    return {
        "state": _ENDS[letter],
        "finished_at": instant(finished),
        "expires_at": instant(expires),
        "result": result,
        "result_is_repr": bool(is_repr),
    }
