"""Drumline, the front door: a registry of tasks, bound to a store."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, Unpack, overload

import msgspec

from drumline.blocking import Blocking, BlockingLoop
from drumline.client import Client, JobHandle, Jobs, Queues
from drumline.clock import Clock, SystemClock, fresh_id
from drumline.engine.worker import Lifespan, Worker, WorkerOptions
from drumline.errors import BadOption, DrumlineError, UnknownTask
from drumline.events import Events, JobsEnqueued
from drumline.model.context import Context, current
from drumline.model.job import Job, NewJob
from drumline.model.options import check_count, check_name
from drumline.model.query import Counts
from drumline.model.replica import Replica, Role
from drumline.model.result import decode_result
from drumline.policy.call import NO_CHOICE, CallOptions, UsingOptions, choose, make_encoded_job, make_job
from drumline.policy.options import Executor, TaskOptions
from drumline.policy.task import TaskDefinition, define, define_elsewhere
from drumline.stores.base import Store
from drumline.stores.open import open_store

if TYPE_CHECKING:
    from drumline.config import Configuration, Settings

__all__ = ["Call", "Drumline", "Task"]

P = ParamSpec("P")
C = TypeVar("C")
R = TypeVar("R")

logger = logging.getLogger("drumline")


class Call(msgspec.Struct, frozen=True):
    """One call of a task, ready to be enqueued: what `task.call(…)` makes for `drum.enqueue_many`."""

    job: NewJob
    transaction: Any = None


class Task(Generic[P, C, R]):
    """A task of this program. Calling it just runs the function; `enqueue` makes a job of the call."""

    def __init__(self, drum: Drumline, definition: TaskDefinition, options: CallOptions = NO_CHOICE) -> None:
        self.definition = definition
        self._drum = drum
        self._options = options
        self.__name__ = definition.name
        self.__doc__ = definition.function.__doc__
        self.__wrapped__ = definition.function

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def chosen(self) -> CallOptions:
        """The options that `using` has chosen for calls made through this task."""
        return self._options

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C:
        """Run the function here and now, as if it were not a task."""
        given = (current(),) if self.definition.takes_context else ()
        answer: C = self.definition.function(*given, *args, **kwargs)
        return answer

    def using(self, **options: Unpack[UsingOptions]) -> Task[P, C, R]:
        """The same task with options for the calls made through it: delay=, at=, queue=, priority=, key=, id=, …"""
        return Task(self._drum, self.definition, choose(self.definition, self._options, **options))

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """The call as a value, for `drum.enqueue_many`."""
        job = make_job(self.definition, args, kwargs, self._options, fresh_id=fresh_id())
        return Call(job, self._options.transaction)

    def call_json(self, arguments: bytes | str) -> Call:
        """The same for arguments that come as a JSON object, from a command line or a request."""
        data = self.definition.codec.accept(arguments)
        return Call(
            make_encoded_job(self.definition, data, self._options, fresh_id=fresh_id()), self._options.transaction
        )

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Make a job of this call. It is durable when this returns."""
        return (await self._drum.enqueue_many([self.call(*args, **kwargs)]))[0]

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """The same for code that is not async."""
        return self._drum.enqueue_many_sync([self.call(*args, **kwargs)])[0]


