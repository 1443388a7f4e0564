"""How values are sent to statements: whole batches, each as one JSON document, or as one array for each column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from drumline.model.instant import millis, to_millis
from drumline.model.job import JobState, NewJob, Start
from drumline.model.options import JobOptions, encode_options
from drumline.model.outcome import Outcome, OutcomeKind
from drumline.model.query import HISTOGRAM_MILLIS, histogram_bucket
from drumline.stores.base import SHORTEST_KEEP_MILLIS
from drumline.stores.rows import ENDS, FAILED, attempt_line, json_text, span_millis, window_letter

__all__ = ["JobRow", "from_text", "job_row", "outcome_columns", "to_text", "waiting_state"]

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


class Rest(msgspec.Struct, omit_defaults=True):
    """What only few outcomes tell, as `finish` reads it; `start_at` and `start_in` in milliseconds."""

    place: int
    failed: bool = False
    start_at: int | None = None
    start_in: int | None = None
    error: str | None = None
    is_repr: bool = False
    releases: int = 0


_KINDS = {**ENDS, OutcomeKind.RETRY: "r", OutcomeKind.RELEASE: "l"}
_BUCKETS = [str(bucket) for bucket in range(len(HISTOGRAM_MILLIS) + 1)]


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


def outcome_columns(outcomes: Sequence[Outcome], places: Sequence[int]) -> dict[str, str]:
    """The outcomes in these places, as `finish` reads them: an array for each column, and a row only for what few tell.

    A row for each outcome takes the server three times as long to read.
    """
    columns = zip(*(_outcome_row(outcomes[place]) for place in places), strict=True) if places else [()] * 9
    ids, fences, kinds, lines, keeps, keeps_cancelled, waits, runs, results = columns
    rests = (_rest(place, outcomes[place]) for place in places)
    return {
        "places": _array(map(str, places)),
        "ids": _array(ids),
        "fences": _array(fences),
        "kinds": _array(kinds),
        "lines": _text_array(lines),
        "keeps": _array(keeps),
        "keeps_cancelled": _array(keeps_cancelled),
        "waits": _array(waits),
        "runs": _array(runs),
        "results": _text_array(results),
        "more": json_text([rest for rest in rests if rest is not None]),
    }


def _outcome_row(outcome: Outcome) -> tuple[Any, ...]:
    """As texts, but for a result that there is not."""
    claim, attempt = outcome.claim, outcome.attempt
    keep = _kept(claim.options)
    return (
        claim.id,
        str(claim.fence),
        # o done, f dead, c cancelled, r retry or l release.
        _KINDS[outcome.kind],
        attempt_line(attempt),
        # How long the job is kept if it ends so, or as cancelled.
        keep[outcome.kind],
        keep[OutcomeKind.CANCELLED],
        # Buckets of the histograms.
        _BUCKETS[histogram_bucket(span_millis(attempt.started_at - claim.due_at))],
        _BUCKETS[histogram_bucket(span_millis(attempt.ended_at - attempt.started_at))],
        None if outcome.result is None else to_text(outcome.result),
    )


def _rest(place: int, outcome: Outcome) -> Rest | None:
    """None where there is nothing to tell."""
    attempt = outcome.attempt
    has_failed = attempt.ended in FAILED
    if not (has_failed or attempt.error or outcome.start is not None or outcome.result_is_repr or outcome.releases):
        return None
    at, wait = split_start(outcome.start)
    return Rest(place, has_failed, at, wait, attempt.died_of, outcome.result_is_repr, outcome.releases)


def _array(values: Iterable[str]) -> str:
    """An array of what needs no quotes."""
    return "{" + ",".join(values) + "}"


def _text_array(values: Sequence[str | None]) -> str:
    """An array of texts; none of them holds a NUL, for no column of text can."""
    if not values:
        return "{}"
    if None in values:
        return "{" + ",".join("null" if value is None else f'"{_escape(value)}"' for value in values) + "}"
    return '{"' + _escape("\0".join(map(str, values))).replace("\0", '","') + '"}'


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


@lru_cache(maxsize=1024)
def _kept(options: JobOptions) -> dict[OutcomeKind, str]:
    """For how many milliseconds a job is kept, by how it ends."""
    retention = options.retention
    spans = {
        OutcomeKind.DONE: retention.done,
        OutcomeKind.DEAD: retention.dead,
        OutcomeKind.CANCELLED: retention.cancelled,
    }
    kept = {kind: str(max(span_millis(span), SHORTEST_KEEP_MILLIS)) for kind, span in spans.items()}
    return {OutcomeKind.RETRY: "0", OutcomeKind.RELEASE: "0", **kept}
