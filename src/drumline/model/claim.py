"""A claim: one worker's exclusive, expiring right to run a job now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from drumline.model.job import LogLine, Progress, Source
from drumline.model.options import JobOptions

__all__ = ["ANY_QUEUE", "Claim", "ClaimRef", "Claimed", "Note", "Share"]

# In a share: every queue that is not private. No queue can have this name.
ANY_QUEUE = "*"


class ClaimRef(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """Which claim: the job, and the fence under which it was claimed.

    The fence grows with every claim of the job and never repeats, not even when a claim was lost in a crash of the
    server: it is the greater of the last fence + 1 and the store's clock in microseconds.
    """

    id: str
    fence: int


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A job as its claimer gets it."""

    id: str
    fence: int
    task: str
    queue: str
    # The number of the attempt that this claim is for, from 1.
    attempt: int
    args: bytes
    options: JobOptions
    replica: str
    created_at: datetime
    due_at: datetime
    claimed_at: datetime
    lease_until: datetime
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = {}
    source: Source = Source.MANUAL
    schedule: str | None = None
    tick: datetime | None = None
    key: str | None = None
    # Somebody has asked for this job to be cancelled.
    cancelling: bool = False
    # How often in a row workers that could not read the job have left it to others.
    releases: int = 0

    @property
    def ref(self) -> ClaimRef:
        return ClaimRef(self.id, self.fence)


class Share(msgspec.Struct, frozen=True):
    """A queue to claim from, and the most it may give in this call."""

    queue: str
    limit: int
    # Of ANY_QUEUE: the queues that give nothing here, because something else is arranged for them.
    but: tuple[str, ...] = ()


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """What a call of claim gave, when by the store's clock, and when the next delayed job of any queue will be due."""

    claims: list[Claim]
    now: datetime
    next_due: datetime | None = None


class Note(msgspec.Struct, frozen=True):
    """What a running job says of itself."""

    ref: ClaimRef
    progress: Progress | None = None
    lines: tuple[LogLine, ...] = ()
    # A text that may be shown to the person for whom the job runs.
    user_error: str | None = None
