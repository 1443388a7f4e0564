"""Other names for some settings, as programs have them that people come from; what each of them decides.

    jobs.workers                        worker.concurrency
    jobs.initial_backoff_ms             jobs.backoff
    jobs.redis.visibility_timeout_ms    jobs.lease
    jobs.redis.key_prefix, else scheduler.key_prefix                      store.namespace
    jobs.backend, else scheduler.backend, with jobs.redis.url,
    database.url or database.primary_url                                  store.url

A name of either kind that stands in a stronger place (code, then the environment, then a file) wins. In one place, both
for one thing are refused, unless they agree; only store.url is stronger than what names a backend.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from drumline.config.sections import Settings, StoreSettings
from drumline.errors import BadSettings
from drumline.model.mask import mask_url
from drumline.model.options import Backoff

__all__ = ["OTHER_NAMES", "Decision", "decide", "find_url", "note_backends"]

OTHER_NAMES = (
    "jobs.backend",
    "jobs.workers",
    "jobs.initial_backoff_ms",
    "jobs.redis.url",
    "jobs.redis.key_prefix",
    "jobs.redis.visibility_timeout_ms",
    "scheduler.key_prefix",
    "database.url",
    "database.primary_url",
)
# What a backend's name means as the beginning of a URL.
_KINDS = {"local": "sqlite", "postgres": "postgres"}

# How strong the place is in which a key was given, 0 the strongest; None if it was given nowhere.
Place = Callable[[str], int | None]


@dataclass(frozen=True, slots=True)
class Decision:
    """What other names say about a setting."""

    key: str
    value: Any
    # The names that said so, the one that weighs most first.
    by: tuple[str, ...]


def decide(settings: Settings, place: Place, url_named: Decision | None) -> list[Decision]:
    """What counts of the other names; BadSettings where a setting is given twice in one place."""
    read = (*_read(settings), *([] if url_named is None else [url_named]))
    decisions = [decision for decision in read if _counts(decision, settings, place)]
    url = next((one.value for one in decisions if one.key == "store.url"), settings.store.url)
    return [_fit(decision) if url.startswith("postgres") else decision for decision in decisions]


def _fit(decision: Decision) -> Decision:
    """On Postgres a namespace is a schema: a prefix made for keys becomes a name that needs no quotes."""
    if decision.key != "store.namespace":
        return decision
    return replace(decision, value=re.sub(r"[^a-z0-9_]", "_", decision.value))


def note_backends(settings: Settings) -> Iterator[str]:
    """What would surprise a person: one store holds all, and it is another than a backend says."""
    url = settings.store.url
    jobs, scheduler = settings.jobs.backend, settings.scheduler.backend
    if jobs is not None and not url.startswith(_KINDS.get(jobs, jobs)):
        yield f"jobs.backend is {jobs}, but the store is {mask_url(url)}, as store.url says"
    if scheduler not in ("store", "in_process") and not url.startswith(_KINDS.get(scheduler, scheduler)):
        yield f"scheduler.backend is {scheduler}, but the schedules are held by the store of the jobs, {mask_url(url)}"


def _read(settings: Settings) -> Iterator[Decision]:
    jobs = settings.jobs
    if jobs.workers is not None:
        yield Decision("worker.concurrency", jobs.workers, ("jobs.workers",))
    if jobs.initial_backoff_ms is not None:
        backoff = Backoff(initial=timedelta(milliseconds=jobs.initial_backoff_ms))
        yield Decision("jobs.backoff", backoff, ("jobs.initial_backoff_ms",))
    if jobs.redis.visibility_timeout_ms is not None:
        lease = timedelta(milliseconds=jobs.redis.visibility_timeout_ms)
        yield Decision("jobs.lease", lease, ("jobs.redis.visibility_timeout_ms",))
    if jobs.redis.key_prefix is not None:
        yield Decision("store.namespace", jobs.redis.key_prefix, ("jobs.redis.key_prefix",))
    elif settings.scheduler.key_prefix is not None:
        yield Decision("store.namespace", settings.scheduler.key_prefix, ("scheduler.key_prefix",))


def find_url(settings: Settings, place: Place) -> Decision | None:
    """The store that a backend names; BadSettings if its address is missing, and store.url is not given either."""
    jobs, scheduler = settings.jobs.backend, settings.scheduler.backend
    name = "jobs.backend" if jobs is not None else "scheduler.backend"
    match jobs or scheduler:
        case "redis":
            needed = {"jobs.redis.url": settings.jobs.redis.url}
        case "postgres":
            needed = {"database.url": settings.database.url, "database.primary_url": settings.database.primary_url}
        case "local" | "sqlite" if jobs is not None:
            return Decision("store.url", StoreSettings().url, (name,))
        case _:
            return None
    found = next(((key, url) for key, url in needed.items() if url is not None), None)
    if found is not None:
        return Decision("store.url", found[1], (found[0], name))
    if jobs is not None and place("store.url") is None:
        raise BadSettings(f"jobs.backend is {jobs}, so {' or '.join(needed)} must be given too")
    return None


def _counts(decision: Decision, settings: Settings, place: Place) -> bool:
    own = place(decision.key)
    other = min(found for name in decision.by if (found := place(name)) is not None)
    if own is None or other < own:
        return True
    if own == other and decision.key != "store.url" and decision.value != _value(settings, decision.key):
        raise BadSettings(f"{decision.by[0]} is another name of {decision.key}: give one of them, not both")
    return False


def _value(settings: Settings, key: str) -> Any:
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value
