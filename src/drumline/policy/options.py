"""The options of tasks and calls: which there are, what each may be, and what is said of one that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Literal, TypedDict, TypeVar

import msgspec

from drumline.errors import BadOption
from drumline.model.instant import Duration, parse_duration
from drumline.model.options import Backoff, JobOptions, Retention, check_name

__all__ = [
    "Executor",
    "SharedOptions",
    "TaskOptions",
    "check_storable",
    "check_text",
    "list_exceptions",
    "list_modules",
    "list_names",
    "list_tags",
    "merge",
    "pick",
    "refuse_unknown",
]

Choice = TypeVar("Choice", bound=StrEnum)

MOST_TAGS = 20
LONGEST_TAG = 100
_STORABLE = "text without NUL and without half characters"

ExceptionTypes = type[Exception] | Sequence[type[Exception]]


class Executor(StrEnum):
    """Where a task runs."""

    COROUTINE = "coroutine"
    THREAD = "thread"
    PROCESS = "process"


class SharedOptions(TypedDict, total=False):
    """How a job is to be treated: given with the task, or with one call."""

    queue: str
    priority: int
    max_attempts: int
    backoff: Backoff | Duration | Sequence[Duration]
    timeout: Duration | None
    lease: Duration
    retention: Retention | Duration
    tags: Sequence[str]


class TaskOptions(SharedOptions, total=False):
    """What `@drum.task(…)` takes."""

    name: str
    executor: Literal["coroutine", "thread", "process"]
    retry_on: ExceptionTypes
    give_up_on: ExceptionTypes
    aliases: Sequence[str]


def merge(options: JobOptions, changes: Mapping[str, Any]) -> JobOptions:
    """The options with those of `changes` that are a job's own; the rest of `changes` is not looked at."""
    read = {name: reader(changes[name]) for name, reader in _JOB_OPTIONS.items() if name in changes}
    if not read:
        return options
    try:
        # Not `structs.replace`, which in older releases of msgspec does not check the result.
        return JobOptions(**{**msgspec.structs.asdict(options), **read})
    except BadOption as error:
        # "0s", as it was given, and not the timedelta that came of it.
        raise BadOption(error.option, error.expected, changes.get(error.option, error.got)) from None


def refuse_unknown(given: Iterable[str], known: Iterable[str], equivalents: Mapping[str, str]) -> None:
    """BadOption for the first name that is no option, with what was probably meant."""
    names = sorted(known)
    for name in given:
        if name in names:
            continue
        if name in equivalents:
            raise BadOption("option", f"given as {equivalents[name]}", name)
        near = get_close_matches(name, names, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise BadOption("option", f"one of {', '.join(names)}{hint}", name)


def list_tags(value: object) -> tuple[str, ...]:
    """Tags, without repeats, in the order given."""
    expected = f"a list of at most {MOST_TAGS} texts of 1 to {LONGEST_TAG} characters"
    given = _list(value, "tags", expected)
    if not all(isinstance(tag, str) and 1 <= len(tag) <= LONGEST_TAG for tag in given):
        raise BadOption("tags", expected, value)
    tags = tuple(dict.fromkeys(given))
    if len(tags) > MOST_TAGS:
        raise BadOption("tags", expected, value)
    if not all(map(_is_storable, tags)):
        raise BadOption("tags", _STORABLE, value)
    return tags


def list_names(value: object, option: str) -> tuple[str, ...]:
    """Names that tasks may have."""
    return tuple(dict.fromkeys(check_name(name, option) for name in _list(value, option, "a list of names")))


def list_modules(value: object, option: str) -> tuple[str, ...]:
    """Names of modules."""
    expected = "a list of names of modules"
    names = _list(value, option, expected)
    if not all(isinstance(name, str) for name in names):
        raise BadOption(option, expected, value)
    return names


def list_exceptions(value: object, option: str) -> tuple[type[Exception], ...]:
    """Exception classes, one or many."""
    expected = "an exception class, or a list of them"
    kinds = (value,) if isinstance(value, type) else _list(value, option, expected)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise BadOption(option, expected, value)
    return tuple(kinds)


def pick(kind: type[Choice], value: object, option: str) -> Choice:
    """The choice of that name."""
    for choice in kind:
        if choice == value:
            return choice
    raise BadOption(option, " or ".join(f'"{choice}"' for choice in kind), value)


def check_text(value: object, option: str, longest: int) -> str:
    """A text that is not empty and not too long, and that every store can hold."""
    if not isinstance(value, str) or not 1 <= len(value) <= longest:
        raise BadOption(option, f"a text of 1 to {longest} characters", value)
    return check_storable(value, option)


def check_storable(value: object, option: str) -> str:
    """A text, which may be empty, that every store can hold."""
    if not isinstance(value, str) or not _is_storable(value):
        raise BadOption(option, _STORABLE, value)
    return value


def _is_storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _list(value: object, option: str, expected: str) -> tuple[Any, ...]:
    # A text is a sequence of texts too, and never what was meant.
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence | set | frozenset):
        raise BadOption(option, expected, value)
    return tuple(value) if isinstance(value, Sequence) else tuple(sorted(value, key=str))


def _read_timeout(value: Any) -> timedelta | None:
    return None if value is None else parse_duration(value, "timeout")


def _read_same(value: Any) -> Any:
    return value


_JOB_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "queue": lambda value: check_name(value, "queue"),
    "priority": _read_same,
    "max_attempts": _read_same,
    "backoff": Backoff.of,
    "timeout": _read_timeout,
    "lease": lambda value: parse_duration(value, "lease"),
    "retention": Retention.of,
}
