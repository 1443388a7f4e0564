"""Finding a task by its module and name: all that a child process is told of it."""

from __future__ import annotations

import importlib
import inspect
import itertools
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Protocol, cast

import msgspec

from drumline.engine.border import Main
from drumline.engine.lifespan import Lifespan
from drumline.errors import BadOption, UnknownTask
from drumline.policy.task import TaskDefinition

__all__ = ["Address", "FoundTask", "check_can_be_found", "find_main", "find_task", "locate"]

MAIN = "__main__"
_HIDDEN = ("<locals>", "<lambda>")


class FoundTask(Protocol):
    """A task as it stands in its module."""

    definition: TaskDefinition

    @property
    def lifespan(self) -> Lifespan | None:
        """That of the app to which the task belongs."""


class Address(msgspec.Struct, frozen=True):
    """Where a task stands."""

    module: str
    qualname: str


def check_can_be_found(definition: TaskDefinition) -> None:
    """BadOption for a task that no other process could find."""
    where = f"task {definition.name}"
    if any(part in definition.qualname for part in _HIDDEN):
        expected = 'given to a function of a module, which a child process can import: here "coroutine" or "thread"'
        raise BadOption("executor", expected, "process", where)
    if definition.module == MAIN and find_main() is None:
        expected = 'given to a function of a file, which a child process can run: here "coroutine" or "thread"'
        raise BadOption("executor", expected, "process", where)


def find_main() -> Main | None:
    """What another process has to load to have this one's main program; None if there is no file of it."""
    main = sys.modules[MAIN]
    spec = getattr(main, "__spec__", None)
    path = getattr(main, "__file__", None)
    if spec is None and path is None:
        return None
    return Main(None if spec is None else spec.name, path)


def locate(definition: TaskDefinition) -> Address:
    """Where a child process will find the task; BadOption if nowhere.

    A function may be declared elsewhere than it is written: then its module holds no task.
    """
    home = sys.modules.get(definition.module)
    if home is not None and _find_in(home, definition.qualname, definition.name) is not None:
        return Address(definition.module, definition.qualname)
    for name, module in list(sys.modules.items()):
        for attribute, task in _tasks_of(module):
            if task.definition is definition:
                return Address(name, attribute)
    expected = f"given to a task that stands in a module, where a child process finds it ({definition.place})"
    raise BadOption("executor", expected, "process", f"task {definition.name}")


def find_task(address: Address, name: str) -> FoundTask:
    """The task at that address, under its name or an alias; UnknownTask if it is not there."""
    module = importlib.import_module(address.module)
    found = _find_in(module, address.qualname, name)
    if found is None:
        raise UnknownTask(f"task {name!r} is not {address.qualname} of module {address.module} in a child process")
    return found


def _find_in(module: ModuleType, qualname: str, name: str) -> FoundTask | None:
    value: Any = module
    for part in qualname.split("."):
        value = inspect.getattr_static(value, part, None)
    named = _as_task(value)
    # Under another name perhaps: `nightly = drum.task(clean, …)`.
    tasks = itertools.chain([] if named is None else [named], (task for _, task in _tasks_of(module)))
    return next((task for task in tasks if name in (task.definition.name, *task.definition.aliases)), None)


def _tasks_of(module: ModuleType) -> Iterator[tuple[str, FoundTask]]:
    for attribute, value in list(getattr(module, "__dict__", {}).items()):
        task = _as_task(value)
        if task is not None:
            yield attribute, task


def _as_task(value: Any) -> FoundTask | None:
    # Without asking the value itself: a module may hold things that fail when they are looked at.
    definition = inspect.getattr_static(value, "definition", None)
    return cast("FoundTask", value) if isinstance(definition, TaskDefinition) else None
