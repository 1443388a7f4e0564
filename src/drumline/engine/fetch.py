"""Fetching: free slots into claims. What is claimed can start at once, or as soon as the next slots fall free."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from drumline.clock import Clock, fresh_id
from drumline.engine.execution import Execution
from drumline.engine.lane import Lane
from drumline.engine.record import Recorder
from drumline.engine.run import Runner
from drumline.engine.sharing import OpenSharing, RuledSharing, Sharing
from drumline.failpoint import failpoint
from drumline.model.claim import Claim, Claimed, Share
from drumline.model.queues import QueueRules
from drumline.policy.options import Executor
from drumline.policy.verdict import Stopped
from drumline.stores.base import Store

__all__ = ["Fetcher"]

# By how many seconds a claim that stands by may be late before the store is looked at all the same.
LATE = 5.0


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
        rules: QueueRules | None = None,
    ) -> None:
        # Whether a call of claim is under way, or may have been executed without our knowing.
        self.claiming = False
        self._store = store
        self._runner = runner
        self._recorder = recorder
        self._replica = replica
        self._queues = queues
        self._most_unwritten = most_unwritten
        self._poll = poll
        self._clock = clock
        # Who was served last stands last: the slots are shared, and a flood of the one shall not keep out the other.
        self._order: deque[Lane] = deque()
        batch = store.batch
        self._common = {executor: Lane(executor, clock, batch, is_reserved=False) for executor in Executor}
        self._reserved = {executor: Lane(executor, clock, batch, is_reserved=True) for executor in Executor}
        # Through which one call asks for the tasks of all executors.
        self._joint = Lane(Executor.COROUTINE, clock, batch, is_reserved=False)
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._is_filling = False
        # When the next delayed job is due, as far as is known.
        self._next_due_at = float("inf")
        self.share(rules or QueueRules())
        self.learn(tasks)

    def learn(self, tasks: dict[Executor, list[str]]) -> None:
        """Claim jobs of these tasks from now on: those so far, and what was declared since."""
        for executor, names in tasks.items():
            if self._common[executor] not in self._order:
                self._order.append(self._common[executor])
            self._common[executor].tasks = self._reserved[executor].tasks = names
        self._joint.tasks = sorted(name for lane in self._order for name in lane.tasks)
        self.hint()

    def share(self, rules: QueueRules) -> None:
        """Share the slots among queues by these rules from now on."""
        self._sharing: Sharing = (
            RuledSharing(self._runner, self._queues, rules, self._lanes)
            if rules
            else OpenSharing(self._runner, self._queues)
        )
        for lane in (*self._reserved.values(), self._joint):
            # Perhaps it is not asked again; what it may have taken is found by the beats, and given back.
            lane.token = None
        self.hint()

    def hint(self) -> None:
        """There may be work: look at once."""
        for lane in self._lanes():
            lane.hint()

    def _lanes(self) -> Iterator[Lane]:
        """Those in use; first those for slots that must not wait for others."""
        order = tuple(self._order)
        if self._sharing.has_reserved:
            yield from (self._reserved[lane.executor] for lane in order)
        yield from order

    @property
    def is_at_rest(self) -> bool:
        """Whether the last look found all there was, and there is room for whatever comes."""
        now = self._clock.monotonic()
        return (
            bool(self._queues())
            and self._sharing.is_open
            and not self.claiming
            and not self._is_held_up
            and all(lane.look_at > now and self._sharing.room(lane) > len(lane.ahead.waiting) for lane in self._lanes())
        )

    def rely_on_standby(self, seconds: float) -> tuple[Sequence[Share], Sequence[str]]:
        """What to ask for by a claim that stands by for so long; meanwhile only a delayed job is to be looked for."""
        look_at = self._clock.monotonic() + seconds + LATE
        for lane in self._lanes():
            lane.look_at = min(self._next_due_at, look_at)
        return self._sharing.ask(self._joint, 1), self._joint.tasks

    def take(self, claimed: Claimed | None, received: float) -> None:
        """Take in what a claim that stood by was answered; None if it could not."""
        look_at = received + (self._poll() if claimed is None else self._until_next(claimed, received))
        if claimed is not None and claimed.claims:
            self._hold(claimed.claims, list(self._lanes()), received)
            self.fill()
            # There may be more.
            look_at = float("-inf")
        for lane in self._lanes():
            lane.look_at = min(lane.look_at, look_at)

    async def step(self) -> float | None:
        """Claim once for each lane that has room, or will have; say when to look again."""
        if not self._queues():
            return self._poll()
        self.fill()
        lanes = list(self._lanes())
        # A joint call whose answer was lost is asked again in any case.
        if self._joint.token is not None or self._are_at_rest(lanes):
            return await self._look_jointly(lanes)
        pauses = [pause for lane in lanes if (pause := await self._look(lane)) is not None]
        return min(pauses, default=None)

    def end(self, executor: Executor, queue: str) -> None:
        """A job of this queue has left its slot: what waits for one starts before anything else is done."""
        ahead = self._common[executor].ahead
        ahead.end()
        if self._sharing.end(queue):
            self.hint()
        if ahead.waiting and not self._is_filling:
            self._is_filling = True
            # Not in the context of the task that has just ended.
            self._loop.call_soon(self.fill, context=self._context)

    def fill(self) -> None:
        """Start what waits, as far as there is room."""
        self._is_filling = False
        for lane in self._lanes():
            if not lane.ahead.waiting or self._is_held_up:
                continue
            for execution in self._sharing.startable(lane):
                self._runner.start(execution)

    def end_interrupted(self) -> None:
        """Let those end that were told to stop before they had a slot."""
        for lane in self._lanes():
            for execution in lane.ahead.take_interrupted():
                self._runner.start(execution)

    def give_back(self) -> None:
        """Let others have what waits for a slot here."""
        for lane in self._lanes():
            self._give_back(lane.ahead.take_beyond(0))

    def _give_back(self, executions: Iterable[Execution]) -> None:
        for execution in executions:
            self._recorder.close(execution, Stopped())

    @property
    def _is_held_up(self) -> bool:
        """Whether so much is unwritten that nothing more should end; woken again when a batch is written."""
        return self._recorder.backlog >= self._most_unwritten

    def _are_at_rest(self, lanes: Sequence[Lane]) -> bool:
        """Whether one call can ask for several lanes: none is in a flood, and each has room for what may come."""
        return (
            len(lanes) > 1
            and self._sharing.is_open
            and not self._is_held_up
            and all(
                lane.token is None and lane.ahead.missing(self._sharing.room(lane)) > 0 and not lane.ahead.most
                for lane in lanes
            )
        )

    async def _look_jointly(self, lanes: Sequence[Lane]) -> float:
        wait = min(lane.look_at for lane in lanes) - self._clock.monotonic()
        if wait > 0:
            return wait
        for lane in lanes:
            lane.look_at = float("inf")
        try:
            await self._claim(self._joint, max(min(self._sharing.room(lane) for lane in lanes), 1), lanes)
        except BaseException:
            self.hint()
            raise
        for lane in lanes:
            # Unless a hint came during the call.
            lane.look_at = min(lane.look_at, self._joint.look_at)
        return min(lane.look_at for lane in lanes) - self._clock.monotonic()

    async def _look(self, lane: Lane) -> float | None:
        ahead = lane.ahead
        stale = ahead.until_stale()
        if stale is not None and stale <= 0:
            ahead.most, stale = 0, None
            self._give_back(ahead.take_beyond(0))
        missing = ahead.missing(self._sharing.room(lane))
        if missing <= 0 or self._is_held_up:
            # Woken again when a slot falls free or a batch is written.
            return stale
        wait = lane.look_at - self._clock.monotonic()
        if wait <= 0:
            wait = await self._claim(lane, missing, (lane,))
        return wait

    async def _claim(self, call: Lane, limit: int, lanes: Sequence[Lane]) -> float:
        """Claim for these lanes by one call, whose token and tasks are those of `call`."""
        # Asked for before the call, so that a hint that comes during it leads to another look.
        call.look_at = float("inf")
        shares = self._sharing.ask(call, limit)
        if not shares:
            # Every queue is at its cap: the end of a job leads to another look.
            call.look_at = self._clock.monotonic() + self._poll()
            return self._poll()
        call.token = call.token or fresh_id()
        self.claiming = True
        most, asked = [lane.ahead.most for lane in lanes], self._clock.monotonic()
        failpoint("claim.before")
        try:
            claimed = await self._store.claim(self._replica, shares, limit, call.tasks, call.token)
        except BaseException:
            call.hint()
            raise
        received = self._clock.monotonic()
        failpoint("claim.answered")
        call.token = None
        self.claiming = self._is_any_unanswered
        if not call.is_reserved:
            for lane in lanes:
                lane.ahead.answered(asked)
        self._hold(claimed.claims, lanes, received)
        has_more = self._sharing.take(call, limit, claimed.claims)
        self.fill()
        # There is less room than was hoped for, if the limits were lowered during the call.
        for lane, hoped in zip(lanes, most, strict=True):
            self._give_back(lane.ahead.take_beyond(hoped))
        if claimed.claims and call in self._order:
            self._order.remove(call)
            self._order.append(call)
        until_next = self._until_next(claimed, received)
        wait = 0.0 if has_more else until_next
        call.look_at = min(call.look_at, received + wait)
        return call.look_at - received

    @property
    def _is_any_unanswered(self) -> bool:
        lanes = (*self._common.values(), *self._reserved.values(), self._joint)
        return any(lane.token for lane in lanes)

    def _hold(self, claims: list[Claim], lanes: Sequence[Lane], received: float) -> None:
        """Let each wait for a slot in the lane of its executor."""
        into = {lane.executor: lane.ahead.waiting for lane in lanes}
        for claim in self._sharing.arrange(claims):
            execution = self._runner.hold(claim, received)
            into[execution.definition.executor].append(execution)

    def _until_next(self, claimed: Claimed, received: float) -> float:
        """Until the next delayed job is due, at most a poll interval."""
        if claimed.next_due is None:
            self._next_due_at = float("inf")
            return self._poll()
        wait = max((claimed.next_due - claimed.now).total_seconds(), 0)
        self._next_due_at = received + wait
        return min(wait, self._poll())
