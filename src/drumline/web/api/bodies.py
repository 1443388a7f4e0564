"""The JSON bodies that the API takes: their types are also their schemas in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

__all__ = ["Backfill", "Bulk", "Enqueue", "EnqueueOptions", "Filter", "Reason", "Register", "Reschedule", "given"]

Text = Annotated[str, Meta(max_length=2000)]
Span = float | str


class Reason(msgspec.Struct, forbid_unknown_fields=True):
    """Why, for the audit."""

    reason: Text = ""


class Reschedule(Reason, forbid_unknown_fields=True):
    """When a waiting job shall become due: at an instant, or after a time."""

    at: str | None = None
    delay: Span | None = None


class Filter(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Which jobs, by what is stored of them."""

    state: str | list[str] | None = None
    task: str | None = None
    queue: str | None = None
    tag: str | None = None
    key: str | None = None
    schedule: str | None = None
    source: str | None = None
    origin: str | None = None
    meta: dict[str, Any] | None = None
    created_from: str | None = None
    created_to: str | None = None
    error: str | None = None


class Bulk(Reason, forbid_unknown_fields=True):
    """Some jobs: by their ids, or by a filter that is not empty."""

    ids: Annotated[list[str], Meta(max_length=1000)] = []
    filter: Filter | None = None


class EnqueueOptions(msgspec.Struct, forbid_unknown_fields=True):
    """The options of one job, as `task.using(…)` takes them."""

    delay: Span | UnsetType = UNSET
    at: str | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    max_attempts: int | UnsetType = UNSET
    timeout: Span | UnsetType = UNSET
    key: str | UnsetType = UNSET
    key_window: Span | UnsetType = UNSET
    on_conflict: Literal["skip", "replace", "raise"] | UnsetType = UNSET
    id: str | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = UNSET


class Enqueue(msgspec.Struct, forbid_unknown_fields=True):
    """A job to make: the task's registered name, its arguments, and the job's options."""

    task: str
    args: dict[str, Any] = {}
    options: EnqueueOptions = msgspec.field(default_factory=EnqueueOptions)


class Register(msgspec.Struct, forbid_unknown_fields=True):
    """A schedule to hold: what `drum.schedules.register(…)` takes."""

    task: str
    name: str | UnsetType = UNSET
    every: Span | UnsetType = UNSET
    cron: str | UnsetType = UNSET
    timezone: str | UnsetType = UNSET
    args: dict[str, Any] | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    misfire: str | UnsetType = UNSET
    overlap: str | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    paused: bool | UnsetType = UNSET


class Backfill(Reason, forbid_unknown_fields=True, kw_only=True):
    """The instants to fire that were not: from, to, both included."""

    start: str
    end: str


def given(body: msgspec.Struct) -> dict[str, Any]:
    """The fields that were sent."""
    return {name: value for name, value in msgspec.structs.asdict(body).items() if value is not UNSET}
