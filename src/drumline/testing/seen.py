"""What a test can see: the jobs that were enqueued, as their callers asked for them, and assertions about them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from drumline.app import Drumline
from drumline.client import Client, JobHandle
from drumline.clock import ManualClock
from drumline.errors import BadArgument, JobNotFound, UnknownTask
from drumline.model.foreign import UNENCODABLE, encoder
from drumline.model.job import Attempt, Enqueued, Job
from drumline.model.options import JobOptions
from drumline.model.query import JobFilter
from drumline.model.view import instant_text, span_text
from drumline.policy.call import UsingOptions
from drumline.policy.task import TaskDefinition
from drumline.task import Task
from drumline.testing.store import HarnessStore

__all__ = ["Inspection", "SeenJob"]

AnyTask = Task[..., Any, Any] | str

_PAGE = 1000
# Of the jobs that were enqueued, a failed assertion lists so many.
_LISTED = 20
_MISSING = object()
# Names that are taken for an argument by mistake, and what was meant.
_NOT_ARGUMENTS = {
    **{name: f"ask for a job's options with {{0}}.using({name}=…)" for name in UsingOptions.__annotations__},
    "times": "count with len(harness.enqueued({0}, …))",
}
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class SeenJob(JobHandle[Any]):
    """A job as it stood when the test looked, with its arguments decoded."""

    def __init__(self, client: Client, job: Job, args: Mapping[str, Any], first_due: datetime) -> None:
        super().__init__(client, Enqueued(job.id, job.state, created=False), job)
        # The arguments that were sent, by name; a default that was left to the function is not among them.
        self.args = args
        # When it was to run first, whatever retries came of it.
        self.first_due = first_due

    def __repr__(self) -> str:
        return f"<{self.task}({_shown(self.args)}), {self.state} in queue {self.queue}{self._when()}>"

    @property
    def task(self) -> str:
        return self.info.task

    @property
    def queue(self) -> str:
        return self.info.queue

    @property
    def options(self) -> JobOptions:
        return self.info.options

    @property
    def delay(self) -> timedelta:
        """How long after it was enqueued it was to run first."""
        return self.first_due - self.info.created_at

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """One for each run, the oldest first."""
        return self.info.attempts

    @property
    def error(self) -> str | None:
        """What the newest failed attempt died of, as `Type: message`."""
        return self.info.last_error

    def _when(self) -> str:
        return f", delayed by {span_text(self.delay)}" if self.delay else ""


class Inspection:
    """The jobs of one test."""

    def __init__(self, drum: Drumline, store: HarnessStore, clock: ManualClock, client: Client) -> None:
        self.clock = clock
        self._drum = drum
        self._store = store
        self._client = client

    @property
    def now(self) -> datetime:
        """The present instant."""
        return self.clock.now()

    @property
    def jobs(self) -> list[SeenJob]:
        """Every job that was enqueued, the oldest first, as it stands now."""
        return self._find_all(JobFilter())[::-1]

    @property
    def last_job(self) -> SeenJob:
        """The job that was enqueued last."""
        if not (jobs := self.jobs):
            raise JobNotFound("no job was enqueued")
        return jobs[-1]

    def job(self, job: JobHandle[Any] | str) -> SeenJob:
        """That job as it stands now."""
        job_id = job if isinstance(job, str) else job.id
        found = self._find_all(JobFilter(ids=(job_id,)))
        if not found:
            raise JobNotFound(f"job {job_id}: no such job was enqueued in this harness")
        return found[0]

    def enqueued(self, task: AnyTask, /, **args: Any) -> list[SeenJob]:
        """The jobs of this task that were enqueued with these arguments, and perhaps others; the oldest first.

        A task with options, `task.using(queue="mail", delay="5m")`, asks for jobs that have them.
        """
        wanted = _Wanted(self._find(task), args)
        return [job for job in self.jobs if not wanted.compare(job)]

    def assert_enqueued(self, task: AnyTask, /, **args: Any) -> SeenJob:
        """Fail unless such a job (see `enqueued`) was enqueued; the newest of them."""
        __tracebackhide__ = True
        wanted = _Wanted(self._find(task), args)
        jobs = self.jobs
        fitting = [job for job in jobs if not wanted.compare(job)]
        if not fitting:
            raise AssertionError("\n".join([f"no job {wanted} was enqueued", *_explain(wanted, jobs), *_list(jobs)]))
        return fitting[-1]

    def assert_not_enqueued(self, task: AnyTask, /, **args: Any) -> None:
        """Fail if such a job (see `enqueued`) was enqueued."""
        __tracebackhide__ = True
        wanted = _Wanted(self._find(task), args)
        fitting = [job for job in self.jobs if not wanted.compare(job)]
        if fitting:
            raise AssertionError("\n".join([f"a job {wanted} was enqueued", *_list(fitting)]))

    def _find(self, task: AnyTask) -> Task[..., Any, Any]:
        return self._drum.find_task(task) if isinstance(task, str) else task

    def _find_all(self, where: JobFilter) -> list[SeenJob]:
        page = self._store.jobs(where, limit=_PAGE).run()
        found = list(page.items)
        while page.next is not None:
            page = self._store.jobs(where, after=page.next, limit=_PAGE).run()
            found += page.items
        first_due = self._store.first_due
        return [SeenJob(self._client, job, self._read_args(job), first_due.get(job.id, job.due_at)) for job in found]

    def _read_args(self, job: Job) -> dict[str, Any]:
        try:
            return _decode(self._drum.find_task(job.task).definition, job.args)
        except (UnknownTask, BadArgument):
            # Its code lives elsewhere, or has another shape by now.
            return msgspec.json.decode(job.args, type=dict[str, Any])


class _Wanted:
    """What an assertion asks for."""

    def __init__(self, task: Task[..., Any, Any], args: dict[str, Any]) -> None:
        self.task = task.name
        self._args = _check_args(task.definition, args)
        self._chosen = task.chosen
        self._options = task.chosen.options or task.definition.options
        parameters = task.definition.codec.signature.parameters
        self._defaults = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}

    def __str__(self) -> str:
        words = [f"of task {self.task}"]
        if self._args:
            words.append(f"with {_shown(self._args)}")
        if self._chosen.given:
            words.append(f"using {_shown(self._chosen.given)}")
        return " ".join(words)

    def compare(self, job: SeenJob) -> list[str]:
        """In what the job differs; nothing if it is one that was asked for."""
        if job.task != self.task:
            return [f"task: expected {self.task}, got {job.task}"]
        return [*self._compare_args(job), *self._compare_options(job)]

    def _compare_args(self, job: SeenJob) -> Iterator[str]:
        for name, expected in self._args.items():
            got = job.args.get(name, self._defaults.get(name, _MISSING))
            if got is _MISSING:
                yield f"{name}: expected {expected!r}, got nothing"
            elif not _is_same(got, expected):
                yield f"{name}: expected {expected!r}, got {got!r}"

    def _compare_options(self, job: SeenJob) -> Iterator[str]:
        for name, given in self._chosen.given.items():
            got = self._read_option(name, job)
            if got is not None:
                yield f"{name}: expected {given!r}, got {got}"

    def _read_option(self, name: str, job: SeenJob) -> str | None:
        """The job's own value of an option in which it differs, as text; None if it does not, or if nobody can tell."""
        chosen, info = self._chosen, job.info
        match name:
            case "delay":
                return None if job.delay == chosen.start else span_text(job.delay)
            case "at":
                return None if job.first_due == self._read_at(info) else instant_text(job.first_due)
            case "key":
                return None if chosen.key is not None and info.key == chosen.key.name else repr(info.key)
            case "tags":
                return None if set(chosen.tags) <= set(info.tags) else repr(info.tags)
            case "meta":
                return None if chosen.meta.items() <= info.meta.items() else repr(info.meta)
            case "id" | "origin":
                return None if getattr(info, name) == getattr(chosen, name) else repr(getattr(info, name))
            case "key_window" | "on_conflict" | "transaction":
                return None
            case _:
                got = getattr(info.options, name)
                return None if got == getattr(self._options, name) else _shown_option(got)

    def _read_at(self, job: Job) -> datetime:
        """When a job that was asked for with `at` is due first: a past time means at once."""
        assert isinstance(self._chosen.start, datetime)
        return max(self._chosen.start, job.created_at)


