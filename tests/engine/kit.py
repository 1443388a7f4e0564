"""The parts of an engine over a memory store, with a clock that is moved by hand; nothing runs by itself."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

from drumline.clock import ManualClock, fresh_id
from drumline.engine.board import Board
from drumline.engine.execution import Execution, Executions
from drumline.engine.worker import Lifespan, Worker, WorkerOptions
from drumline.events import Event, Events
from drumline.model.claim import ANY_QUEUE, Claim, Share
from drumline.model.job import Job, LogLine
from drumline.model.query import Answer, By, Command, CommandKind, JobFilter
from drumline.model.replica import Replica
from drumline.model.schedule import Schedule
from drumline.policy.call import choose, make_job
from drumline.policy.options import Executor
from drumline.policy.task import TaskDefinition, define
from drumline.stores.base import Store
from drumline.stores.memory import MemoryStore
from tests.support.waiting import eventually
from tests.support.wire import Wire

ME = "me:1"
OTHER = "other:1"


class Kit:
    """A memory store behind a wire, tasks, and short words for what nearly every test does."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)
        self.wire = Wire(self.memory)
        self.registry: dict[str, TaskDefinition] = {}
        self.schedules: dict[str, Schedule] = {}
        self.executions = Executions()
        self.events = Events()
        self.told: list[Event] = []
        self.events.subscribe(self.told.append)

    @property
    def store(self) -> Store:
        return cast("Store", self.wire)

    def heard(self, kind: type[Event]) -> list[Any]:
        """The events of that kind so far."""
        return [event for event in self.told if type(event) is kind]

    def task(self, function: Callable[..., Any], **options: Any) -> str:
        """Declare a task; its name."""
        definition = define(function, **options)
        self.registry.update(dict.fromkeys((definition.name, *definition.aliases), definition))
        return definition.name

    def tasks_of(self, executor: Executor) -> list[str]:
        return sorted(name for name, task in self.registry.items() if task.executor is executor)

    def enqueue(self, task: str, /, *, using: dict[str, Any] | None = None, **arguments: Any) -> str:
        """Enqueue a job; its id."""
        definition = self.registry[task]
        job = make_job(definition, (), arguments, choose(definition, **(using or {})), fresh_id=fresh_id())
        return self.memory.enqueue([job]).run()[0].id

    def claim(self, limit: int = 1, *, replica: str = ME, tasks: Sequence[str] | None = None) -> list[Claim]:
        known = list(self.registry) if tasks is None else tasks
        return self.memory.claim(replica, [Share(ANY_QUEUE, limit)], limit, known, fresh_id()).run().claims

    def claim_one(self, task: str, /, *, replica: str = ME, using: dict[str, Any] | None = None, **args: Any) -> Claim:
        """Enqueue a job, and claim it."""
        job_id = self.enqueue(task, using=using, **args)
        (claim,) = self.claim(1, replica=replica, tasks=[task])
        assert claim.id == job_id
        return claim

    def execution(self, claim: Claim, on_words: Callable[[Execution], None] = lambda _: None) -> Execution:
        """The claim, as if it had begun to run here."""
        execution = Execution(claim, self.registry[claim.task], self.clock, self.clock.monotonic(), on_words)
        self.executions.add(execution)
        execution.begin()
        return execution

    def cancel(self, job_id: str) -> Answer:
        command = Command(id=fresh_id(), kind=CommandKind.CANCEL, ids=(job_id,), by=By("test"))
        return self.memory.command(command).run()[0]

    def job(self, job_id: str) -> Job:
        return self.memory.jobs(JobFilter(ids=(job_id,))).run().items[0]

    def state(self, job_id: str) -> str:
        return self.job(job_id).state.value

    def ends(self, job_id: str) -> list[str]:
        """How each attempt ended."""
        return [attempt.ended for attempt in self.job(job_id).attempts]

    def lines(self, job_id: str) -> list[LogLine]:
        return self.memory.logs(job_id).run()

    def workers(self) -> dict[str, Replica]:
        return {replica.info.id: replica for replica in self.memory.workers().run()}

    async def pass_time(self, until: Callable[[], object], by: float = 0.1) -> None:
        """Let time pass, a little at a time, until the condition holds."""

        def is_so() -> object:
            self.clock.advance(by)
            return until()

        if not until():
            await eventually(is_so)

    def worker(self, *, lifespan: Lifespan | None = None, **options: Any) -> Worker:
        given = WorkerOptions(**{"name": "me", "poll_interval": timedelta(hours=1), **options})
        board = Board(self.clock, self.schedules)
        return Worker(
            self.store, self.registry, given, lifespan=lifespan, clock=self.clock, events=self.events, board=board
        )

    @asynccontextmanager
    async def working(self, **options: Any) -> AsyncIterator[Worker]:
        """A worker at work; at the end it is hurried to a stop."""
        worker = self.worker(**options)
        run = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            worker.stop()
            await asyncio.wait([run], timeout=20)
            assert run.done(), "the worker does not stop"
        if not run.cancelled():
            run.result()
