"""Background jobs and schedules for Python: one decorator, from a laptop's SQLite file to a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drumline.app import Drumline
    from drumline.client import JobHandle
    from drumline.errors import (
        BadArgument,
        BadOption,
        BadSettings,
        DrumlineError,
        GiveUp,
        JobCancelled,
        JobDead,
        JobNotFound,
        KeyTaken,
        Retry,
        SchemaMismatch,
        Snooze,
        StoreError,
        StoreUnreachable,
        StoreUnusable,
        UnknownSchedule,
        UnknownTask,
        Unreadable,
    )
    from drumline.model.context import Context, current
    from drumline.model.job import Job, JobState
    from drumline.model.options import Backoff, Retention
    from drumline.model.schedule import Rule, Schedule
    from drumline.model.secret import Secret
    from drumline.task import Call, Task, Tasks

__all__ = [
    "Backoff",
    "BadArgument",
    "BadOption",
    "BadSettings",
    "Call",
    "Context",
    "Drumline",
    "DrumlineError",
    "GiveUp",
    "Job",
    "JobCancelled",
    "JobDead",
    "JobHandle",
    "JobNotFound",
    "JobState",
    "KeyTaken",
    "Retention",
    "Retry",
    "Rule",
    "Schedule",
    "SchemaMismatch",
    "Secret",
    "Snooze",
    "StoreError",
    "StoreUnreachable",
    "StoreUnusable",
    "Task",
    "Tasks",
    "UnknownSchedule",
    "UnknownTask",
    "Unreadable",
    "current",
]

# Where the names live that are not errors. A name is imported when it is first asked for: `drumline --help` needs none.
_PLACES = {
    "Drumline": "drumline.app",
    **dict.fromkeys(("Call", "Task", "Tasks"), "drumline.task"),
    "JobHandle": "drumline.client",
    **dict.fromkeys(("Context", "current"), "drumline.model.context"),
    **dict.fromkeys(("Job", "JobState"), "drumline.model.job"),
    **dict.fromkeys(("Backoff", "Retention"), "drumline.model.options"),
    **dict.fromkeys(("Rule", "Schedule"), "drumline.model.schedule"),
    "Secret": "drumline.model.secret",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_PLACES.get(name, "drumline.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
