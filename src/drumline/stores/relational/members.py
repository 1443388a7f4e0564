"""The replicas that are known, and when a fleet starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from drumline.model.instant import millis
from drumline.model.replica import ReplicaInfo
from drumline.stores.relational.ways import S, Ways
from drumline.stores.statements import Operation, Statement

__all__ = ["Member", "find_members", "starts_fleet"]

_SILENT_BEATS = 3
_info = msgspec.json.Decoder(ReplicaInfo)


class Member(NamedTuple):
    """A replica, as last heard of."""

    info: ReplicaInfo
    started: int
    seen: int

    def is_alive(self, now: int) -> bool:
        return now - self.seen <= _SILENT_BEATS * millis(self.info.beat_every)


def find_members(ways: Ways[S]) -> Operation[list[Member]]:
    """All replicas that are known, the oldest first."""
    rows = yield Statement(ways.sql["find_replicas"])
    return [Member(_info.decode(info), started, seen) for _, info, started, seen in rows]


def starts_fleet(info: ReplicaInfo, members: Sequence[Member], now: int) -> bool:
    """Whether a fleet starts with this replica: it is new, and no other that fires is alive."""
    is_new = all(member.info.id != info.id for member in members)
    return is_new and not any(member.info.role.fires and member.is_alive(now) for member in members)
