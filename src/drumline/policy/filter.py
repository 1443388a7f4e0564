"""A filter of jobs from the words that name it: in code, on a command line, in a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from drumline.errors import BadOption
from drumline.model.instant import parse_instant
from drumline.model.job import JobState, Source
from drumline.model.query import JobFilter
from drumline.policy.options import check_storable, pick

__all__ = ["job_filter"]


def job_filter(
    *,
    id: str | Iterable[str] | None = None,
    state: JobState | str | Iterable[JobState | str] | None = None,
    task: str | None = None,
    queue: str | None = None,
    tag: str | None = None,
    key: str | None = None,
    schedule: str | None = None,
    source: str | None = None,
    origin: str | None = None,
    meta: Mapping[str, Any] | None = None,
    created_from: datetime | str | None = None,
    created_to: datetime | str | None = None,
    error: str | None = None,
) -> JobFilter:
    """The filter that these words name."""
    return JobFilter(
        ids=(id,) if isinstance(id, str) else None if id is None else tuple(id),
        states=frozenset(_states(state)),
        task=_text(task, "task"),
        queue=_text(queue, "queue"),
        tag=_text(tag, "tag"),
        key=_text(key, "key"),
        schedule=_text(schedule, "schedule"),
        source=None if source is None else pick(Source, source, "source"),
        origin=_text(origin, "origin"),
        meta=meta or {},
        created_from=None if created_from is None else parse_instant(created_from, "created_from"),
        created_to=None if created_to is None else parse_instant(created_to, "created_to"),
        # Every error contains an empty text.
        error=_text(error, "error") or None,
    )


def _text(value: str | None, option: str) -> str | None:
    return None if value is None else check_storable(value, option)


def _states(state: JobState | str | Iterable[JobState | str] | None) -> Iterable[JobState]:
    if state is None:
        return ()
    wanted = [state] if isinstance(state, str) else list(state)
    try:
        found = [JobState(one) for one in wanted]
    except ValueError:
        found = []
    if not found:
        raise BadOption("state", f"one of {', '.join(JobState)}", state)
    return found
