"""What a task's function takes and gives, as its signature says."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import inspect as kinds

from drumline.errors import BadOption
from drumline.model.context import Context
from drumline.model.foreign import foreign_types, types_inside
from drumline.model.secret import NO_MARKS, Marks, is_secret_type, secret_fields

__all__ = ["Parameter", "Signature", "describe", "find_code", "is_unresolved", "read_signature"]

_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_CONTEXT_NAMES = frozenset({"Context", "drumline.Context"})


class Parameter(msgspec.Struct, frozen=True):
    """One parameter that is sent with a job; `kind` is that of `inspect.Parameter`."""

    name: str
    annotation: Any
    kind: int
    default: Any = inspect.Parameter.empty

    @property
    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty and self.kind not in _MANY


class Signature(msgspec.Struct, frozen=True):
    """The parameters that are sent, whether a context is given before them, and what comes back."""

    parameters: tuple[Parameter, ...]
    takes_context: bool
    returns: Any
    # What of the arguments is not to be shown.
    secrets: Marks = NO_MARKS


def read_signature(function: Callable[..., Any], where: str, scope: Mapping[str, Any] | None = None) -> Signature:
    """Read a signature; `scope` holds names that its annotations may use besides those of its module.

    BadOption where a parameter cannot be sent, or where an annotation's name is not known (`is_unresolved`).
    """
    try:
        raw = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise BadOption("function", "one whose signature can be read", function, where) from error
    entries = list(raw.parameters.values())
    takes_context = bool(entries) and _is_context(entries[0], function, scope)
    if takes_context:
        _check_context(entries[0], where)
        entries = entries[1:]
    parameters = tuple(_read(entry, function, where, scope) for entry in entries)
    returns = _read_return(raw.return_annotation, function, scope)
    return Signature(parameters, takes_context, returns, _find_marks(parameters))


def _find_marks(parameters: Iterable[Parameter]) -> Marks:
    whole = frozenset(one.name for one in parameters if is_secret_type(one.annotation))
    return Marks(whole, secret_fields(one.annotation for one in parameters if one.name not in whole))


def is_unresolved(error: BadOption) -> bool:
    """Whether the complaint may vanish later, when a class that is named in an annotation has been defined."""
    return isinstance(error.__cause__, NameError)


def find_code(function: Callable[..., Any]) -> Any:
    """The function in which the code of a callable stands: below decorators, partials and `__call__`."""
    below = inspect.unwrap(function)
    while isinstance(below, functools.partial):
        below = inspect.unwrap(below.func)
    return below if inspect.isroutine(below) else type(below).__call__


def describe(annotation: Any) -> str:
    """An annotation as a person would write it."""
    if isinstance(annotation, type):
        return "None" if annotation is type(None) else annotation.__qualname__.rpartition(".")[2]
    return str(annotation).replace("typing.", "")


def _read(
    entry: inspect.Parameter, function: Callable[..., Any], where: str, scope: Mapping[str, Any] | None
) -> Parameter:
    option = f"parameter {entry.name}"
    try:
        annotation = _resolve(entry.annotation, function, scope)
        holds_context = any(_leads_to_context(node) for node in types_inside(annotation))
        foreign = next(foreign_types(annotation), None)
    except NameError as error:
        expected = "annotated with names that are defined (not only imported under TYPE_CHECKING)"
        raise BadOption(option, expected, entry.annotation, where) from error
    except (TypeError, ValueError, SyntaxError) as error:
        reason = str(error).partition(" - type ")[0].replace("`", "")
        raise BadOption(option, f"of a type that JSON can carry ({reason})", entry.annotation, where) from error
    if holds_context:
        raise BadOption(option, "the first one, by position, to be given the Context", describe(annotation), where)
    parameter = Parameter(entry.name, annotation, entry.kind, entry.default)
    # One with a default need not be sent; it is refused when it is.
    if foreign is not None and parameter.is_required:
        raise BadOption(option, "of a type that can travel as JSON", describe(annotation), where)
    return parameter


def _leads_to_context(node: kinds.Type) -> bool:
    return isinstance(node, kinds.StructType) and issubclass(node.cls, Context)


def _resolve(annotation: Any, function: Callable[..., Any], scope: Mapping[str, Any] | None) -> Any:
    if annotation is inspect.Parameter.empty:
        return Any
    # A class of its own for each annotation, so that one unknown name does not spoil the others.
    holder = types.new_class("_Holder")
    holder.__annotations__ = {"it": annotation}
    names = getattr(find_code(function), "__globals__", {})
    resolved = typing.get_type_hints(holder, names, dict(scope or {}), include_extras=True)["it"]
    if resolved is object:
        return Any
    if typing.get_origin(resolved) is Iterable:
        return list[typing.get_args(resolved)]  # type: ignore[misc]
    return resolved


def _read_return(annotation: Any, function: Callable[..., Any], scope: Mapping[str, Any] | None) -> Any:
    """The type of the result; Any where it is not said, not known or cannot be read back."""
    if annotation is inspect.Signature.empty:
        return Any
    try:
        resolved = _resolve(annotation, function, scope)
        return Any if next(foreign_types(resolved), None) else resolved
    except (NameError, TypeError, ValueError, SyntaxError):
        return Any


def _is_context(entry: inspect.Parameter, function: Callable[..., Any], scope: Mapping[str, Any] | None) -> bool:
    try:
        annotation = _resolve(entry.annotation, function, scope)
    except (NameError, TypeError, ValueError, SyntaxError):
        return entry.annotation in _CONTEXT_NAMES
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    options = typing.get_args(annotation) if is_union else (annotation,)
    return any(isinstance(option, type) and issubclass(option, Context) for option in options)


def _check_context(entry: inspect.Parameter, where: str) -> None:
    if entry.kind not in _BY_POSITION:
        raise BadOption(f"parameter {entry.name}", "given by position, to be given the Context", str(entry), where)
