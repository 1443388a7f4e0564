"""A task at the front door: call it, enqueue it, enqueue it with options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, Unpack, overload

import msgspec

from drumline.client import JobHandle
from drumline.clock import fresh_id
from drumline.engine.lifespan import Lifespan
from drumline.model.context import Context, current
from drumline.model.job import NewJob
from drumline.policy.call import NO_CHOICE, CallOptions, UsingOptions, choose, make_encoded_job, make_job
from drumline.policy.task import TaskDefinition

__all__ = ["Added", "Call", "DeclaredTasks", "Enqueuer", "ScheduleDecorator", "Task", "TaskDecorator", "Tasks", "place"]

P = ParamSpec("P")
C = TypeVar("C")
R = TypeVar("R")


class Call(msgspec.Struct, frozen=True):
    """One call of a task, ready to be enqueued: what `task.call(…)` makes for `drum.enqueue_many`."""

    job: NewJob
    transaction: Any = None
    # Whether the id of the job stands: the caller chose it, or was told it, or it was in a batch already.
    keeps_id: bool = False


class Enqueuer(Protocol):
    """Whoever makes jobs of calls: the app to which tasks belong."""

    @property
    def lifespan(self) -> Lifespan | None: ...

    async def enqueue_many(self, calls: Iterable[Call]) -> list[JobHandle[Any]]: ...

    def enqueue_many_sync(self, calls: Iterable[Call]) -> list[JobHandle[Any]]: ...


class Task(Generic[P, C, R]):
    """A task of this program. Calling it just runs the function; `enqueue` makes a job of the call."""

    def __init__(self, enqueuer: Enqueuer, definition: TaskDefinition, options: CallOptions = NO_CHOICE) -> None:
        self.definition = definition
        self._enqueuer = enqueuer
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
    def lifespan(self) -> Lifespan | None:
        """What the app opens in each process that runs its tasks."""
        return self._enqueuer.lifespan

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
        return Task(self._enqueuer, self.definition, choose(self.definition, self._options, **options))

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """The call as a value, for `drum.enqueue_many`."""
        return self._call(make_job(self.definition, args, kwargs, self._options, fresh_id=fresh_id()))

    def call_json(self, arguments: bytes | str) -> Call:
        """The same for arguments that come as a JSON object, from a command line or a request."""
        data = self.definition.codec.accept(arguments)
        return self._call(make_encoded_job(self.definition, data, self._options, fresh_id=fresh_id()))

    def _call(self, job: NewJob) -> Call:
        return Call(job, self._options.transaction, keeps_id=self._options.id is not None)

    def added(self, *args: P.args, **kwargs: P.kwargs) -> Added:
        """The call as a request adds it, which is told the id."""
        return Added(self._enqueuer, msgspec.structs.replace(self.call(*args, **kwargs), keeps_id=True))

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Make a job of this call. It is durable when this returns."""
        return (await self._enqueuer.enqueue_many([self.call(*args, **kwargs)]))[0]

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """The same for code that is not async."""
        return self._enqueuer.enqueue_many_sync([self.call(*args, **kwargs)])[0]


def place(calls: Sequence[Call]) -> list[NewJob]:
    """The jobs of one batch, its fresh ids handed out in its order: of jobs that are else equal the lowest runs first.

    From then on a call keeps its id: sent again, alone or in other company, it makes no second job.
    """
    fresh = dict.fromkeys(call.job.id for call in calls if not call.keeps_id)
    ids = dict(zip(fresh, sorted(fresh), strict=True))
    for call in calls:
        if not call.keeps_id:
            _keep_id(call, ids[call.job.id])
    return [call.job for call in calls]


def _keep_id(call: Call, job_id: str) -> None:
    # A frozen Struct has no other way to remember, and whoever has the call may send it again.
    if job_id != call.job.id:
        msgspec.structs.force_setattr(call, "job", msgspec.structs.replace(call.job, id=job_id))
    msgspec.structs.force_setattr(call, "keeps_id", True)


class Added:
    """A call that a request has added: it becomes a job before the response is sent, or at the latest behind it."""

    def __init__(self, enqueuer: Enqueuer, call: Call) -> None:
        self.call = call
        self._enqueuer = enqueuer

    async def __call__(self) -> None:
        """Where no `drum.install` takes it out before the response, the framework calls it behind that."""
        await self._enqueuer.enqueue_many([self.call])


class Background(Protocol):
    """What collects a request's background tasks, in FastAPI and Starlette alike."""

    def add_task(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> None: ...


class Tasks:
    """The tasks of one request: `tasks: Annotated[Tasks, Depends(drum.tasks)]`."""

    def __init__(self, background: Background) -> None:
        self._background = background

    @overload
    def add_task(self, function: Task[P, C, R], /, *args: P.args, **kwargs: P.kwargs) -> str: ...  # type: ignore[overload-overlap]
    @overload
    def add_task(self, function: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> None: ...

    def add_task(self, function: Any, /, *args: Any, **kwargs: Any) -> str | None:
        """Make a job of this call when the handler returns, and tell its id; others run behind the response."""
        if not isinstance(function, Task):
            self._background.add_task(function, *args, **kwargs)
            return None
        added = function.added(*args, **kwargs)
        self._background.add_task(added)
        return added.call.job.id


class DeclaredTasks(Mapping[str, TaskDefinition]):
    """`drum.tasks`: every task that is declared, by name; as a dependency of FastAPI, the tasks of one request."""

    def __init__(self, declared: Callable[[], Mapping[str, TaskDefinition]]) -> None:
        self._declared = declared

    def __getitem__(self, name: str) -> TaskDefinition:
        return self._declared()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared())

    def __len__(self) -> int:
        return len(self._declared())

    # FastAPI keeps dependencies in dicts; there is one of these for each app.
    __hash__ = object.__hash__

    @property
    def __signature__(self) -> inspect.Signature:
        """What FastAPI has to give: its own collection of the request's background tasks."""
        from starlette.background import BackgroundTasks

        by_name = inspect.Parameter("background", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=BackgroundTasks)
        return inspect.Signature([by_name])

    def __call__(self, background: Background) -> Tasks:
        return Tasks(background)


class ScheduleDecorator(Protocol):
    """What `@drum.schedule(…)` gives: it adds a schedule to a task, and first turns a function into one."""

    # A task can be called like the function it was made of, so the first that fits has to be taken.
    @overload
    def __call__(self, function: Task[P, C, R], /) -> Task[P, C, R]: ...  # type: ignore[overload-overlap]
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


class TaskDecorator(Protocol):
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