class _Decorator(Protocol):
    """What `@drum.task(…)` gives: it turns a function into a task."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> Task[P, Coroutine[Any, Any, R], R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, Coroutine[Any, Any, R], R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R, R]: ...


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
        self.events = Events()
        self.lifespan = lifespan
        self._given = {"store.url": url, "store.namespace": namespace}
        self._imports = tuple(imports)
        self._clock = clock or SystemClock()
        # By name and by alias.
        self._registry: dict[str, TaskDefinition] = {}
        self._configuration: Configuration | None = None
        self._store: Store | None = None
        # Takes the place of the store that the settings name.
        self._stand_in: Store | None = None
        # The process in which the store was made ready: after a fork it is made ready again.
        self._ready_in: int | None = None
        self._client = Client(self.store, clock=self._clock, decode_result=self._decode_result)
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
    def task(self, function: None = None, /, **options: Unpack[TaskOptions]) -> _Decorator: ...

    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Make a task of a function: `@drum.task`, or `@drum.task(queue="mail", max_attempts=6, …)`."""
        if function is None:
            return lambda declared: self._declare(declared, options)
        return self._declare(function, options)

    def stub(self, name: str, /, **options: Unpack[TaskOptions]) -> Task[..., Any, Any]:
        """A task whose code lives in another program: it can be enqueued here, not run."""
        return Task(self, define_elsewhere(name, defaults=self.settings.jobs.options, **options))

    @property
    def tasks(self) -> Mapping[str, TaskDefinition]:
        """Every task that is declared, by name."""
        self._import()
        return {name: task for name, task in sorted(self._registry.items()) if name == task.name}

    def _declare(self, function: Callable[..., Any], options: dict[str, Any]) -> Task[Any, Any, Any]:
        definition = define(function, defaults=self.settings.jobs.options, **options)
        if definition.executor is Executor.PROCESS:
            raise BadOption("executor", '"coroutine" or "thread"', "process", f"task {definition.name}")
        for name in (definition.name, *definition.aliases):
            standing = self._registry.get(name)
            if standing is not None and not standing.is_same(definition):
                places = f"{standing.place} and {definition.place}"
                raise BadOption("name", f"unique, but two functions declare it, at {places}", name, f"task {name}")
        self._registry.update(dict.fromkeys((definition.name, *definition.aliases), definition))
        return Task(self, definition)

    def _import(self) -> None:
        for module in (*self._imports, *self.settings.imports):
            importlib.import_module(module)

    def find_task(self, name: str) -> Task[..., Any, Any]:
        """The task of that registered name; UnknownTask if there is none."""
        if name not in self._registry:
            self._import()
        if name not in self._registry:
            near = get_close_matches(name, self._registry, 1)
            hint = f"did you mean {near[0]!r}?" if near else "import the module that declares it, or use drum.stub()"
            raise UnknownTask(f"task {name!r} is not registered; {hint}")
        return Task(self, self._registry[name])

    # Jobs.

    async def enqueue(self, task: str, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        """Make a job of a task that is known by its registered name."""
        return await self.find_task(task).enqueue(*args, **kwargs)

    async def enqueue_many(self, calls: Iterable[Call]) -> list[JobHandle[Any]]:
        """Make a job of each call, all or none, in the order given."""
        batch = list(calls)
        store = await self.store()
        return self._handles(batch, await store.enqueue([call.job for call in batch], tx=_transaction(batch)))

    def enqueue_many_sync(self, calls: Iterable[Call]) -> list[JobHandle[Any]]:
        """The same for code that is not async."""
        batch = list(calls)
        store = self._open_store()
        if self._needs_migration():
            store.migrate().run()
        return self._handles(batch, store.enqueue([call.job for call in batch], tx=_transaction(batch)).run())

    @property
    def jobs(self) -> Jobs:
        """Find jobs, wait for them, act on them."""
        return self._client.jobs

    @property
    def queues(self) -> Queues:
        """Pause and resume queues."""
        return self._client.queues

    @property
    def sync(self) -> Blocking:
        """All verbs, blocking."""
        return Blocking(self._client, self._blocking_loop)

    async def counts(self) -> Counts:
        """How many jobs are in each state: in all, by queue, by task."""
        return await self._client.counts()

    async def workers(self) -> list[Replica]:
        """The replicas of the fleet, with what each runs now."""
        return await self._client.workers()

    def _handles(self, batch: list[Call], enqueued: Iterable[Any]) -> list[JobHandle[Any]]:
        if self.events:
            for call in batch:
                self.events.emit(JobsEnqueued(call.job.task, (call.job.id,)))
        return [self._client.answer(one) for one in enqueued]

    def _decode_result(self, job: Job) -> Any:
        if job.result is None:
            return None
        definition = self._registry.get(job.task)
        if definition is None or job.result_is_repr:
            return msgspec.json.decode(job.result)
        return decode_result(job.result, definition.returns)

    # Workers.

    async def run(
        self,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        drain: bool = False,
        role: Role = Role.COMBINED,
    ) -> None:
        """Work until stopped: SIGTERM drains, a second one hurries. With `drain`, stop when nothing is left to do."""
        for note in self.configuration.notes:
            logger.warning("%s", note)
        worker = await self.worker(self._worker_options(role, queues, concurrency, drain=drain))
        await worker.run()

    async def worker(self, options: WorkerOptions) -> Worker:
        """A worker for the tasks of this program, not yet running."""
        store = await self.store()
        self._import()
        return Worker(store, self._registry, options, lifespan=self.lifespan, clock=self._clock, events=self.events)

    def _worker_options(
        self, role: Role, queues: Sequence[str] | None, concurrency: int | None, *, drain: bool
    ) -> WorkerOptions:
        # Forty milliseconds to import, which only a worker need spend.
        from importlib.metadata import version

        from drumline.config import replica_name

        settings = self.settings.worker
        return WorkerOptions(
            name=replica_name(self.settings, os.environ),
            role=role,
            queues=settings.queues if queues is None else tuple(check_name(queue, "queues") for queue in queues),
            concurrency=settings.concurrency if concurrency is None else check_count(concurrency, "concurrency"),
            threads=settings.threads,
            shutdown_timeout=settings.shutdown_timeout,
            poll_interval=settings.poll_interval,
            drain=drain,
            version=version("drumline"),
        )

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

    async def store(self) -> Store:
        """The store, opened and migrated."""
        store = self._open_store()
        if self._needs_migration():
            await store.migrate()
        return store

    def _open_store(self) -> Store:
        if self._store is None:
            given = self.settings.store
            self._store = self._stand_in or open_store(
                given.url,
                clock=self._clock,
                synchronous=given.synchronous,
                allow_network_fs=given.allow_network_fs,
            )
        return self._store

    def _needs_migration(self) -> bool:
        """Whether the store is used for the first time in this process. Two at once may both migrate; one will."""
        if self._ready_in == os.getpid():
            return False
        self._ready_in = os.getpid()
        return self.settings.store.auto_migrate

    @contextmanager
    def standing_in(self, store: Store, clock: Clock, client: Callable[..., Client] = Client) -> Iterator[Client]:
        """Let another store, clock and client take the place of this program's own for a while: for its tests."""
        if self._stand_in is not None:
            raise DrumlineError("a harness or eager block of this Drumline is open already: they cannot be nested")
        own = self._store, self._ready_in, self._clock, self._client
        self._store, self._ready_in, self._clock, self._stand_in = None, None, clock, store
        self._client = client(self.store, clock=clock, decode_result=self._decode_result)
        try:
            yield self._client
        finally:
            self._stand_in = None
            self._store, self._ready_in, self._clock, self._client = own

    async def close(self) -> None:
        """Give back what the store holds; used again, it opens again."""
        store, self._store, self._ready_in = self._store, None, None
        if store is not None:
            await store.close()

    async def __aenter__(self) -> Self:
        await self.store()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _transaction(calls: list[Call]) -> object | None:
    """The one transaction that all of these calls are part of."""
    transactions = {id(call.transaction): call.transaction for call in calls}
    if len(transactions) > 1:
        raise BadOption("transaction", "the same for every call of one batch", len(transactions), "enqueue_many")
    return next(iter(transactions.values()), None)
