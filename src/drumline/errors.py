"""Every exception of Drumline: one root, one leaf per reaction of the person or program that meets it.

    DrumlineError
    ├── BadOption             an option was declared or given wrongly: mend the call
    ├── BadArgument           a task's argument does not fit its signature: mend the call
    ├── BadSettings           a setting, file or URL is not understood: mend the configuration
    ├── UnknownTask           the name is not registered: mend the name or import the module
    ├── UnknownSchedule       the schedule is not known: mend the name
    ├── KeyTaken              the unique key is in use and on_conflict="raise" was asked for
    ├── JobNotFound           no such job, or its retention is over
    ├── JobDead               the job that was waited for is dead
    ├── Unreadable            what is stored is encrypted, and the key is not here: give it to this process
    ├── JobCancelled          the job that was waited for was cancelled
    ├── StoreError
    │   ├── StoreUnreachable  it may come back: try again later
    │   ├── StoreUnusable     it will not work as it is: mend the file, disk or address
    │   └── SchemaMismatch    the store was written by another version: upgrade, or migrate
    └── Verdict               raised *by a task* to say what shall become of its job
        ├── Retry             again, after a time of the task's choosing
        ├── GiveUp            dead now, whatever attempts are left
        └── Snooze            again later, and this attempt does not count

The docstring of a leaf says what happened and what to do, and is its default message.
"""

from __future__ import annotations

import inspect
from datetime import datetime, timedelta

__all__ = [
    "BadArgument",
    "BadOption",
    "BadSettings",
    "DrumlineError",
    "GiveUp",
    "JobCancelled",
    "JobDead",
    "JobNotFound",
    "KeyTaken",
    "Retry",
    "SchemaMismatch",
    "Snooze",
    "StoreError",
    "StoreUnreachable",
    "StoreUnusable",
    "UnknownSchedule",
    "UnknownTask",
    "Unreadable",
    "Verdict",
]


class DrumlineError(Exception):
    """Something in Drumline went wrong."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.getdoc(type(self)))


class BadOption(DrumlineError, ValueError):
    """An option has a value that it cannot have."""

    def __init__(self, option: str, expected: str, got: object, where: str | None = None) -> None:
        self.option = option
        self.expected = expected
        self.got = got
        self.where = where
        prefix = f"{where}: " if where else ""
        super().__init__(f"{prefix}{option} must be {expected}, got {_show(got)}")

    def at(self, where: str) -> BadOption:
        """The same complaint, naming the place where the option was given."""
        return BadOption(self.option, self.expected, self.got, where)


class BadArgument(DrumlineError, ValueError):
    """An argument does not fit the task's signature."""


class BadSettings(DrumlineError, ValueError):
    """A setting is not understood."""


class UnknownTask(DrumlineError, LookupError):
    """No task of that name is registered: import the module that declares it, or mend the name."""


class UnknownSchedule(DrumlineError, LookupError):
    """No schedule of that name is known."""


class KeyTaken(DrumlineError):
    """Another job holds the unique key; nothing was enqueued."""

    def __init__(self, task: str, key: str, job_id: str) -> None:
        self.task = task
        self.key = key
        self.job_id = job_id
        super().__init__(f"task {task}: key {key!r} is held by job {job_id}; nothing was enqueued")


class JobNotFound(DrumlineError, LookupError):
    """No job of that id is stored: the id is wrong, or its retention is over."""


class JobDead(DrumlineError):
    """The job is dead: it failed for good."""


class JobCancelled(DrumlineError):
    """The job was cancelled."""


class Unreadable(DrumlineError):
    """What is stored is encrypted with a key that this process does not have: add it to encryption.older_keys."""


class StoreError(DrumlineError):
    """The store did not do what was asked."""


class StoreUnreachable(StoreError):
    """The store is out of reach just now; nothing is known to be lost, try again."""


class StoreUnusable(StoreError):
    """The store cannot be used as it is."""


class SchemaMismatch(StoreError):
    """The store's schema does not fit this version of Drumline."""


class Verdict(DrumlineError):
    """Raised by a task to decide what becomes of its job."""


class Retry(Verdict):
    """The task asks to be tried again."""

    # Of a subclass that does not say: the job's back-off.
    after: float | str | timedelta | datetime | None = None

    def __init__(self, message: str | None = None, *, after: float | str | timedelta | datetime | None = None) -> None:
        """`after`: seconds, a duration, an instant, or the text of a Retry-After header; else the job's back-off."""
        self.after = after
        super().__init__(message)


class GiveUp(Verdict):
    """The task says that trying again is no use."""


class Snooze(Verdict):
    """The task asks to be run later without spending an attempt."""

    def __init__(self, after: float | str | timedelta | datetime, message: str | None = None) -> None:
        self.after = after
        super().__init__(message)


def _show(value: object) -> str:
    try:
        return repr(value)
    except Exception as broken:  # noqa: BLE001 - it is somebody's, and may fail in any way while it is shown
        return f"a value of {type(value).__name__} that cannot be shown: {broken}"
