"""What a program declares: its tasks, by name and alias, and the schedules of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import msgspec

from drumline.engine.finding import check_can_be_found
from drumline.errors import BadOption, UnknownTask, Unreadable
from drumline.loading import load_module
from drumline.model.job import Job
from drumline.model.result import decode_result
from drumline.model.schedule import Coordination, Schedule
from drumline.model.sealed import find_fault
from drumline.policy.call import NO_CHOICE, CallOptions
from drumline.policy.options import Executor, TaskOptions
from drumline.policy.schedule import DeclaredOptions, ScheduleOptions, define_schedule, split_options
from drumline.policy.task import TaskDefinition, define
from drumline.schedules import warn_of_idle_zone

if TYPE_CHECKING:
    from drumline.config import Settings

__all__ = ["Registry"]


class Registry:
    """Tasks and schedules of one program, each name held by one function."""

    def __init__(self, settings: Callable[[], Settings], imports: Sequence[str], on_change: Callable[[], None]) -> None:
        """`imports`: modules that declare, besides those that the settings name."""
        # By name and by alias.
        self.tasks: dict[str, TaskDefinition] = {}
        self.schedules: dict[str, Schedule] = {}
        self._schedule_tasks: dict[str, TaskDefinition] = {}
        self._settings = settings
        self._imports = tuple(imports)
        self._on_change = on_change

    def load(self) -> None:
        """Import the modules that declare; BadSettings for one that cannot be had."""
        for module in (*self._imports, *self._settings().imports):
            load_module(module, f"imports {module!r}")

    def by_name(self) -> Mapping[str, TaskDefinition]:
        """Every task under its own name, and not its aliases."""
        self.load()
        return {name: task for name, task in sorted(self.tasks.items()) if name == task.name}

    def find(self, name: str) -> TaskDefinition:
        """The task of that name or alias; UnknownTask if there is none."""
        if name not in self.tasks:
            self.load()
        if name not in self.tasks:
            near = get_close_matches(name, self.tasks, 1)
            hint = f"did you mean {near[0]!r}?" if near else "import the module that declares it, or use drum.stub()"
            raise UnknownTask(f"task {name!r} is not registered; {hint}")
        return self.tasks[name]

    def declare(self, function: Callable[..., Any], options: TaskOptions) -> TaskDefinition:
        """Make a task of a function; the same one declared again, as by a reload of its module, replaces itself."""
        definition = self._define(function, options)
        self._add(definition)
        return definition

    def declare_scheduled(self, function: Callable[..., Any], options: DeclaredOptions) -> TaskDefinition:
        """Make a task of a function, and add a schedule to it: both, or none."""
        of_task, of_schedule = split_options(options)
        definition = self._define(function, of_task)
        schedule = self._define_schedule(definition, NO_CHOICE, of_schedule)
        self._add(definition)
        self._add_schedule(definition, schedule)
        return definition

    def declare_schedule(self, task: TaskDefinition, chosen: CallOptions, options: ScheduleOptions) -> None:
        """Add a schedule to a task, with what `using` has chosen for that."""
        self._add_schedule(task, self._define_schedule(task, chosen, options))

    def _define(self, function: Callable[..., Any], options: TaskOptions) -> TaskDefinition:
        """The task; BadOption if it cannot be, or may not have its name."""
        definition = define(function, defaults=self._settings().jobs.options, **options)
        if definition.executor is Executor.PROCESS:
            check_can_be_found(definition)
        for name in (definition.name, *definition.aliases):
            standing = self.tasks.get(name)
            if standing is not None and not standing.is_same(definition):
                places = f"{standing.place} and {definition.place}"
                expected = f"unique, but two functions declare it, at {places}: give one of them name="
                raise BadOption("name", expected, name, f"task {name}")
        return definition

    def _define_schedule(self, task: TaskDefinition, chosen: CallOptions, options: ScheduleOptions) -> Schedule:
        """The same for a schedule."""
        schedule = self.adapt(define_schedule(task, chosen, **options))
        standing = self._schedule_tasks.get(schedule.name)
        # The same function made anew is a module that was loaded again.
        if standing is not None and (standing.function is task.function or not standing.is_same(task)):
            places = f"{standing.place} and {task.place}"
            expected = f"unique, but two schedules have it, at {places}: give one of them name="
            raise BadOption("name", expected, schedule.name, f"schedule {schedule.name}")
        return schedule

    def _add(self, definition: TaskDefinition) -> None:
        self.tasks.update(dict.fromkeys((definition.name, *definition.aliases), definition))
        self._on_change()

    def _add_schedule(self, task: TaskDefinition, schedule: Schedule) -> None:
        warn_of_idle_zone(schedule)
        self._schedule_tasks[schedule.name] = task
        self.schedules[schedule.name] = schedule
        self._on_change()

    def adapt(self, schedule: Schedule) -> Schedule:
        """The schedule as the settings want it."""
        settings = self._settings().scheduler
        if settings.backend == "in_process":
            return msgspec.structs.replace(schedule, coordination=Coordination.PER_REPLICA)
        limit = settings.lease_ttl_secs
        if limit is None or schedule.options.timeout is not None or schedule.coordination is not Coordination.FLEET:
            return schedule
        options = msgspec.structs.replace(schedule.options, timeout=limit)
        return msgspec.structs.replace(schedule, options=options)

    def read_result(self, job: Job) -> Any:
        """A job's result as its task's annotation says, or as plain JSON values where the task is not known."""
        if job.result is None:
            return None
        if fault := find_fault(job.result):
            raise Unreadable(f"job {job.id}: its result is {fault}")
        definition = self.tasks.get(job.task)
        if definition is None or job.result_is_repr:
            return msgspec.json.decode(job.result)
        return decode_result(job.result, definition.returns)
