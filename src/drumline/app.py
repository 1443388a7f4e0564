"""Drumline, the front door: a registry of tasks, bound to a store."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast, overload

from drumline.blocking import Blocking, BlockingLoop
from drumline.client import Client, JobHandle, Jobs, Queues
from drumline.clock import Clock, SystemClock
from drumline.engine.board import Board
from drumline.engine.lifespan import Lifespan, check_lifespan
from drumline.engine.worker import Worker, WorkerOptions
from drumline.errors import BadOption, BadSettings, DrumlineError
from drumline.events import Events, JobEnqueued
from drumline.failpoint import failpoint
from drumline.middleware import AroundEnqueue, AroundRun, Enqueueing
from drumline.model.act import Act
from drumline.model.context import Context
from drumline.model.options import check_namespace
from drumline.model.query import Counts
from drumline.model.queues import Queues as QueueChoice
from drumline.model.replica import Replica, Role
from drumline.opening import OwnStore
from drumline.policy.call import NO_CHOICE, CallOptions
from drumline.policy.options import TaskOptions, list_modules, pick
from drumline.policy.schedule import DeclaredOptions, ScheduleOptions
from drumline.policy.task import TaskDefinition, define_elsewhere
from drumline.registry import Registry
from drumline.schedules import Schedules
from drumline.stores.base import Store
from drumline.stores.open import check_url
from drumline.task import Call, DeclaredTasks, ScheduleDecorator, Task, TaskDecorator, place

if TYPE_CHECKING:
    from drumline.config import Configuration, Settings

__all__ = ["Drumline"]

P = ParamSpec("P")
C = TypeVar("C")
R = TypeVar("R")

logger = logging.getLogger("drumline")


class Drumline:
    """Background jobs: tasks by decorator, jobs in a store, workers that run them."""

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str | None = None,
        imports: Sequence[str] = (),
        lifespan: Lifespan | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`url`: sqlite:///x.db, memory://; else the settings say, else sqlite:///drumline.db.

        `imports`: modules that declare tasks. `lifespan`: an async context manager; what it yields is `ctx.state`.
        """
        _check_given(url, namespace, imports, lifespan)
        self.events = Events()
        self.lifespan = lifespan
        self._given = {"store.url": url, "store.namespace": namespace}
        self._clock = clock or SystemClock()
        self._configuration: Configuration | None = None
        self._secret: bytes | None = None
        self._registry = Registry(lambda: self.settings, imports, self._tell_workers)
        self._own_store = OwnStore(lambda: self.settings, self._clock)
        self._around_enqueue: tuple[AroundEnqueue, ...] = ()
        self._around_run: tuple[AroundRun, ...] = ()
        # Those that `run` has started in this process.
        self._workers: tuple[Worker, ...] = ()
        self._board = Board(self._clock, self._registry.schedules)
        self._client = self._make_client()
        # Every task that is declared, by name; as a dependency of FastAPI, the tasks that a request adds.
        self.tasks = DeclaredTasks(self._registry.by_name)
        self._blocking_loop = BlockingLoop()

    # Tasks.

    @overload
    def task(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> Task[P, Coroutine[Any, Any, R], R]: ...
    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, Coroutine[Any, Any, R], R]: ...
    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R, R]: ...
    @overload
    def task(self, function: None = None, /, **options: Unpack[TaskOptions]) -> TaskDecorator: ...

    def task(self, function: Callable[..., Any] | None = None, /, **options: Unpack[TaskOptions]) -> Any:
        """Make a task of a function: `@drum.task`, or `@drum.task(queue="mail", max_attempts=6, …)`."""
        if function is None:
            return lambda declared: self._declare(declared, options)
        return self._declare(function, options)

    def stub(self, name: str, /, **options: Unpack[TaskOptions]) -> Task[..., Any, Any]:
        """A task whose code lives in another program: it can be enqueued here, not run."""
        return Task(self, define_elsewhere(name, defaults=self.settings.jobs.options, **options))

    def find_task(self, name: str) -> Task[..., Any, Any]:
        """The task of that registered name; UnknownTask if there is none."""
        return Task(self, self._registry.find(name))

    def _declare(self, function: Callable[..., Any], options: TaskOptions) -> Task[Any, Any, Any]:
        if isinstance(function, Task):
            expected = (
                "a function, and not a task already: "
                "write @drum.schedule(…) above @drum.task(…), or give the options to schedule(…)"
            )
            raise BadOption("task", expected, function, f"task {function.name}")
        return Task(self, self._registry.declare(function, options))

    def _tell_workers(self) -> None:
        """Let those who run already take up what was declared just now."""
        for worker in self._workers:
            worker.learn()

    # Schedules.

    def schedule(self, **options: Unpack[DeclaredOptions]) -> ScheduleDecorator:
        """Run a task at every instant of a rule: `@drum.schedule(every="10s")`, or cron=, timezone=, misfire=, …

        On a function it makes a task of it as well; on a task it adds a schedule to it.
        """

        def declare(declared: Any) -> Any:
            if isinstance(declared, Task):
                self._registry.declare_schedule(declared.definition, declared.chosen, cast("ScheduleOptions", options))
                return declared
            return Task(self, self._registry.declare_scheduled(declared, options))

        return declare

    @property
    def schedules(self) -> Schedules:
        """The fleet's schedules as this process last saw them, and the verbs on them."""
        return self.schedules_through(self._client)

    def schedules_through(self, client: Client) -> Schedules:
        """The same, with verbs that act as this client does."""
        self._registry.load()
        return Schedules(client, self._board, find_task=self._take_task, adapt=self._registry.adapt)

    def _take_task(self, given: Any) -> tuple[TaskDefinition, CallOptions]:
        if isinstance(given, Task):
            return given.definition, given.chosen
        if isinstance(given, str):
            return self._registry.find(given), NO_CHOICE
        expected = "a task, its registered name, or a Schedule value (make a task of a function with @drum.task)"
        raise BadOption("task", expected, given, "register")

    # Jobs.

    async def enqueue(self, task: str, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        """Make a job of a task that is known by its registered name."""
        return await self.find_task(task).enqueue(*args, **kwargs)

    async def enqueue_many(self, calls: Iterable[Call], *, act: Act | None = None) -> list[JobHandle[Any]]:
        """Make a job of each call, all or none; they run in the order given. With an act it stands in the audit."""
        batch = _list_calls(calls)
        store = await self.store()
        with Enqueueing(place(batch), self._around_enqueue) as under_way:
            failpoint("enqueue.before")
            under_way.answer = await store.enqueue(under_way.jobs, tx=_transaction(batch), act=act)
            failpoint("enqueue.answered")
        return self._handles(under_way)

    def enqueue_many_sync(self, calls: Iterable[Call]) -> list[JobHandle[Any]]:
        """The same for code that is not async."""
        batch = _list_calls(calls)
        store = self._own_store.ready_sync()
        with Enqueueing(place(batch), self._around_enqueue) as under_way:
            failpoint("enqueue.before")
            under_way.answer = store.enqueue(under_way.jobs, tx=_transaction(batch)).run()
            failpoint("enqueue.answered")
        return self._handles(under_way)

    @property
    def jobs(self) -> Jobs:
        """Find jobs, wait for them, act on them."""
        return self._client.jobs

    def client(self, *, via: str, who: str | None = None) -> Client:
        """A client in somebody's name: what it does stands in the audit as theirs, done through this door.

        Without a name it is the operating system's user.
        """
        return self._make_client(via=via, who=who)

    def _make_client(self, make: Callable[..., Client] = Client, **named: str | None) -> Client:
        return make(
            self.store,
            clock=self._clock,
            decode_result=self._registry.read_result,
            secret=lambda: self.secret,
            **named,
        )

    @property
    def queues(self) -> Queues:
        """Pause and resume queues."""
        return self._client.queues

    @property
    def sync(self) -> Blocking:
        """All verbs, blocking."""
        return Blocking(self, self._client, self.schedules, self._blocking_loop)

    async def counts(self) -> Counts:
        """How many jobs are in each state: in all, by queue, by task."""
        return await self._client.counts()

    async def workers(self) -> list[Replica]:
        """The replicas of the fleet, with what each runs now."""
        return await self._client.workers()

    def around_enqueue(self, middleware: AroundEnqueue) -> AroundEnqueue:
        """Have this generator around every enqueue: it is given the new jobs, yields them, and is sent the answer."""
        self._around_enqueue += (middleware,)
        return middleware

    def around_run(self, middleware: AroundRun) -> AroundRun:
        """Have this coroutine function around every run: it is given the context and the run, which it awaits."""
        self._around_run += (middleware,)
        return middleware

    def _handles(self, under_way: Enqueueing) -> list[JobHandle[Any]]:
        if self.events:
            for job, enqueued in zip(under_way.jobs, under_way.answer, strict=True):
                if enqueued.created:
                    self.events.emit(JobEnqueued(job.id, job.task, job.options.queue))
        return [self._client.answer(one) for one in under_way.answer]

    # Workers.

    async def run(
        self,
        *,
        queues: QueueChoice | None = None,
        concurrency: int | None = None,
        drain: bool = False,
        role: Role | str = Role.COMBINED,
        until: asyncio.Event | None = None,
    ) -> None:
        """Work until stopped: SIGTERM drains, a second one hurries. With `drain`, stop when nothing is left to do.

        `queues`: the first one first, or by weight: `{"mail": 4, "default": 1}`; None leaves it to the settings.
        `role`: which parts run: combined, worker, scheduler or web.
        `until`: drain when this is set; the signals then belong to the program that calls.
        """
        part = pick(Role, role, "role")
        for note in self.configuration.notes:
            logger.warning("%s", note)
        # Forty milliseconds to import, which only a worker need spend.
        from drumline.config.webhook import telling_webhook
        from drumline.config.worker import worker_options

        options = worker_options(self.settings, self.replica_name, part, queues, concurrency, drain=drain)
        worker = await self.worker(options)
        self._workers += (worker,)
        try:
            async with telling_webhook(self.settings, self.events, self._clock, self.replica_name):
                await (worker.run() if until is None else _serve_until(worker, until))
        finally:
            self._workers = tuple(other for other in self._workers if other is not worker)

    @property
    def running_here(self) -> tuple[Worker, ...]:
        """The workers that run in this process."""
        return self._workers

    @property
    def replica_name(self) -> str:
        """How this process is called in the fleet."""
        from drumline.config import replica_name

        return replica_name(self.settings, os.environ)

    def resize(
        self,
        *,
        concurrency: int | None = None,
        threads: int | None = None,
        children: int | None = None,
        caps: Mapping[str, int | None] | None = None,
        reserved: Mapping[str, int | None] | None = None,
    ) -> None:
        """Change how many jobs `run` may run at once in this process, while it runs; from any thread.

        `caps` and `reserved`: by queue; None takes it away, and queues that are not named keep what they have.
        What runs beyond a lowered limit goes on to its end. DrumlineError if nothing runs here.
        """
        if not self._workers:
            raise DrumlineError("no worker runs in this process: call drum.run() first")
        for worker in self._workers:
            worker.resize(concurrency=concurrency, threads=threads, children=children, caps=caps, reserved=reserved)

    async def worker(self, options: WorkerOptions) -> Worker:
        """A worker for the tasks of this program, not yet running."""
        store = await self.store()
        self._registry.load()
        return Worker(
            store,
            self._registry.tasks,
            options,
            lifespan=self.lifespan,
            clock=self._clock,
            events=self.events,
            around=self._around_run,
            board=self._board,
        )

    # Pages.

    def install(
        self,
        app: Any,
        *,
        auth: Any = None,
        path: str | None = "/admin/jobs",
        actuator: str | None = "/actuator",
        track: str | None = "/track",
        role: Role | str | None = Role.COMBINED,
        owner: Callable[[Any], Any] | None = None,
    ) -> None:
        """Make it part of a FastAPI or Starlette app: its pages, and a worker and scheduler that live as long as it.

        `auth`: who may come in; without it all but the open words answer 403. A path that is None is not served.
        `role`: which parts run in this process: combined, worker, scheduler, web, or None for the pages alone.
        `owner`: a function of the request that tells which end user tracks a job; needed for jobs that name an owner.
        """
        with _needing("web"):
            from drumline.web.install import install
        install(self, app, auth=auth, path=path, actuator=actuator, track=track, role=role, owner=owner)

    def asgi(
        self,
        *,
        auth: Any = None,
        path: str | None = "/admin/jobs",
        actuator: str | None = "/actuator",
        track: str | None = "/track",
        role: Role | str | None = None,
        owner: Callable[[Any], Any] | None = None,
    ) -> Any:
        """The same pages as an ASGI app of their own, to be mounted in a program of any framework, or served alone."""
        with _needing("web"):
            from drumline.web.install import make_app
        return make_app(self, auth=auth, path=path, actuator=actuator, track=track, role=role, owner=owner)

    # Life.

    @property
    def configuration(self) -> Configuration:
        """The settings as given in code, the environment, a file, or by default, with the origin of each."""
        if self._configuration is None:
            # It takes a fifth of a second to import, which a program that only declares tasks need not spend twice.
            from drumline.config import load_settings

            self._configuration = load_settings(self._given)
        return self._configuration

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    @property
    def secret(self) -> bytes:
        """What the processes of this fleet share and nobody else knows: tokens for end users are sealed with it."""
        if self._secret is None:
            from drumline.config.secret import fleet_secret

            self._secret = fleet_secret(self.settings)
        return self._secret

    async def store(self) -> Store:
        """The store, opened and migrated."""
        return await self._own_store.ready()

    def store_as_it_is(self) -> Store:
        """The store, which may have to be migrated before it can be used."""
        return self._own_store.as_it_is()

    @contextmanager
    def standing_in(self, store: Store, clock: Clock, client: Callable[..., Client] = Client) -> Iterator[Client]:
        """Let another store, clock and client take the place of this program's own for a while: for its tests."""
        if self._own_store.is_stand_in:
            raise DrumlineError("a harness or eager block of this Drumline is open already: they cannot be nested")
        own = self._own_store, self._clock, self._client, self._board
        self._own_store, self._clock = OwnStore(lambda: self.settings, clock, store), clock
        self._board = Board(clock, self._registry.schedules)
        self._client = self._make_client(client)
        try:
            yield self._client
        finally:
            self._own_store, self._clock, self._client, self._board = own

    async def close(self) -> None:
        """Give back what the store holds; used again, it opens again."""
        await self._own_store.close()

    async def __aenter__(self) -> Self:
        await self.store()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _check_given(url: str | None, namespace: str | None, imports: Sequence[str], lifespan: Lifespan | None) -> None:
    """BadSettings or BadOption for what is given wrongly; what the settings give is checked when they are read."""
    if url is not None:
        check_url(url)
    try:
        if namespace is not None:
            check_namespace(namespace, "namespace")
        list_modules(imports, "imports")
        if lifespan is not None:
            check_lifespan(lifespan)
    except BadOption as error:
        raise error.at("Drumline") from None


@contextmanager
def _needing(extra: str) -> Iterator[None]:
    """Around an import of what most programs do without: if a package is missing, say how to get it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("drumline"):
            raise
        raise BadSettings(f"this needs the package {error.name}: pip install 'drumline[{extra}]'") from error


async def _serve_until(worker: Worker, until: asyncio.Event) -> None:
    async def stop() -> None:
        await until.wait()
        worker.stop()

    watching = asyncio.ensure_future(stop())
    try:
        await worker.serve()
    finally:
        watching.cancel()


def _list_calls(calls: Iterable[Call]) -> list[Call]:
    """The calls; BadOption for what is none, such as a task that was not called."""
    batch: list[Any] = list(calls)
    for call in batch:
        if not isinstance(call, Call):
            raise BadOption("calls", "calls, as task.call(…) makes them", call, "enqueue_many")
    return batch


def _transaction(calls: list[Call]) -> object | None:
    """The one transaction that all of these calls are part of."""
    transactions = {id(call.transaction): call.transaction for call in calls}
    if len(transactions) > 1:
        raise BadOption("transaction", "the same for every call of one batch", len(transactions), "enqueue_many")
    return next(iter(transactions.values()), None)
