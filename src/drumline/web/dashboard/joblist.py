"""The jobs page: a filter that stands in the address, a page of what fits, and what can be done with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from drumline.model.job import JobState, Source
from drumline.model.options import PRIVATE
from drumline.model.query import Count, Counts, JobFilter
from drumline.web.answers import Refusal
from drumline.web.api.reading import read_filter
from drumline.web.dashboard.frame import page
from drumline.web.dashboard.rows import make_row
from drumline.web.site import Ask

__all__ = ["Wish", "read_wish", "show_jobs"]

ON_A_PAGE = 50
# So many jobs a store looks at for one page, where it has to look into each.
LOOKED_AT = 10_000
STATES = ("ready", "delayed", "running", "done", "dead", "cancelled")
_WORDS = ("state", "task", "queue", "tag", "key", "schedule", "source", "error", "created_from", "created_to")
_PER_JOB = ("tag", "error", "source")


class Wish(msgspec.Struct, frozen=True):
    """What somebody wants to see: the words of the filter as they were given, and what they mean."""

    words: dict[str, str]
    where: JobFilter

    @property
    def is_empty(self) -> bool:
        return self.where.is_empty


def read_wish(given: Mapping[str, str]) -> Wish:
    """The filter of a query or a form; empty words ask for nothing. Refusal for what cannot be."""
    words = {name: given[name].strip() for name in (*_WORDS, "id") if given.get(name, "").strip()}
    if any("\0" in value for value in words.values()):
        raise Refusal(422, "a filter must not contain NUL")
    meant = dict(words)
    for name in ("created_from", "created_to"):
        if name in meant:
            meant[name] = _complete(meant[name])
    if "id" in meant:
        meant["id"] = _read_id(meant["id"])
    return Wish(words, read_filter(meant))


@page("jobs", "pages/jobs.html")
async def show_jobs(ask: Ask) -> dict[str, Any]:
    query = ask.request.query_params
    wish = read_wish(query)
    after = query.get("after") or None
    glance = ask.web.glance
    found = await glance.jobs(wish.where, after, ON_A_PAGE)
    counts = [row for row in await glance.counts() if not row.queue.startswith(PRIVATE)]
    jobs = [job for job in found.items if wish.where.shows(job.queue)]
    return {
        "rows": [make_row(ask.web.drum, job) for job in jobs],
        "wish": wish,
        "where": urlencode(wish.words),
        "words": {name: wish.words.get(name, "") for name in (*_WORDS, "id")},
        "next": found.next,
        "is_first": after is None,
        "tabs": _tabs(counts, wish),
        "tasks": sorted({row.task for row in counts}),
        "queues": sorted({row.queue for row in counts}),
        "sources": [source.value for source in Source],
        "is_searched": any(name in wish.words for name in _PER_JOB),
        "looked_at": LOOKED_AT,
        "can_retry": _any_state(wish, ("done", "dead", "cancelled")),
        "can_cancel": _any_state(wish, ("ready", "delayed", "running", "cancelling")),
    }


def _tabs(counts: Sequence[Count], wish: Wish) -> list[tuple[str, str, int]]:
    """The states with how many jobs of the chosen queue and task are in each."""
    where = wish.where
    rows = [row for row in counts if where.queue in (None, row.queue) and where.task in (None, row.task)]
    tally = Counts(rows).total
    numbers = {state: getattr(tally, state) for state in STATES}
    return [("", "All", sum(numbers.values())), *((state, state.capitalize(), numbers[state]) for state in STATES)]


def _any_state(wish: Wish, states: tuple[str, ...]) -> bool:
    return not wish.where.states or bool(wish.where.states & {JobState(state) for state in states})


def _complete(text: str) -> str:
    """An instant as a browser's field gives it, without a zone, is meant in UTC, as the page shows it."""
    has_zone = text.endswith(("Z", "z")) or "+" in text[10:] or "-" in text[10:]
    return text if has_zone else f"{text}Z" if "T" in text else f"{text}T00:00:00Z"


def _read_id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise Refusal(422, "id: must be a UUID") from None
