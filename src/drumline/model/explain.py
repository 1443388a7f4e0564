"""What is wrong with arguments, in one sentence that names the parameter and the path in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from drumline.model.fidelity import Fault, children, find_non_finite, type_name
from drumline.model.foreign import UNENCODABLE, encoder
from drumline.model.signature import describe

__all__ = ["explain", "lower"]

_MISMATCH = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
_MISSING = re.compile(r"Object missing required field `([^`]*)`")
_PLACE = re.compile(r" - at (?P<key>`key` in )?`\$\.?(?P<path>[^`]*)`$")
_JSON_NAMES = {"null": "None", "array": "list", "object": "dict"}
_NOWHERE = object()


def explain(annotations: Mapping[str, Any], values: Mapping[str, Any], error: Exception) -> str:
    """What an error of msgspec means for these values, where known, of parameters with these annotations."""
    try:
        if isinstance(error, RecursionError):
            raise error
        place, reason = find_non_finite(values) or _place(annotations, values, error)
    except RecursionError:
        return "the arguments are nested too deeply"
    return f"{place}: {reason}" if place else reason


def lower(sentence: str) -> str:
    """A sentence of another library, fit to stand after a colon."""
    plain = sentence.replace("`", "")
    # What begins with two capitals is a name, such as JSON.
    return plain if plain[1:2].isupper() else plain[:1].lower() + plain[1:]


def _place(annotations: Mapping[str, Any], values: Mapping[str, Any], error: Exception) -> Fault:
    if not isinstance(error, msgspec.DecodeError):
        return _blame(values, "", error)
    reason, path = _split_place(str(error))
    if missing := _MISSING.fullmatch(reason):
        return f"{path}{path and '.'}{missing[1]}", "required, got nothing"
    if mismatch := _MISMATCH.fullmatch(reason):
        expected = describe(annotations[path]) if path in annotations else _python_names(mismatch[1])
        found = _follow(values, path)
        return path, f"expected {expected}, got {_python_names(mismatch[2]) if found is _NOWHERE else type_name(found)}"
    return path, lower(reason)


def _split_place(text: str) -> tuple[str, str]:
    """msgspec's message without its path, and the path. A model inside has put its own path before."""
    path = ""
    while found := _PLACE.search(text):
        text, inner = text[: found.start()], found["path"] + ("[key]" if found["key"] else "")
        path += f".{inner}" if path and inner and not inner.startswith("[") else inner
    return text, path


def _blame(value: Any, path: str, error: Exception) -> Fault:
    """The innermost value that cannot be encoded."""
    for place, child in children(value, path):
        try:
            encoder.encode(child)
        except UNENCODABLE as inner:
            return _blame(child, place, inner)
    return path, ("a key of it: " if isinstance(value, Mapping) else "") + lower(str(error))


def _follow(value: Any, path: str, here: str = "") -> Any:
    for place, child in children(value, here):
        if place == path:
            return child
        if path.startswith((f"{place}.", f"{place}[")):
            return _follow(child, path, place)
    return _NOWHERE


def _python_names(names: str) -> str:
    return " | ".join(_JSON_NAMES.get(name, name) for name in names.split(" | "))
