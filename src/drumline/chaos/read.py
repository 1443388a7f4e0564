"""Reading the evidence: everything that a store holds of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeVar

from drumline import Drumline
from drumline.chaos.check import Evidence
from drumline.chaos.ledger import read_lines
from drumline.model.query import JobFilter, Page

__all__ = ["read_evidence"]

T = TypeVar("T")

_PAGE = 500


async def read_evidence(drum: Drumline, ledger: Path, accepted: Iterable[str]) -> Evidence:
    """What executions wrote, and what the store says."""
    store = await drum.store()
    return Evidence(
        accepted=frozenset(accepted),
        lines=read_lines(ledger),
        jobs=await _read_all(lambda after: store.jobs(JobFilter(), after=after, limit=_PAGE)),
        ticks=await _read_all(lambda after: store.ticks(after=after, limit=_PAGE)),
        counts=await store.counts(),
    )


async def _read_all(read: Callable[[str | None], Awaitable[Page[T]]]) -> list[T]:
    """Page by page, until there is no more."""
    items: list[T] = []
    after: str | None = None
    while True:
        page = await read(after)
        items += page.items
        after = page.next
        if after is None:
            return items
