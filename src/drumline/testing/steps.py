"""A worker whose turns are taken by hand.

It is the engine's own worker, with its runner, recorder and heartbeat: a job is claimed, run, judged and recorded as in
production. Only the loops and threads that would drive it are missing; these steps and a manual clock take their place:

    settle:   claim one ─▶ run until it has ended, or waits for time ─▶ record ─▶ again, until nothing is left
    advance:  settle ─▶ move time to the next instant at which anything happens ─▶ settle ─▶ … up to the target
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from drumline.app import Drumline
from drumline.clock import fresh_id
from drumline.engine.execution import Execution, Reason
from drumline.engine.lifespan import HeldLifespan, Lifespan
from drumline.engine.worker import Worker
from drumline.model.claim import ClaimRef, Share
from drumline.policy.options import Executor
from drumline.testing.clock import HarnessClock
from drumline.testing.store import HarnessStore

__all__ = ["Steps"]

# More jobs than that in one instant are jobs that make each other without end.
MOST_CLAIMS = 100_000
MILLISECOND = timedelta(milliseconds=1)


class Steps:
    """Moves a worker and a clock together. Made, used and closed on one event loop."""

    def __init__(
        self, drum: Drumline, store: HarnessStore, clock: HarnessClock, worker: Worker, patience: float
    ) -> None:
        self._drum = drum
        self._store = store
        self._clock = clock
        self._worker = worker
        self._patience = patience
        self._lifespan: HeldLifespan | None = None
        # Jobs that were begun to run while time passes: nobody waits for their end, unless they were told to stop.
        self._set_aside: set[ClaimRef] = set()
        self._next_due: datetime | None = None
        self._loop = asyncio.get_running_loop()
        self._moved = asyncio.Event()
        clock.on_wait = self._stir

    async def open(self, lifespan: Lifespan | None, state: Any) -> None:
        """Open the state of the jobs: that of the lifespan, if there is one, else the one given."""
        if lifespan is not None:
            held = HeldLifespan(lifespan)
            state = await held.open()
            self._lifespan = held
        self._worker.runner.state = state
        await self._tick()

    async def close(self) -> None:
        """Stop what runs still; threads are left to themselves."""
        self._clock.on_wait = lambda: None
        coroutines = [e.task for e in self._running() if e.definition.executor is Executor.COROUTINE and e.task]
        for execution in self._running():
            execution.stopping = True
            execution.interrupt(Reason.STOP)
        if coroutines:
            await asyncio.wait(coroutines, timeout=self._patience)
        self._worker.runner.release()
        await self._write()
        self._worker.runner.shut()
        if self._lifespan is not None:
            await self._lifespan.close()

    async def begin(self) -> None:
        """Begin every job that is ready, and wait for none of them."""
        while await self._claim():
            pass
        self._set_aside |= {execution.claim.ref for execution in self._running()}
        # So that each comes as far as it can without waiting.
        for _ in range(10):
            await self._clock.echo()
        await self._write()

    async def run_until_idle(self) -> None:
        """Run all jobs that are ready to their end, and wait for those that run already."""
        self._set_aside.clear()
        await self._settle()

    async def advance(self, span: timedelta) -> None:
        """Move time, stopping wherever anything is due; what `begin` has begun goes on meanwhile."""
        target = self._clock.now() + span
        # What waits for the clock goes on by itself when its time has come, and can then be waited for.
        self._set_aside = {ref for ref in self._set_aside if ref.id not in self._clock.parked}
        await self._settle()
        while (now := self._clock.now()) < target:
            self._clock.advance(max(min(self._instants(now, target)) - now, MILLISECOND))
            await self._worker.deadlines.step()
            await self._settle()

    def _instants(self, now: datetime, target: datetime) -> Iterator[datetime]:
        """Where time has to stop on its way to the target."""
        yield target
        if self._next_due is not None:
            yield self._next_due
        if self._worker.ticker.next_at is not None:
            yield self._worker.ticker.next_at
        wake = self._clock.next_wake
        if wake is not None:
            yield now + _round_up(wake)
        for execution in self._running():
            if execution.deadline is not None and execution.reason is None:
                yield now + _round_up(timedelta(seconds=execution.deadline - self._clock.monotonic()))

    async def _settle(self) -> None:
        """Run jobs one after the other until none is ready and none moves."""
        await self._clock.let_go()
        await self._tick()
        for _ in range(MOST_CLAIMS):
            began = await self._claim()
            stirred = await self._until_still()
            if not began and not stirred:
                await self._clock.let_go()
                return
        raise RuntimeError(f"{MOST_CLAIMS:,} jobs ran in one instant: do they enqueue each other without end?")

    async def _tick(self) -> None:
        """Declare the program's schedules, and fire what is due."""
        await self._beat()
        await self._worker.ticker.step()

    async def _claim(self) -> bool:
        """Claim the next job that is ready and start it."""
        definitions = self._drum.tasks.values()
        names = [name for definition in definitions for name in (definition.name, *definition.aliases)]
        claimed = await self._store.claim(
            self._worker.id, [Share(queue, 1) for queue in self._worker.served()], 1, names, fresh_id()
        )
        self._next_due = claimed.next_due
        for claim in claimed.claims:
            # In a fresh context: a worker's jobs see no context variables of the one who enqueued them.
            execution = self._worker.runner.hold(claim, self._clock.monotonic())
            contextvars.Context().run(self._worker.runner.start, execution)
        return bool(claimed.claims)

    async def _until_still(self) -> bool:
        """Wait until each job has ended or waits for time; record what has ended; say whether anything happened."""
        stirred = False
        while True:
            self._moved.clear()
            if moving := self._moving():
                await self._wait_for(moving)
            elif await self._write() and self._running():
                # What has just been recorded may be what another job waits for.
                await self._beat()
            elif not self._moving():
                return stirred
            stirred = True

    async def _wait_for(self, moving: list[Execution]) -> None:
        """Wait, in real time, until one of these ends or begins to wait for manual time."""
        stirred = asyncio.ensure_future(self._moved.wait())
        tasks = [execution.task for execution in moving if execution.task is not None]
        done, _ = await asyncio.wait([*tasks, stirred], timeout=self._patience, return_when=asyncio.FIRST_COMPLETED)
        stirred.cancel()
        if not done:
            raise TimeoutError(self._complain(moving))

    def _complain(self, moving: list[Execution]) -> str:
        jobs = ", ".join(f"job {execution.claim.id} of task {execution.claim.task}" for execution in moving)
        return (
            f"still running after {self._patience:g} s of real time: {jobs}. A harness moves Drumline's time, not that "
            "of asyncio.sleep, time.sleep or a network. Begin the job with start() to let time pass while it runs, or "
            "open the harness with more patience="
        )

    async def _write(self) -> bool:
        """Record what has ended, and what running jobs have said; say whether anything had ended."""
        ended = self._worker.recorder.backlog > 0
        await self._worker.recorder.step()
        while self._worker.recorder.backlog:
            await self._worker.recorder.step()
        return ended

    async def _beat(self) -> None:
        """Renew the claims, and hear which jobs somebody wants cancelled."""
        self._worker.heart.step()
        await self._clock.echo()

    def _stir(self) -> None:
        """Somebody begins to wait for the clock, perhaps on another thread."""
        self._loop.call_soon_threadsafe(self._moved.set)

    def _running(self) -> list[Execution]:
        return list(self._worker.executions)

    def _moving(self) -> list[Execution]:
        """The jobs whose end, or next wait for manual time, is to be waited for."""
        parked = self._clock.parked
        return [execution for execution in self._running() if self._is_moving(execution, parked)]

    def _is_moving(self, execution: Execution, parked: frozenset[str]) -> bool:
        if execution.task is None or execution.task.done():
            return False
        if execution.reason is not None and execution.definition.executor is Executor.COROUTINE:
            return True
        is_told = execution.reason is not None
        return execution.claim.id not in parked and (is_told or execution.claim.ref not in self._set_aside)


def _round_up(span: timedelta) -> timedelta:
    """The span in whole milliseconds, at least one: time never stands still on its way."""
    return max(-(-span // MILLISECOND), 1) * MILLISECOND
