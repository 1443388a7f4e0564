"""Whether what arrives is what was sent: finds the first value that JSON would lose or change without a word.

An annotation may ask for a conversion (text for a UUID, a list for a set, a dict for a model): that is no change. A
value that arrives as plain text or as a plain list, because nothing says what it was, is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from math import isfinite
from typing import Any

from drumline.model.foreign import fields_of, is_pydantic

__all__ = ["Fault", "children", "find_change", "find_change_from_json", "find_non_finite", "type_name"]

# Where, and what is wrong there.
Fault = tuple[str, str]
_Leaf = Callable[[Any, Any], str | None]

NON_FINITE = "NaN and infinity cannot travel as JSON"


def find_change(sent: Any, arrived: Any) -> Fault | None:
    """The first difference that no annotation asked for, between Python values and what came of them."""
    return _compare(sent, arrived, "", _changed_value)


def find_change_from_json(sent: Any, arrived: Any) -> Fault | None:
    """The same for values read from JSON, where text is how everything is written: only unknown fields are faults."""
    return _compare(sent, arrived, "", lambda _sent, _arrived: None)


def find_non_finite(value: Any, path: str = "") -> Fault | None:
    """The first float that JSON has no number for."""
    if isinstance(value, float):
        return None if isfinite(value) else (path, NON_FINITE)
    faults = (find_non_finite(child, place) for place, child in children(value, path))
    return next((fault for fault in faults if fault), None)


def children(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The values directly inside a value, each with its path."""
    fields = value if isinstance(value, Mapping) else fields_of(value)
    if fields is not None:
        yield from ((_join(path, key), child) for key, child in fields.items())
    elif isinstance(value, list | tuple | AbstractSet):
        yield from ((f"{path}[{index}]", child) for index, child in enumerate(value))


def type_name(value: Any) -> str:
    """The type of a value as a complaint names it."""
    return "None" if value is None else type(value).__name__


def _compare(sent: Any, arrived: Any, path: str, leaf: _Leaf) -> Fault | None:
    if isinstance(arrived, Mapping):
        return _compare_mapping(sent, arrived, path, leaf)
    fields = fields_of(arrived)
    if fields is not None:
        return _compare_model(sent, arrived, fields, path, leaf)
    if isinstance(arrived, list | tuple) and isinstance(sent, list | tuple):
        pairs = zip(sent, arrived, strict=False)
        return _first(_compare(one, other, f"{path}[{index}]", leaf) for index, (one, other) in enumerate(pairs))
    if isinstance(arrived, AbstractSet) and isinstance(sent, AbstractSet):
        # What arrived unchanged is in both; of the rest any pair shows the change of type.
        pairs = zip(sent - arrived, arrived - sent, strict=False)
        return _first(_compare(one, other, f"{path}[{index}]", leaf) for index, (one, other) in enumerate(pairs))
    reason = leaf(sent, arrived)
    return (path, reason) if reason else None


def _compare_mapping(sent: Any, arrived: Mapping[Any, Any], path: str, leaf: _Leaf) -> Fault | None:
    if not isinstance(sent, Mapping):
        return path, f"expected dict, got {type_name(sent)} (it would arrive as a dict)"
    for key, value in sent.items():
        if key in arrived:
            fault = _compare(value, arrived[key], _join(path, key), leaf)
        else:
            fault = _compare_key(key, sent, arrived, path)
        if fault:
            return fault
    return None


def _compare_key(key: Any, sent: Mapping[Any, Any], arrived: Mapping[Any, Any], path: str) -> Fault | None:
    if not isinstance(key, str) and any(isinstance(other, str) for other in arrived):
        return _join(path, key), f"expected str as key, got {type_name(key)} (it would arrive as text)"
    # With as many keys as before, this one was converted as the annotation asks.
    return (_join(path, key), "unknown field") if len(sent) != len(arrived) else None


def _compare_model(sent: Any, arrived: Any, fields: dict[str, Any], path: str, leaf: _Leaf) -> Fault | None:
    kind = type(arrived)
    if isinstance(sent, Mapping):
        # A pydantic model says itself what it thinks of fields that it does not know.
        unknown = () if is_pydantic(kind) else set(sent) - set(getattr(kind, "__struct_encode_fields__", fields))
        return _first((_join(path, key), "unknown field") for key in sorted(unknown, key=str))
    if not isinstance(sent, kind):
        return path, f"expected {kind.__name__}, got {type_name(sent)}"
    before = fields_of(sent) or {}
    return _first(_compare(before[name], fields[name], _join(path, name), leaf) for name in fields if name in before)


def _changed_value(sent: Any, arrived: Any) -> str | None:
    if isinstance(sent, float) and not isfinite(sent):
        return NON_FINITE
    if isinstance(arrived, str) and not isinstance(sent, str):
        return f"expected str, got {type_name(sent)} (it would arrive as text)"
    if isinstance(arrived, bytes | bytearray) and isinstance(sent, str):
        return "expected bytes, got str"
    if isinstance(arrived, list) and not isinstance(sent, list | tuple):
        return f"expected list, got {type_name(sent)} (it would arrive as a list)"
    if isinstance(arrived, datetime) and isinstance(sent, datetime) and sent.utcoffset() != arrived.utcoffset():
        return "the offset of its time zone has seconds, which JSON's instants have not"
    if _is_secret(sent) and sent != arrived:
        return f"a {type_name(sent)} hides its value, also from JSON"
    return None


def _is_secret(value: Any) -> bool:
    """Whether the value is one of pydantic's secrets, which are written as asterisks."""
    return hasattr(value, "get_secret_value")


def _first(faults: Iterator[Fault | None]) -> Fault | None:
    return next((fault for fault in faults if fault), None)


def _join(path: str, key: Any) -> str:
    if not isinstance(key, str):
        return f"{path}[{key!r}]"
    return f"{path}.{key}" if path else key