def _explain(wanted: _Wanted, jobs: list[SeenJob]) -> Iterator[str]:
    """In what the job that comes nearest differs."""
    nearest = min(
        (job for job in jobs if job.task == wanted.task), key=lambda job: len(wanted.compare(job)), default=None
    )
    if nearest is not None:
        yield f"the nearest is {nearest!r}:"
        yield from (f"    {difference}" for difference in wanted.compare(nearest))


def _list(jobs: list[SeenJob]) -> Iterator[str]:
    if not jobs:
        yield "nothing was enqueued"
        return
    yield "1 job was enqueued:" if len(jobs) == 1 else f"{len(jobs)} jobs were enqueued:"
    yield from (f"    {job!r}" for job in jobs[:_LISTED])
    if len(jobs) > _LISTED:
        yield f"    … and {len(jobs) - _LISTED} more"


def _check_args(definition: TaskDefinition, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments to look for; BadArgument for one that no job of the task can have."""
    parameters = definition.codec.signature.parameters
    takes_any = any(parameter.kind == inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    unknown = given.keys() - {parameter.name for parameter in parameters}
    if takes_any or not unknown:
        return given
    try:
        # The fields of an only model may be sent as if they were parameters.
        return _decode(definition, definition.codec.encode((), given))
    except BadArgument as error:
        for name in unknown & _NOT_ARGUMENTS.keys():
            meant = _NOT_ARGUMENTS[name].format(definition.name)
            raise BadArgument(f"{definition.codec.where}: {name}: unknown argument; {meant}") from error
        raise


def _decode(definition: TaskDefinition, data: bytes) -> dict[str, Any]:
    """Stored arguments by name."""
    positional, named = definition.codec.decode(data)
    parameters = definition.codec.signature.parameters
    names = [parameter.name for parameter in parameters if parameter.kind in _BY_POSITION]
    values: dict[str, Any] = dict(zip(names, positional, strict=False))
    rest = positional[len(names) :]
    star = next((p.name for p in parameters if p.kind == inspect.Parameter.VAR_POSITIONAL), None)
    return {**values, **({star: list(rest)} if star and rest else {}), **named}


def _is_same(got: Any, expected: Any) -> bool:
    """Whether they are equal, or would be sent as the same JSON."""
    if got == expected:
        return True
    try:
        return encoder.encode(got) == encoder.encode(expected)
    except (*UNENCODABLE, RecursionError):
        return False


def _shown(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _shown_option(value: Any) -> str:
    return span_text(value) if isinstance(value, timedelta) else repr(value)
