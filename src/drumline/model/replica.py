"""A replica: one running process of the fleet, as it registers itself and as the store knows it."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from drumline.model.claim import Claim, ClaimRef

__all__ = ["Beat", "Replica", "ReplicaInfo", "ReplicaState", "Role"]


class Role(StrEnum):
    """Which parts a replica runs."""

    COMBINED = "combined"
    WORKER = "worker"
    SCHEDULER = "scheduler"
    WEB = "web"

    @property
    def fires(self) -> bool:
        """Whether a replica of this role fires the fleet's ticks."""
        return self in (Role.COMBINED, Role.SCHEDULER)


class ReplicaState(StrEnum):
    """What a replica says of itself; `lost` is said of it, once it has been silent for three beats."""

    RUNNING = "running"
    DRAINING = "draining"
    GONE = "gone"
    LOST = "lost"


class ReplicaInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a replica says of itself with every beat."""

    # name:incarnation, so that two lives of one name are never confused.
    id: str
    name: str
    role: Role = Role.COMBINED
    state: ReplicaState = ReplicaState.RUNNING
    queues: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    slots: int = 0
    host: str = ""
    pid: int = 0
    version: str = ""
    beat_every: timedelta = timedelta(seconds=10)
    # Writes of this replica that were refused because its claim had been taken over.
    stale_writes: int = 0
    # Slots held by tasks that do not end though their time is over; a replica that has any is not healthy.
    stuck: int = 0


class Replica(msgspec.Struct, frozen=True, kw_only=True):
    """A replica as the store knows it. Of two live ones of one name the younger is shown as `name#2`."""

    info: ReplicaInfo
    shown: str
    state: ReplicaState
    started_at: datetime
    seen_at: datetime
    # Ids of the jobs it holds now.
    running: tuple[str, ...] = ()


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """What a replica learns by beating."""

    now: datetime
    # Held by this replica's belief, but no longer by the store's.
    lost: list[ClaimRef]
    # Still held, and somebody asks to stop them.
    cancelling: list[ClaimRef]
    # Claimed for this replica, but not named by it: the reply of a claim was lost. Release them.
    unknown: list[Claim]
    # Grows when a scheduler registers while no other is alive.
    epoch: int
    # When the earliest lease in the fleet ends: nothing can expire before.
    next_lease_end: datetime | None
    # Grows with every change of schedules and pauses.
    version: int
