"""Sharing the slots of a worker among its queues: what each lane has room for, what it asks for, and what may start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from drumline.engine.execution import Execution
from drumline.engine.lane import Lane
from drumline.engine.run import Runner
from drumline.model.claim import ANY_QUEUE, Claim, Share
from drumline.model.options import PRIVATE
from drumline.model.queues import QueueRules
from drumline.policy.queues import (
    account,
    common_slots,
    divide,
    interleave,
    own_slots,
    strict_shares,
    weighted_shares,
)

__all__ = ["OpenSharing", "RuledSharing", "Sharing"]


class Sharing(Protocol):
    """How the slots are shared."""

    @property
    def is_open(self) -> bool:
        """Whether every queue may take every slot."""

    @property
    def has_reserved(self) -> bool:
        """Whether there are slots that single queues have for themselves."""

    def room(self, lane: Lane) -> int:
        """How many more jobs of this lane can start at once; below 0 while too many run."""

    def ask(self, lane: Lane, limit: int) -> list[Share]:
        """What to claim, up to so many in all; nothing where no queue may give any."""

    def arrange(self, claims: list[Claim]) -> list[Claim]:
        """What a call gave, in the order in which to start it."""

    def take(self, lane: Lane, limit: int, claims: Sequence[Claim]) -> bool:
        """Know what the last call for this lane gave; say whether another one at once may give more."""

    def startable(self, lane: Lane) -> Iterator[Execution]:
        """What waits in this lane and may start, taken from there; each is started before the next is asked for."""

    def end(self, queue: str) -> bool:
        """A job of this queue has ended; say whether that may let others of it be claimed that had no room."""


class OpenSharing:
    """Every queue may take every slot, the first queue first. Nothing is counted by queue."""

    is_open = True
    has_reserved = False

    def __init__(self, runner: Runner, queues: Callable[[], Sequence[str]]) -> None:
        self._runner = runner
        self._queues = queues

    def room(self, lane: Lane) -> int:
        return self._runner.room(lane.executor)

    def ask(self, lane: Lane, limit: int) -> list[Share]:
        del lane
        return [Share(queue, limit) for queue in self._queues()]

    def arrange(self, claims: list[Claim]) -> list[Claim]:
        return claims

    def take(self, lane: Lane, limit: int, claims: Sequence[Claim]) -> bool:
        del lane
        return len(claims) >= limit

    def startable(self, lane: Lane) -> Iterator[Execution]:
        waiting = lane.ahead.waiting
        for _ in range(min(len(waiting), self._runner.room(lane.executor))):
            yield waiting.popleft()

    def end(self, queue: str) -> bool:
        del queue
        return False


class RuledSharing:
    """Slots shared by rules: weights, caps, reserved slots.

    What runs is counted anew for each call to the store, not job by job. What was claimed and waits for a slot counts
    for a cap as if it ran.
    """

    is_open = False

    def __init__(
        self,
        runner: Runner,
        queues: Callable[[], Sequence[str]],
        rules: QueueRules,
        lanes: Callable[[], Iterable[Lane]],
    ) -> None:
        self._runner = runner
        self._queues = queues
        self._rules = rules
        self._lanes = lanes
        # Of weighted queues: how far each has come, in jobs for each unit of weight.
        self._served: dict[str, float] = {}
        # By lane, what the last call was to give: the part of each queue, and the room that those with a cap had.
        self._asked: dict[Lane, tuple[dict[str, int], dict[str, int]]] = {}
        # Queues at their cap: when a job of them ends, others may have room.
        self._full: set[str] = set()

    @property
    def has_reserved(self) -> bool:
        return bool(self._rules.reserved)

    def room(self, lane: Lane) -> int:
        if lane.is_reserved:
            own = own_slots(self._rules.reserved, self._running())
            return min(sum(own.values()), self._runner.room(lane.executor))
        return self._common(lane, self._running(), self._running(lane))

    def ask(self, lane: Lane, limit: int) -> list[Share]:
        held = self._held()
        room = self._room_under_caps(held)
        self._full = {queue for queue, left in room.items() if left == 0}
        if lane.is_reserved:
            own = own_slots(self._rules.reserved, held)
            return [Share(queue, most) for queue, free in own.items() if (most := min(free, room.get(queue, free))) > 0]
        queues = self._queues()
        weights = self._weights(queues)
        if not weights:
            return strict_shares(queues, limit, room)
        parts = divide(weights, self._served, limit, room)
        self._asked[lane] = parts, room
        private = [Share(queue, limit) for queue in queues if queue.startswith(PRIVATE)]
        return [*private, *weighted_shares(weights, self._served, parts, room)]

    def arrange(self, claims: list[Claim]) -> list[Claim]:
        weights = self._weights(self._queues())
        if not weights:
            return claims
        return [claims[place] for place in interleave(weights, self._served, [claim.queue for claim in claims])]

    def take(self, lane: Lane, limit: int, claims: Sequence[Claim]) -> bool:
        room = self._room_under_caps(self._held())
        self._full = {queue for queue, left in room.items() if left == 0}
        if lane in self._asked:
            parts, before = self._asked.pop(lane)
            taken = [claim.queue for claim in claims if not claim.queue.startswith(PRIVATE)]
            self._served = account(self._weights(self._queues()), self._served, parts, before, taken)
        # Every queue as one, with caps: one call does not use all the room.
        is_sliced = bool(room) and not self._rules.weights and ANY_QUEUE in self._queues()
        return len(claims) >= limit or (is_sliced and bool(claims))

    def startable(self, lane: Lane) -> Iterator[Execution]:
        waiting = lane.ahead.waiting
        if not waiting:
            return
        running, here = self._running(), self._running(lane)
        for execution in list(waiting):
            queue = execution.claim.queue
            if running[queue] >= self._rules.caps.get(queue, running[queue] + 1):
                continue
            is_own = running[queue] < self._rules.reserved.get(queue, 0)
            if (self._runner.room(lane.executor) if is_own else self._common(lane, running, here)) <= 0:
                continue
            waiting.remove(execution)
            running[queue] += 1
            here[queue] += 1
            yield execution

    def end(self, queue: str) -> bool:
        if queue not in self._full:
            return False
        self._full.discard(queue)
        return True

    def _weights(self, queues: Sequence[str]) -> dict[str, int]:
        weights = dict(self._rules.weights)
        if weights and ANY_QUEUE in queues:
            weights.setdefault(ANY_QUEUE, 1)
        return weights

    def _common(self, lane: Lane, running: Counter[str], here: Counter[str]) -> int:
        """The slots that any queue may take: of all, and of those of this executor."""
        reserved, limits = self._rules.reserved, self._runner.limits
        free = common_slots(limits.concurrency, reserved, running)
        most = limits.most(lane.executor)
        return free if most is None else min(free, common_slots(most, reserved, here), self._runner.room(lane.executor))

    def _room_under_caps(self, held: Counter[str]) -> dict[str, int]:
        return {queue: max(cap - held[queue], 0) for queue, cap in self._rules.caps.items()}

    def _running(self, lane: Lane | None = None) -> Counter[str]:
        """How many slots are taken by each queue: all, or those of the lane's executor."""
        busy = self._runner.busy()
        return Counter(one.claim.queue for one in busy if lane is None or one.definition.executor is lane.executor)

    def _held(self) -> Counter[str]:
        """The same, with what waits for a slot."""
        held = self._running()
        for lane in self._lanes():
            held.update(execution.claim.queue for execution in lane.ahead.waiting)
        return held
