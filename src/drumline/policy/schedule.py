"""A schedule as a program declares it: its options, what each may be, and what is said of one that is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Unpack, cast

from drumline.errors import BadArgument, BadOption
from drumline.model.instant import Duration, parse_duration
from drumline.model.options import check_count, check_name
from drumline.model.result import plain_object
from drumline.model.schedule import Coordination, DstFold, DstGap, Misfire, Overlap, Schedule
from drumline.policy.call import META_LIMIT, NO_CHOICE, CallOptions
from drumline.policy.options import ExceptionTypes, SharedOptions, TaskOptions, list_tags, merge, pick, refuse_unknown
from drumline.policy.rule import make_rule
from drumline.policy.task import TaskDefinition

__all__ = ["DeclaredOptions", "ScheduleOptions", "define_schedule", "split_options"]

_EQUIVALENTS = {
    "interval": "every=",
    "seconds": "every=, which takes seconds too",
    "crontab": "cron=",
    "tz": "timezone=",
    "zone": "timezone=",
    "kwargs": "args=, a mapping of the task's arguments",
    "retries": "max_attempts=, which counts the first attempt too",
    "coalesce": 'misfire="latest"',
    "max_instances": 'overlap="skip"',
    "limit": "misfire_limit=",
    "max_age": "misfire_max_age=",
    "delay": "start=, the first instant that counts",
}


class RuleOptions(SharedOptions, total=False):
    """When a schedule fires, and what becomes of each tick."""

    every: Duration
    cron: str
    timezone: str
    start: datetime | str
    end: datetime | str
    jitter: Duration
    dst_gap: DstGap | Literal["run_after", "skip"]
    dst_fold: DstFold | Literal["once", "twice"]
    coordination: Coordination | Literal["fleet", "per_replica"]
    misfire: Misfire | Literal["skip", "latest", "all"]
    misfire_grace: Duration
    misfire_limit: int
    misfire_max_age: Duration
    overlap: Overlap | Literal["allow", "skip", "queue_one", "cancel_running"]
    run_on_startup: bool
    args: Mapping[str, Any]
    meta: Mapping[str, Any]
    paused: bool


class ScheduleOptions(RuleOptions, total=False):
    """What `drum.schedules.register(…)` takes, and `@drum.schedule(…)` on a task."""

    name: str


class DeclaredOptions(ScheduleOptions, total=False):
    """What `@drum.schedule(…)` takes on a function, of which it makes a task too."""

    executor: Literal["coroutine", "thread", "process"]
    retry_on: ExceptionTypes
    give_up_on: ExceptionTypes
    aliases: Sequence[str]


_RULE = ("every", "cron", "timezone", "start", "end", "jitter", "dst_gap", "dst_fold")
_ONLY_TASK = frozenset({"executor", "retry_on", "give_up_on", "aliases"})
_TASK = _ONLY_TASK | SharedOptions.__annotations__.keys()
_SCHEDULE = frozenset({*SharedOptions.__annotations__, *RuleOptions.__annotations__, *ScheduleOptions.__annotations__})


def split_options(options: DeclaredOptions) -> tuple[TaskOptions, ScheduleOptions]:
    """What of a scheduled function's options is its task's, and what its schedule's; how to treat a job is of both."""
    task = {name: value for name, value in options.items() if name in _TASK}
    schedule = {name: value for name, value in options.items() if name not in _ONLY_TASK}
    return cast("TaskOptions", task), cast("ScheduleOptions", schedule)


def define_schedule(
    task: TaskDefinition,
    chosen: CallOptions = NO_CHOICE,
    /,
    *,
    in_code: bool = True,
    **options: Unpack[ScheduleOptions],
) -> Schedule:
    """Declare a schedule of the task; BadOption, naming the schedule and the option, for what it cannot have.

    `chosen`: what `using` has chosen for calls of the task; the options of the schedule itself come before it.
    """
    name = check_name(options.get("name", task.name), "schedule name")
    where = f"schedule {name}"
    try:
        return _define(name, where, task, {**_take_chosen(chosen), **options}, in_code=in_code)
    except BadOption as error:
        if error.where is not None:
            raise
        raise error.at(where) from error.__cause__
    except BadArgument as error:
        raise BadArgument(f"{where}: {error}") from None


def _take_chosen(chosen: CallOptions) -> Mapping[str, Any]:
    """What was chosen for calls; BadOption for what only one call can have, such as a key."""
    for option, value in chosen.given.items():
        if option not in _SCHEDULE:
            raise BadOption(option, "left out of using(…), for a schedule makes many jobs", value)
    return chosen.given


def _define(name: str, where: str, task: TaskDefinition, given: Mapping[str, Any], *, in_code: bool) -> Schedule:
    refuse_unknown(given, _SCHEDULE, _EQUIVALENTS)
    args = given.get("args", {})
    if not isinstance(args, Mapping):
        raise BadOption("args", "a mapping of the task's arguments", args)
    return Schedule(
        name=name,
        task=task.name,
        rule=make_rule(where, **{option: given[option] for option in _RULE if option in given}),
        coordination=pick(Coordination, given.get("coordination", Coordination.FLEET), "coordination"),
        misfire=pick(Misfire, given.get("misfire", Misfire.LATEST), "misfire"),
        **_read_limits(given),
        overlap=pick(Overlap, given.get("overlap", Overlap.ALLOW), "overlap"),
        run_on_startup=_read_flag(given, "run_on_startup"),
        args=task.codec.encode((), dict(args)),
        options=merge(task.options, given),
        tags=list_tags([*task.tags, *list_tags(given.get("tags", ()))]),
        meta=plain_object(given["meta"], "meta", META_LIMIT) if "meta" in given else {},
        in_code=in_code,
        paused=_read_flag(given, "paused"),
    )


def _read_limits(given: Mapping[str, Any]) -> dict[str, Any]:
    """How late a tick may be: only what was given, for the rest the value's own defaults stand."""
    limits: dict[str, Any] = {}
    if "misfire_grace" in given:
        limits["misfire_grace"] = grace = parse_duration(given["misfire_grace"], "misfire_grace")
        if not grace:
            # Then nothing would ever be on time.
            raise BadOption("misfire_grace", "a duration above zero", given["misfire_grace"])
    if "misfire_limit" in given:
        limits["misfire_limit"] = check_count(given["misfire_limit"], "misfire_limit")
    if given.get("misfire_max_age") is not None:
        limits["misfire_max_age"] = parse_duration(given["misfire_max_age"], "misfire_max_age")
    for option in ("misfire_limit", "misfire_max_age"):
        if option in limits and given.get("misfire") != Misfire.ALL:
            raise BadOption(option, 'left out unless misfire="all"', given[option])
    return limits


def _read_flag(given: Mapping[str, Any], option: str) -> bool:
    value = given.get(option, False)
    if not isinstance(value, bool):
        raise BadOption(option, "True or False", value)
    return value
