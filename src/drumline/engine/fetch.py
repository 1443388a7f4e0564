"""Fetching: free slots into claims. What is claimed can start at once, or as soon as the next slots fall free."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from drumline.clock import Clock, fresh_id
from drumline.engine.ahead import Ahead
from drumline.engine.execution import Execution
from drumline.engine.record import Recorder
from drumline.engine.run import Runner
from drumline.model.claim import Claimed, Share
from drumline.policy.options import Executor
from drumline.policy.verdict import Stopped
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
        self._tasks: dict[Executor, list[str]] = {}
        self._most_unwritten = most_unwritten
        self._poll = poll
        self._clock = clock
        # Who was served last stands last: the slots are shared, and a flood of the one shall not keep out the other.
        self._order: deque[Executor] = deque()
        self._tokens: dict[Executor, str] = {}
        # By executor: when to look again. A look that found less than it had room for need not be repeated when a
        # slot falls free; a hint or the time says when.
        self._look_at: dict[Executor, float] = {}
        self._ahead = {executor: Ahead(clock) for executor in Executor}
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._is_filling = False
        self.learn(tasks)

    def learn(self, tasks: dict[Executor, list[str]]) -> None:
        """Claim jobs of these tasks from now on: those so far, and what was declared since."""
        self._order.extend(executor for executor in tasks if executor not in self._tasks)
        self._tasks = tasks
        self._look_at = dict.fromkeys(tasks, float("-inf"))

    def hint(self) -> None:
        """There may be work: look at once."""
        for executor in self._look_at:
            self._look_at[executor] = float("-inf")

    async def step(self) -> float | None:
        """Claim once for each executor that has room, or will have; say when to look again."""
        if not self._queues():
            return self._poll()
        self.fill()
        pauses = [pause for executor in list(self._order) if (pause := await self._look(executor)) is not None]
        return min(pauses, default=None)

    def end(self, executor: Executor) -> None:
        """A slot has fallen free: what waits for one starts before anything else is done."""
        ahead = self._ahead[executor]
        ahead.end()
        if ahead.waiting and not self._is_filling:
            self._is_filling = True
            # Not in the context of the task that has just ended.
            self._loop.call_soon(self.fill, context=self._context)

    def fill(self) -> None:
        """Start what waits, as far as there is room."""
        self._is_filling = False
        for executor in self._order:
            waiting = self._ahead[executor].waiting
            if not waiting or self._is_held_up:
                continue
            for _ in range(min(len(waiting), self._runner.room(executor))):
                self._runner.start(waiting.popleft())

    def end_interrupted(self) -> None:
        """Let those end that were told to stop before they had a slot."""
        for ahead in self._ahead.values():
            for execution in ahead.take_interrupted():
                self._runner.start(execution)

    def give_back(self) -> None:
        """Let others have what waits for a slot here."""
        for ahead in self._ahead.values():
            self._give_back(ahead.take_beyond(0))

    def _give_back(self, executions: Iterable[Execution]) -> None:
        for execution in executions:
            self._recorder.close(execution, Stopped())

    @property
    def _is_held_up(self) -> bool:
        """Whether so much is unwritten that nothing more should end; woken again when a batch is written."""
        return self._recorder.backlog >= self._most_unwritten

    async def _look(self, executor: Executor) -> float | None:
        ahead = self._ahead[executor]
        stale = ahead.until_stale()
        if stale is not None and stale <= 0:
            ahead.most, stale = 0, None
            self._give_back(ahead.take_beyond(0))
        missing = ahead.missing(self._runner.room(executor))
        if missing <= 0 or self._is_held_up:
            # Woken again when a slot falls free or a batch is written.
            return stale
        wait = self._look_at[executor] - self._clock.monotonic()
        if wait <= 0:
            wait = await self._claim(executor, missing)
        return wait

    async def _claim(self, executor: Executor, limit: int) -> float:
        # Asked for before the call, so that a hint that comes during it leads to another look.
        self._look_at[executor] = float("inf")
        # The same token until an answer came: a call that was executed, but whose reply was lost, answers again.
        token = self._tokens.setdefault(executor, fresh_id())
        self.claiming = True
        shares = [Share(queue, limit) for queue in self._queues()]
        ahead = self._ahead[executor]
        most, asked = ahead.most, self._clock.monotonic()
        try:
            claimed = await self._store.claim(self._replica, shares, limit, self._tasks[executor], token)
        except BaseException:
            self._look_at[executor] = float("-inf")
            raise
        received = self._clock.monotonic()
        del self._tokens[executor]
        self.claiming = bool(self._tokens)
        ahead.answered(asked)
        ahead.waiting.extend([self._runner.hold(claim, received) for claim in claimed.claims])
        self.fill()
        # There is less room than was hoped for, if the limits were lowered during the call.
        self._give_back(ahead.take_beyond(most))
        if claimed.claims:
            self._order.remove(executor)
            self._order.append(executor)
        wait = 0.0 if len(claimed.claims) >= limit else self._until_next(claimed)
        self._look_at[executor] = min(self._look_at[executor], received + wait)
        return self._look_at[executor] - received

    def _until_next(self, claimed: Claimed) -> float:
        """Until the next delayed job is due, at most a poll interval."""
        if claimed.next_due is None:
            return self._poll()
        return min(max((claimed.next_due - claimed.now).total_seconds(), 0), self._poll())
