"""How values are sent to statements: whole batches, each as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from drumline.model.instant import millis, to_millis
from drumline.model.job import JobState, NewJob, Start
from drumline.model.options import JobOptions, encode_options
from drumline.model.outcome import Outcome, OutcomeKind
from drumline.model.query import histogram_bucket
from drumline.stores.base import SHORTEST_KEEP_MILLIS
from drumline.stores.rows import ENDS, FAILED, attempt_line, json_text, span_millis, window_letter

__all__ = ["JobRow", "OutcomeRow", "from_text", "job_row", "outcome_row", "to_text", "waiting_state"]

_HEXADECIMAL = "\\x"


class OptionsRow(msgspec.Struct, frozen=True):
    """The options as a row keeps them: whole, and those again that statements look at."""

    queue: str
    rank: int
    term: int
    options: str


class JobRow(msgspec.Struct, omit_defaults=True):
    """A new job, as `add_jobs` reads it; `start_at` and `start_in` in milliseconds."""

    id: str
    queue: str
    task: str
    rank: int
    term: int
    args: str
    options: str
    source: str
    start_at: int | None = None
    start_in: int | None = None
    key: str | None = None
    key_window: str | None = None
    key_span: int | None = None
    tags: str | None = None
    meta: str | None = None
    origin: str | None = None
    schedule: str | None = None
    tick: int | None = None
    waits_for: str | None = None


class OutcomeRow(msgspec.Struct, omit_defaults=True):
    """An outcome, as `finish` reads it. The kind is o done, f dead, c cancelled, r retry or l release."""

    place: int
    id: str
    fence: int
    kind: str
    line: str
    # How long the job is kept if it ends so, or as cancelled.
    keep: int
    keep_cancelled: int
    # Buckets of the histograms.
    wait: int
    run: int
    failed: bool = False
    start_at: int | None = None
    start_in: int | None = None
    error: str | None = None
    result: str | None = None
    is_repr: bool = False
    releases: int = 0


_KINDS = {**ENDS, OutcomeKind.RETRY: "r", OutcomeKind.RELEASE: "l"}


def waiting_state(letter: str) -> JobState:
    """How a job reads that was just made or moved."""
    return JobState.READY if letter == "r" else JobState.DELAYED


def to_text(value: bytes) -> str:
    """Bytes as a column of text holds them: as they are, or, where no text can be so, in hexadecimal after a backslash.

    Nothing that is JSON begins with one.
    """
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return _HEXADECIMAL + value.hex()
    return _HEXADECIMAL + value.hex() if "\x00" in text or text.startswith("\\") else text


def from_text(text: str) -> bytes:
    """The bytes that `to_text` wrote."""
    return bytes.fromhex(text.removeprefix(_HEXADECIMAL)) if text.startswith("\\") else text.encode()


@lru_cache(maxsize=1024)
def options_row(options: JobOptions) -> OptionsRow:
    return OptionsRow(options.queue, -options.priority, millis(options.lease), encode_options(options).decode())


def job_row(job: NewJob, waits_for: str | None = None) -> JobRow:
    options, key = options_row(job.options), job.key
    at, wait = split_start(job.start)
    return JobRow(
        id=job.id,
        queue=options.queue,
        task=job.task,
        rank=options.rank,
        term=options.term,
        args=to_text(job.args),
        options=options.options,
        source=job.source.value,
        start_at=at,
        start_in=wait,
        key=None if key is None else key.name,
        key_window=None if key is None else window_letter(key.window),
        key_span=millis(key.span) if key is not None and key.span is not None else None,
        tags=json_text(job.tags) if job.tags else None,
        meta=json_text(job.meta) if job.meta else None,
        origin=job.origin,
        schedule=job.schedule,
        tick=None if job.tick is None else to_millis(job.tick),
        waits_for=waits_for,
    )


def split_start(start: Start) -> tuple[int | None, int | None]:
    """The start as an instant, or as a time from the store's now; both in milliseconds, neither for at once."""
    if isinstance(start, datetime):
        return to_millis(start), None
    if isinstance(start, timedelta):
        return None, millis(start)
    return None, None


def outcome_row(place: int, outcome: Outcome) -> OutcomeRow:
    claim, attempt = outcome.claim, outcome.attempt
    at, wait = split_start(outcome.start)
    keep = _kept(claim.options)
    return OutcomeRow(
        place=place,
        id=claim.id,
        fence=claim.fence,
        kind=_KINDS[outcome.kind],
        line=attempt_line(attempt),
        keep=keep[outcome.kind],
        keep_cancelled=keep[OutcomeKind.CANCELLED],
        wait=histogram_bucket(span_millis(attempt.started_at - claim.due_at)),
        run=histogram_bucket(span_millis(attempt.ended_at - attempt.started_at)),
        failed=attempt.ended in FAILED,
        start_at=at,
        start_in=wait,
        error=attempt.died_of,
        result=None if outcome.result is None else to_text(outcome.result),
        is_repr=outcome.result_is_repr,
        releases=outcome.releases,
    )


@lru_cache(maxsize=1024)
def _kept(options: JobOptions) -> dict[OutcomeKind, int]:
    """For how many milliseconds a job is kept, by how it ends."""
    retention = options.retention
    spans: Sequence[tuple[OutcomeKind, timedelta]] = (
        (OutcomeKind.DONE, retention.done),
        (OutcomeKind.DEAD, retention.dead),
        (OutcomeKind.CANCELLED, retention.cancelled),
    )
    kept: dict[OutcomeKind, Any] = {kind: max(span_millis(span), SHORTEST_KEEP_MILLIS) for kind, span in spans}
    return {OutcomeKind.RETRY: 0, OutcomeKind.RELEASE: 0, **kept}
