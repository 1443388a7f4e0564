"""The worker: the life of one replica, from its first beat until it has stopped in good order.

To stop: nothing more is claimed; what runs may end within the shutdown time; then coroutines are cancelled and awaited,
children killed, threads left to themselves, and what did not end is given back without spending an attempt; the replica
deregisters.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta

from drumline.clock import Clock
from drumline.engine.board import Board
from drumline.engine.crew import Crew
from drumline.engine.doubt import find_in_doubt
from drumline.engine.draining import has_work
from drumline.engine.execution import Reason
from drumline.engine.lifespan import Lifespan
from drumline.engine.options import WorkerOptions
from drumline.engine.private import cancel_waiting
from drumline.engine.service import Loop
from drumline.engine.signals import Signals
from drumline.events import Events, ReplicaStarted, ReplicaStopped
from drumline.failpoint import failpoint
from drumline.middleware import AroundRun
from drumline.model.query import Keep
from drumline.model.replica import ReplicaState, Role
from drumline.policy.firing import private_queue
from drumline.policy.options import Executor
from drumline.policy.task import TaskDefinition
from drumline.stores.base import Store

__all__ = ["Lifespan", "Worker", "WorkerOptions"]

logger = logging.getLogger("drumline.engine")

# How long cancelled coroutines may take to clean up, and the last batch to be written.
CLEAN_UP = 5.0
LAST_WRITES = 10.0
LOOK_WHEN_DRAINING = 0.05
# What the last beats promise of the next one, which there will not be.
LAST_BEAT = timedelta(seconds=10)


class Worker(Crew):
    """A crew at work."""

    def __init__(
        self,
        store: Store,
        registry: Mapping[str, TaskDefinition],
        options: WorkerOptions,
        *,
        lifespan: Lifespan | None = None,
        clock: Clock | None = None,
        events: Events | None = None,
        keep: Keep | None = None,
        around: Sequence[AroundRun] = (),
        board: Board | None = None,
    ) -> None:
        super().__init__(store, registry, options, clock=clock, events=events, keep=keep, around=around, board=board)
        # Whether the fleet has heard of this replica.
        self.has_begun = False
        self._lifespan = lifespan
        self._stopping = asyncio.Event()
        self._hurried = False
        self._draining = self._loop("drain", self._drain)

    def stop(self) -> None:
        """Begin to stop; asked again, hurry."""
        self._hurried = self._hurried or self._stopping.is_set()
        self._stopping.set()
        self._moved.set()

    @property
    def is_stopping(self) -> bool:
        """Whether somebody has asked it to stop."""
        return self._stopping.is_set()

    async def run(self) -> None:
        """Work until stopped: by `stop()`, SIGTERM or SIGINT, or, with `drain`, when nothing is left to do."""
        # Before all else, so that a signal during a slow start leads to a stop in good order too.
        with Signals(self.stop):
            await self.serve()

    async def serve(self) -> None:
        """The same in a program whose signals belong to somebody else: until `stop()`."""
        async with AsyncExitStack() as stack:
            if self._lifespan is not None:
                self.runner.state = await stack.enter_async_context(self._lifespan())
            # Before anything is claimed a beat, so that the fleet knows of this replica.
            await asyncio.to_thread(self.heart.step)
            self.has_begun = True
            await stack.enter_async_context(self.hints.listen())
            stack.enter_context(self.board.kept_by(self._look_at_schedules))
            self._events.emit(ReplicaStarted(self.id, self._clock.now()))
            self.heart.start()
            try:
                cancelled = await self._serve()
            finally:
                # However it ended: beats that go on would keep claims alive that nobody works on, and children go on.
                self.heart.stop()
                self.runner.shut()
            await self._leave()
        if cancelled:
            raise asyncio.CancelledError

    async def _serve(self) -> bool:
        """Run the loops until it is time to stop, and then down in good order; say whether we were cancelled."""
        loops = [self._recording, self._recording_beside, self._deadlines, self._cleaning, self._looking]
        async with asyncio.TaskGroup() as group:
            if self._options.drain:
                loops.append(self._draining)
            takers = [group.create_task(loop.run()) for loop in self._takers()]
            others = [group.create_task(loop.run()) for loop in loops]
            cancelled = await self._wait_for_stop()
            for loop in self._takers():
                loop.stop()
            self.standby.end()
            await _until_ended(takers)
            await self._wind_down()
            for loop in loops:
                loop.stop()
            await _until_ended(others)
        return cancelled

    def _takers(self) -> list[Loop]:
        """The loops that take on or make new work, and so end first."""
        if self._options.role is Role.SCHEDULER:
            return [self._ticking]
        return [self._fetching, self._standing_by, self._ticking]

    async def _wait_for_stop(self) -> bool:
        """Until somebody asks to stop; say whether we were cancelled."""
        try:
            await self._stopping.wait()
        except asyncio.CancelledError:
            # Whoever runs us is leaving: give the jobs back all the same, but do not make it wait.
            self._hurried = True
            return True
        return False

    async def _drain(self) -> float | None:
        """Ask to stop once nothing is left to do; the ticks of the start are something to do."""
        if (
            not self.ticker.has_started
            or not self._is_idle
            or await has_work(self._store, self._registry, self.served())
        ):
            return LOOK_WHEN_DRAINING
        self._stopping.set()
        return None

    @property
    def _is_idle(self) -> bool:
        return not self.runner.running and self.recorder.idle and not self.fetcher.claiming

    async def _wind_down(self) -> None:
        """Let what runs come to its end, or give it back."""
        failpoint("drain.begun")
        self._state = ReplicaState.DRAINING
        self.heart.beat_now()
        self.fetcher.give_back()
        for execution in self.executions:
            execution.stopping = True
        patience = self._options.shutdown_timeout.total_seconds()
        if self.runner.running:
            logger.info("stopping: %d jobs running, at most %g s for them to end", self.runner.running, patience)
            await self._until(lambda: self._hurried or not self.runner.running, patience)
        for execution in self.executions:
            execution.interrupt(Reason.STOP)
        await self._until_interrupted_ended(CLEAN_UP)
        self.runner.release()
        await self._give_back_in_doubt()
        # Words need no waiting for: those of jobs that have ended are written before their outcomes.
        await self._until(lambda: not self.recorder.backlog, LAST_WRITES)
        failpoint("drain.written")
        await self.runner.close()

    async def _give_back_in_doubt(self) -> None:
        """Let others have what a claim may have taken whose reply was lost, before its lease is over."""
        if self.fetcher.claiming or self.standby.is_in_doubt:
            for claim in await find_in_doubt(self._store, self._describe(LAST_BEAT), self.executions, CLEAN_UP):
                self.recorder.give_back(claim)

    async def _until(self, holds: Callable[[], bool], timeout: float) -> None:
        """Wait until the condition holds, or the time is over."""
        deadline = self._clock.monotonic() + timeout
        while not holds():
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return
            self._moved.clear()
            await self._clock.wait(self._moved, left)

    async def _until_interrupted_ended(self, timeout: float) -> None:
        """Wait for what can be made to end: coroutines and child processes, not threads."""
        tasks = [e.task for e in self.executions if e.task is not None and e.definition.executor is not Executor.THREAD]
        if tasks:
            await asyncio.wait(tasks, timeout=timeout)

    async def _leave(self) -> None:
        """Say good-bye, so that the fleet need not wait for three silent beats."""
        await self.heart.wait_stopped()
        self._state = ReplicaState.GONE
        try:
            async with asyncio.timeout(CLEAN_UP):
                await self._store.beat(self._describe(LAST_BEAT), [])
                failpoint("leave.answered")
                if self.ticker.has_own:
                    await cancel_waiting(self._store, [private_queue(self.id)], by=self.id)
        except Exception as error:  # noqa: BLE001 - the fleet will find out by itself, a little later
            logger.warning("could not deregister: %r", error)
        self._events.emit(ReplicaStopped(self.id))


async def _until_ended(loops: Iterable[asyncio.Task[None]]) -> None:
    """Wait for loops that were stopped; the present turn of one may hang in a store that is out of reach."""
    _, hanging = await asyncio.wait(loops, timeout=CLEAN_UP)
    for loop in hanging:
        logger.warning("a call to the store does not end; leaving without its answer")
        loop.cancel()
