"""The crew of one replica: its parts, and what each of them tells the others.

hints ─▶ fetch ─▶ run ─▶ (verdict) ─▶ record ─▶ store
                            ▲
         beat thread ───────┘ lost, cancelled          janitor ─▶ (verdict) ─▶ store
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec

from drumline.clock import Clock, SystemClock, fresh_id
from drumline.engine.beat import Heart
from drumline.engine.board import Board
from drumline.engine.childrun import open_children
from drumline.engine.deadlines import Deadlines
from drumline.engine.execution import Execution, Executions, Reason
from drumline.engine.fetch import Fetcher
from drumline.engine.hints import Hints
from drumline.engine.janitor import Janitor
from drumline.engine.lookout import Lookout
from drumline.engine.options import WorkerOptions
from drumline.engine.record import Recorder
from drumline.engine.run import Runner
from drumline.engine.service import Loop
from drumline.engine.slots import Limits
from drumline.engine.standby import Standby
from drumline.engine.ticker import Ticker
from drumline.events import Events
from drumline.failpoint import failpoint_before
from drumline.middleware import AroundRun
from drumline.model.claim import ANY_QUEUE, ClaimRef
from drumline.model.options import check_count
from drumline.model.query import Keep
from drumline.model.queues import QueueRules
from drumline.model.replica import Beat, ReplicaInfo, ReplicaState, Role
from drumline.policy.firing import private_queue
from drumline.policy.options import Executor
from drumline.policy.task import TaskDefinition
from drumline.policy.verdict import Ending
from drumline.stores.base import Store

__all__ = ["Crew"]


class Crew:
    """Whoever works for one replica, put together and not yet at work."""

    def __init__(
        self,
        store: Store,
        registry: Mapping[str, TaskDefinition],
        options: WorkerOptions,
        *,
        clock: Clock | None = None,
        events: Events | None = None,
        keep: Keep | None = None,
        around: Sequence[AroundRun] = (),
        board: Board | None = None,
    ) -> None:
        self.id = f"{options.name}:{fresh_id()[-8:]}"
        self._store = store
        self._registry = registry
        self._options = options
        self._clock = clock or SystemClock()
        self._events = Events() if events is None else events
        self._keep = keep or Keep()
        self._around = around
        self.board = board or Board(self._clock)
        # A replica that only serves pages shares nothing.
        self.rules = QueueRules() if options.role is Role.WEB else options.rules
        self._state = ReplicaState.RUNNING
        self._unknown: frozenset[ClaimRef] = frozenset()
        self._event_loop = asyncio.get_running_loop()
        # Something ended or was written: whoever waits for that looks again.
        self._moved = asyncio.Event()
        self._is_to_learn = False
        self._assemble()

    def _assemble(self) -> None:
        options = self._options
        self._known_to_children = frozenset(self._registry)
        self.executions = Executions()
        self.recorder = Recorder(
            self._store,
            self.executions,
            by=self.id,
            clock=self._clock,
            events=self._events,
            on_outcome=self._on_outcome,
            on_written=self._on_written,
        )
        self.runner = Runner(
            self._registry,
            self.executions,
            concurrency=options.concurrency,
            threads=options.threads,
            clock=self._clock,
            events=self._events,
            on_start=failpoint_before("job.started", self._on_start),
            close=self._on_end,
            on_words=self.recorder.listen,
            around=self._around,
            on_free=self._on_free,
            children=open_children(self._registry.values(), options),
            zone_of=self._zone_of,
        )
        self.hints = self._open_ear()
        self.fetcher = Fetcher(
            self._store,
            self.runner,
            self.recorder,
            replica=self.id,
            queues=self.served,
            tasks=self._tasks_by_executor(),
            # While two batches are written, the next comes together.
            most_unwritten=3 * max(options.concurrency, self.recorder.largest_batch),
            poll=self.hints.poll_interval,
            clock=self._clock,
            rules=self.rules,
        )
        self.standby = self._make_standby()
        self._make_watchers()
        self._make_loops()

    def _make_standby(self) -> Standby:
        return Standby(
            self._store,
            self.fetcher,
            replica=self.id,
            # Where nothing that comes is missed. But without hints, only the time tells what others have left.
            seconds=lambda: (
                (2 if self._store.tells_of_all and self.hints.is_hearing else 1) * self.hints.poll_interval()
            ),
            # One that stands by would hide claims whose reply was lost, and is not waited for when all is done.
            may=lambda: not (self._unknown or self._options.drain),
            on_answer=self._on_written,
            clock=self._clock,
        )

    def _open_ear(self) -> Hints:
        return Hints(
            self._store,
            replica=self.id,
            queues=(private_queue(self.id), *self._shared_queues),
            usual_poll=self._options.poll_interval.total_seconds(),
            on_work=self._on_work,
            on_change=self._on_change,
            on_cancel=self._on_cancel,
        )

    def served(self) -> tuple[str, ...]:
        """The queues to claim from, in their order; the private one only if it may have anything."""
        queues = self._shared_queues
        return (private_queue(self.id), *queues) if self.ticker.has_own else queues

    @property
    def _shared_queues(self) -> tuple[str, ...]:
        """A replica that only serves pages runs its own ticks and nothing else."""
        return () if self._options.role is Role.WEB else self._options.queues or (ANY_QUEUE,)

    def _zone_of(self, schedule: str) -> str | None:
        found = self.board.find(schedule)
        return None if found is None else found.rule.timezone

    def _make_watchers(self) -> None:
        """Those who look after claims: this replica's own, and those of the fleet."""
        self.heart = Heart(
            self._store,
            self.executions,
            describe=self._describe,
            leases=[definition.options.lease for definition in self._registry.values()],
            clock=self._clock,
            is_hearing=lambda: self.hints.is_hearing,
            on_answer=self._on_beat,
        )
        self.janitor = Janitor(
            self._store,
            self.executions,
            by=self.id,
            steady_since=lambda: self.heart.steady_since,
            clock=self._clock,
            events=self._events,
            keep=self._keep,
        )
        self.ticker = Ticker(
            self._store,
            self.board,
            replica=self.id,
            role=self._options.role,
            tasks=self._registry.keys(),
            clock=self._clock,
            events=self._events,
        )
        self.lookout = Lookout(self._store, replica=self.id, events=self._events)
        self.deadlines = Deadlines(
            self.executions, self._clock, grace=self._options.timeout_grace, give_up=self.runner.give_up
        )

    def _make_loops(self) -> None:
        self._fetching = self._loop("fetch", self._fetch)
        self._standing_by = self._loop("standby", self.standby.step)
        self._ticking = self._loop("ticker", self.ticker.step)
        self._recording = self._loop("record", self.recorder.step)
        self._recording_beside = self._loop("record beside", self.recorder.step_beside)
        self._deadlines = self._loop("deadlines", self.deadlines.step)
        self._cleaning = self._loop("janitor", self.janitor.step)
        self._looking = self._loop("lookout", self.lookout.step)

    async def _fetch(self) -> float | None:
        pause = await self.fetcher.step()
        if self.fetcher.is_at_rest:
            self._standing_by.wake()
        return pause

    @property
    def is_healthy(self) -> bool:
        """Whether all slots can be used: none is held by a task that does not end."""
        return self.runner.stuck == 0

    @property
    def limits(self) -> Limits:
        """The most that may run at once, as last changed."""
        return self.runner.limits

    def resize(
        self,
        *,
        concurrency: int | None = None,
        threads: int | None = None,
        children: int | None = None,
        caps: Mapping[str, int | None] | None = None,
        reserved: Mapping[str, int | None] | None = None,
    ) -> None:
        """Change the limits that are given, at once; from any thread. What runs beyond them goes on to its end."""
        given = {"concurrency": concurrency, "threads": threads, "children": children}
        changes = {name: check_count(value, name) for name, value in given.items() if value is not None}
        rules = self.rules.change(caps=caps or {}, reserved=reserved or {})
        rules.check(self._options.queues, changes.get("concurrency", self.limits.concurrency))
        # Two that come together are both heeded: the second is worked out again when the first is in force.
        change = partial(self._resize, changes, caps or {}, reserved or {})
        self._event_loop.call_soon_threadsafe(change)

    def _resize(
        self, changes: Mapping[str, int], caps: Mapping[str, int | None], reserved: Mapping[str, int | None]
    ) -> None:
        self.runner.resize(msgspec.structs.replace(self.limits, **changes))
        if caps or reserved:
            self.rules = self.rules.change(caps=caps, reserved=reserved)
            self.fetcher.share(self.rules)
        self._fetching.wake()
        # The fleet shows how many slots there are.
        self.heart.beat_now()

    def learn(self) -> None:
        """Take up the tasks and schedules that the program has declared since the worker began; from any thread.

        A task that runs in a child process is left to workers that begin later: the children know it no sooner.
        """
        if not self._is_to_learn:
            self._is_to_learn = True
            self._event_loop.call_soon_threadsafe(self._learn)

    def _learn(self) -> None:
        # Before it looks, so that what is declared meanwhile leads to another look.
        self._is_to_learn = False
        self.fetcher.learn(self._tasks_by_executor())
        self._fetching.wake()
        self.ticker.hear_declared()
        self._ticking.wake()
        # The fleet has to know first, and the answer lets the ticker go on.
        self.heart.beat_now()

    def _on_work(self) -> None:
        self.fetcher.hint()
        self._fetching.wake()

    def _look_at_schedules(self) -> None:
        """Somebody reads the board; called from any thread."""
        with suppress(RuntimeError):
            # Unless the event loop has gone without having said so.
            self._event_loop.call_soon_threadsafe(self._ticking.wake)

    def _on_cancel(self) -> None:
        self.heart.beat_now()

    def _on_start(self, execution: Execution) -> None:
        self.heart.know_lease(execution.claim.options.lease)
        if execution.deadline is not None:
            self._deadlines.wake()

    def _on_end(self, execution: Execution, ending: Ending) -> None:
        self.recorder.close(execution, ending)
        self.fetcher.end(execution.definition.executor, execution.claim.queue)
        self._fetching.wake()
        self._moved.set()

    def _on_outcome(self) -> None:
        self._recording.wake()
        if self.recorder.has_whole_batch:
            self._recording_beside.wake()

    def _on_free(self) -> None:
        """A slot is usable again whose job was given up long before."""
        self.fetcher.hint()
        self._on_written()

    def _on_written(self) -> None:
        self._fetching.wake()
        self._moved.set()

    def _on_change(self) -> None:
        self.ticker.hear_change()
        self._ticking.wake()

    def _on_beat(self, info: ReplicaInfo, beat: Beat, received: float) -> None:
        self.ticker.hear(info, beat, received)
        self._ticking.wake()
        # Once each: every beat says it again until the task has ended.
        for execution in self._running_of(beat.lost):
            # One whose outcome is on its way may be gone because that was applied: its own answer will tell.
            if execution.held and not self.recorder.has_outcome(execution.ref):
                self.recorder.lost(execution.ref, "beat")
                execution.interrupt(Reason.LOST)
        for execution in self._running_of(beat.cancelling):
            if execution.reason is None:
                execution.interrupt(Reason.CANCEL)
        self.fetcher.end_interrupted()
        # Twice in a row, and with no claim under way: not merely a reply that was still travelling.
        unknown = {claim.ref: claim for claim in beat.unknown if self.executions.get(claim.ref) is None}
        for ref in self._unknown & unknown.keys():
            if self.standby.is_out:
                self.standby.recall()
            elif not self.fetcher.claiming:
                self.recorder.give_back(unknown[ref])
        self._unknown = frozenset(unknown)
        self._standing_by.wake()
        if self.janitor.hear(beat.now, beat.next_lease_end):
            self._cleaning.wake()

    def _running_of(self, refs: Iterable[ClaimRef]) -> list[Execution]:
        found = (self.executions.get(ref) for ref in refs)
        return [execution for execution in found if execution is not None]

    def _describe(self, beat_every: timedelta) -> ReplicaInfo:
        options = self._options
        return ReplicaInfo(
            id=self.id,
            name=options.name,
            role=options.role,
            state=self._state,
            queues=options.queues,
            tasks=tuple(sorted(self._registry)),
            schedules=tuple(sorted(self.board.declared)),
            slots=self.limits.concurrency,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=options.version,
            beat_every=beat_every,
            stale_writes=self.recorder.stale_writes,
            stuck=self.runner.stuck,
        )

    def _tasks_by_executor(self) -> dict[Executor, list[str]]:
        by_executor: dict[Executor, list[str]] = {}
        for name, definition in sorted(self._registry.items()):
            if definition.executor is not Executor.PROCESS or name in self._known_to_children:
                by_executor.setdefault(definition.executor, []).append(name)
        return by_executor

    def _loop(self, name: str, step: Callable[[], Any]) -> Loop:
        return Loop(name, step, clock=self._clock, events=self._events)
