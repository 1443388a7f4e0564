"""A task: a named function with its defaults, as the program declares it. It never goes into a store."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, Unpack

from drumline.errors import BadOption, UnknownTask
from drumline.model.codec import ArgsCodec
from drumline.model.options import JobOptions, check_name
from drumline.model.signature import find_code
from drumline.policy.options import (
    Executor,
    TaskOptions,
    list_exceptions,
    list_names,
    list_tags,
    merge,
    refuse_unknown,
)

__all__ = ["TaskDefinition", "define", "define_elsewhere"]

_PLAIN = JobOptions()
# What other libraries call it, and what a task takes instead.
_EQUIVALENTS = {
    "delay": "using(delay=…) with the call, or as backoff= for the wait before another attempt",
    "at": "using(at=…) with the call",
    "key": "using(key=…) with the call",
    "meta": "using(meta=…) with the call",
    "retries": "max_attempts=, which counts the first attempt too",
    "max_retries": "max_attempts=, which counts the first attempt too",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDefinition:
    """What the program says of one task."""

    name: str
    function: Callable[..., Any]
    codec: ArgsCodec
    options: JobOptions
    executor: Executor
    retry_on: tuple[type[BaseException], ...]
    give_up_on: tuple[type[Exception], ...]
    # Names under which jobs of this task may still be stored.
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    module: str
    qualname: str
    # file:line, for messages.
    place: str
    # Stands for the one time that its module was gone through; None where pieces of text come one after another.
    load: object

    @property
    def takes_context(self) -> bool:
        """Whether the function's first argument is the Context."""
        return self.codec.signature.takes_context

    @property
    def returns(self) -> Any:
        """The type of the result; Any if it is not known."""
        return self.codec.signature.returns

    def is_worth_retrying(self, error: BaseException) -> bool:
        """Whether another attempt may help after this error: it is of `retry_on`, and not of `give_up_on`."""
        return isinstance(error, self.retry_on) and not isinstance(error, self.give_up_on)

    def is_same(self, other: TaskDefinition) -> bool:
        """Whether both declare one function: as when a module is loaded again, or run as the main program.

        Two places in one text that was gone through once are two functions, whatever they are called.
        """
        here, there = (task.place.rpartition(":")[0] for task in (self, other))
        if here == there and self.load is not None and self.load is other.load and self.place != other.place:
            return False
        return self.qualname == other.qualname and (self.module == other.module or here == there)


def define(
    function: Callable[..., Any],
    /,
    *,
    defaults: JobOptions = _PLAIN,
    scope: Mapping[str, Any] | None = None,
    **options: Unpack[TaskOptions],
) -> TaskDefinition:
    """Declare a task; BadOption, naming the task and the option, for what it cannot have.

    `defaults` come from the settings. `scope` holds names for annotations besides those of the function's module,
    such as the local variables around the declaration.
    """
    name = _read_name(function, options)
    try:
        return _define(name, function, defaults, scope, options)
    except BadOption as error:
        if error.where is not None:
            raise
        raise error.at(f"task {name}") from error.__cause__


def define_elsewhere(name: str, /, *, defaults: JobOptions = _PLAIN, **options: Unpack[TaskOptions]) -> TaskDefinition:
    """Declare a task whose code lives in another program: it can be enqueued with any arguments, but not run."""

    def run_elsewhere(**_arguments: Any) -> NoReturn:
        raise UnknownTask(f"task {name}: its code lives in another program; here it can only be enqueued")

    options["name"] = name
    return define(run_elsewhere, defaults=defaults, **options)


def _define(
    name: str,
    function: Callable[..., Any],
    defaults: JobOptions,
    scope: Mapping[str, Any] | None,
    options: TaskOptions,
) -> TaskDefinition:
    _check_function(function)
    _check_names(options)
    code = find_code(function)
    return TaskDefinition(
        name=name,
        function=function,
        codec=ArgsCodec(function, name, scope),
        options=merge(defaults, options),
        executor=_read_executor(function, options),
        # Unless it says otherwise a task is tried again after anything, even SystemExit.
        retry_on=list_exceptions(options["retry_on"], "retry_on") if "retry_on" in options else (BaseException,),
        give_up_on=list_exceptions(options.get("give_up_on", ()), "give_up_on"),
        aliases=list_names(options.get("aliases", ()), "aliases"),
        tags=list_tags(options.get("tags", ())),
        module=code.__module__ or "",
        qualname=code.__qualname__,
        place=_find_place(code),
        load=_find_load(code),
    )


def _read_name(function: Any, options: TaskOptions) -> str:
    """The task's name. It stands in every further complaint, so it is checked first."""
    if "name" in options:
        return check_name(options["name"], "task name")
    own = getattr(function, "__name__", None)
    if own is None and not callable(function):
        raise BadOption("task", "a function", function)
    if own is None or own == "<lambda>":
        raise BadOption("task", "a function with a name, or declared with name=", function)
    return check_name(own, "task name")


def _check_function(function: Any) -> None:
    if inspect.isclass(function) or not callable(function):
        raise BadOption("task", "a function", function)
    called = _find_called(function)
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise BadOption("task", "a function that returns, not a generator that yields", function)


def _check_names(options: Mapping[str, Any]) -> None:
    retries = options.get("retries", options.get("max_retries"))
    if isinstance(retries, int):
        option = "retries" if "retries" in options else "max_retries"
        raise BadOption(option, f"given as max_attempts={retries + 1}, which counts the first attempt too", retries)
    refuse_unknown(options, TaskOptions.__annotations__, _EQUIVALENTS)


def _read_executor(function: Any, options: TaskOptions) -> Executor:
    is_async = inspect.iscoroutinefunction(_find_called(function))
    given: Any = options.get("executor", Executor.COROUTINE if is_async else Executor.THREAD)
    if given not in list(Executor):
        raise BadOption("executor", '"coroutine", "thread" or "process"', given)
    if given == Executor.COROUTINE and not is_async:
        raise BadOption("executor", '"thread" or "process" for a plain def', given)
    return Executor(given)


def _find_called(function: Any) -> Any:
    """What is called itself: a decorator may have made a plain function of an async one, or the other way round."""
    return function if inspect.isroutine(function) or isinstance(function, partial) else type(function).__call__


def _find_place(code: Any) -> str:
    text = getattr(code, "__code__", None)
    return f"{text.co_filename}:{text.co_firstlineno}" if text else f"{code.__module__}:0"


def _find_load(code: Any) -> object:
    """What tells one load of a module from the next: its spec, which a reload replaces; of a program its loader.

    What is typed at a prompt, or run cell by cell, has neither, or no file.
    """
    text, names = getattr(code, "__code__", None), getattr(code, "__globals__", {})
    if text is None or text.co_filename.startswith("<"):
        return None
    return names.get("__spec__") or names.get("__loader__")
