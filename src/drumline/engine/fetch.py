"""Fetching: free slots into claims. Nothing is claimed that cannot start at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from drumline.clock import Clock, fresh_id
from drumline.engine.record import Recorder
from drumline.engine.run import Runner
from drumline.model.claim import Claimed, Share
from drumline.policy.options import Executor
from drumline.stores.base import Store

__all__ = ["Fetcher"]


class Fetcher:
    """Claims as many jobs as there is room for, and sleeps when there is nothing to do."""

    def __init__(
        self,
        store: Store,
        runner: Runner,
        recorder: Recorder,
        *,
        replica: str,
        queues: Callable[[], Sequence[str]],
        tasks: dict[Executor, list[str]],
        most_unwritten: int,
        poll: Callable[[], float],
        clock: Clock,
    ) -> None:
        # Whether a call of claim is under way, or may have been executed without our knowing.
        self.claiming = False
        self._store = store
        self._runner = runner
        self._recorder = recorder
        self._replica = replica
        self._queues = queues
        self._tasks = tasks
        self._most_unwritten = most_unwritten
        self._poll = poll
        self._clock = clock
        # Who was served last stands last: the slots are shared, and a flood of the one shall not keep out the other.
        self._order = deque(tasks)
        self._tokens: dict[Executor, str] = {}
        # By executor: when to look again. A look that found less than it had room for need not be repeated when a
        # slot falls free; a hint or the time says when.
        self._look_at = dict.fromkeys(tasks, float("-inf"))

    def hint(self) -> None:
        """There may be work: look at once."""
        for executor in self._look_at:
            self._look_at[executor] = float("-inf")

    async def step(self) -> float | None:
        """Claim once for each executor that has room; say when to look again."""
        if not self._queues():
            return self._poll()
        pause: float | None = None
        for executor in list(self._order):
            room = self._runner.room(executor)
            if room <= 0 or self._recorder.backlog >= self._most_unwritten:
                # Woken again when a slot falls free or a batch is written.
                continue
            wait = self._look_at[executor] - self._clock.monotonic()
            if wait <= 0:
                wait = await self._claim(executor, room)
            pause = wait if pause is None else min(pause, wait)
        return pause

    async def _claim(self, executor: Executor, room: int) -> float:
        # Asked for before the call, so that a hint that comes during it leads to another look.
        self._look_at[executor] = float("inf")
        # The same token until an answer came: a call that was executed, but whose reply was lost, answers again.
        token = self._tokens.setdefault(executor, fresh_id())
        self.claiming = True
        shares = [Share(queue, room) for queue in self._queues()]
        try:
            claimed = await self._store.claim(self._replica, shares, room, self._tasks[executor], token)
        except BaseException:
            self._look_at[executor] = float("-inf")
            raise
        received = self._clock.monotonic()
        del self._tokens[executor]
        self.claiming = bool(self._tokens)
        # Less than was asked for, if the limits were lowered during the call.
        room_now = max(self._runner.room(executor), 0)
        for claim in claimed.claims[:room_now]:
            self._runner.start(claim, received)
        for claim in claimed.claims[room_now:]:
            self._recorder.give_back(claim)
        if claimed.claims:
            self._order.remove(executor)
            self._order.append(executor)
        wait = 0.0 if len(claimed.claims) >= room else self._until_next(claimed)
        self._look_at[executor] = min(self._look_at[executor], received + wait)
        return self._look_at[executor] - received

    def _until_next(self, claimed: Claimed) -> float:
        """Until the next delayed job is due, at most a poll interval."""
        if claimed.next_due is None:
            return self._poll()
        return min(max((claimed.next_due - claimed.now).total_seconds(), 0), self._poll())
