"""Values that msgspec does not carry by itself: pydantic models, and subclasses of text and numbers.

Pydantic is never imported here: its models are known by their methods.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect as kinds

__all__ = [
    "UNENCODABLE",
    "decode_foreign",
    "encode_foreign",
    "encoder",
    "field_names",
    "fields_of",
    "foreign_types",
    "is_pydantic",
    "types_inside",
]

# What `encoder` raises for a value that cannot be written, besides RecursionError.
UNENCODABLE = (TypeError, ValueError, OverflowError, msgspec.MsgspecError)

# Not `str(value)`, which would ask the subclass.
_PLAIN: dict[type, Callable[[Any], Any]] = {str: str.__str__, int: int.__int__, float: float.__float__}


def encode_foreign(value: Any) -> Any:
    """What msgspec shall write for a value that it does not know; TypeError if nothing can be."""
    kind: Any = type(value)
    if is_pydantic(kind):
        # Without its warnings: what does not fit is found when the text is read back.
        text = value.model_dump_json(round_trip=True, by_alias=not _reads_names(kind), warnings=False)
        return msgspec.Raw(text.encode())
    for plain, read in _PLAIN.items():
        if isinstance(value, plain):
            return read(value)
    raise TypeError(f"values of type {kind.__name__} cannot travel as JSON")


def decode_foreign(wanted: type, value: Any) -> Any:
    """The model that a JSON value stands for."""
    if not is_pydantic(wanted):
        raise ValueError(f"values of type {wanted.__name__} cannot travel as JSON")
    model: Any = wanted
    names: dict[str, Any] = {"by_alias": True, "by_name": True} if _reads_names(model) else {}
    try:
        # From JSON and not from Python values: a strict model takes a date as text only there.
        return model.model_validate_json(msgspec.json.encode(value), **names)
    except ValueError as error:
        raise ValueError(_first_fault(error)) from error


def is_pydantic(kind: type) -> bool:
    """Whether this is a class of pydantic models."""
    return hasattr(kind, "model_validate_json") and hasattr(kind, "model_dump_json")


def field_names(annotation: Any) -> frozenset[str] | None:
    """The fields of a class with named fields, such as a dataclass or a pydantic model; None if it is none."""
    match kinds.type_info(annotation):
        case kinds.StructType(fields=fields) | kinds.DataclassType(fields=fields) | kinds.TypedDictType(fields=fields):
            return frozenset(field.encode_name for field in fields)
        case kinds.CustomType(cls=kind) if is_pydantic(kind):
            model: Any = kind
            return frozenset(model.model_fields)
        case _:
            return None


def fields_of(value: Any) -> dict[str, Any] | None:
    """The fields of a model's instance by name; None if the value is no model."""
    kind = type(value)
    if isinstance(value, msgspec.Struct):
        names = kind.__struct_fields__
    elif dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
    elif is_pydantic(kind):
        names = tuple(kind.model_fields)
    else:
        return None
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def foreign_types(annotation: Any) -> Iterator[type]:
    """The classes inside an annotation that neither msgspec nor this module can carry."""
    return (
        node.cls
        for node in types_inside(annotation)
        if isinstance(node, kinds.CustomType) and not is_pydantic(node.cls)
    )


def types_inside(annotation: Any) -> Iterator[kinds.Type]:
    """The types that an annotation is made of, as msgspec describes them."""
    waiting: list[Any] = [kinds.type_info(annotation)]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(node)
        elif isinstance(node, kinds.Type | kinds.Field) and id(node) not in seen:
            # A type may contain itself.
            seen.add(id(node))
            if isinstance(node, kinds.Type):
                yield node
            waiting.extend(getattr(node, name) for name in node.__struct_fields__)


@cache
def _reads_names(kind: Any) -> bool:
    # Since pydantic 2.11; before, a model with an alias could be read by that alias only.
    return "by_name" in inspect.signature(kind.model_validate_json).parameters


def _first_fault(error: ValueError) -> str:
    """One line for the many that pydantic writes."""
    list_faults = getattr(error, "errors", None)
    if list_faults is None:
        return str(error)
    faults: list[Mapping[str, Any]] = list_faults(include_url=False, include_context=False, include_input=False)
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in faults[0]["loc"])
    # In msgspec's own form, so that the whole path can be put together.
    return f"{faults[0]['msg']}{more} - at `${place}`"


encoder = msgspec.json.Encoder(enc_hook=encode_foreign)
