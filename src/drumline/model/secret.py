"""Marking what is secret: `Annotated[str, Secret]` on a parameter or a field, or a type of pydantic that says so."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from drumline.model.foreign import is_pydantic

__all__ = ["NO_MARKS", "Marks", "Secret", "is_secret_type", "secret_fields"]

_FOREIGN = frozenset({"SecretStr", "SecretBytes", "Secret"})


class Secret:
    """What is annotated `Annotated[…, Secret]` is sent as it is, and shown as ***, wherever its job is shown."""


class Marks(msgspec.Struct, frozen=True):
    """What a signature marks as secret: whole parameters, and fields of the models among the others."""

    parameters: frozenset[str] = frozenset()
    # As JSON names them, wherever they stand below the parameters: better to hide too much than too little.
    fields: frozenset[str] = frozenset()


NO_MARKS = Marks()


def is_secret_type(annotation: Any, within: tuple[Any, ...] = ()) -> bool:
    """Whether what has this type is not to be shown. `within`: the types that are being asked about already."""
    annotation = _behind_alias(annotation)
    if isinstance(annotation, str):
        return Secret.__name__ in annotation
    if _is_marked(getattr(annotation, "__metadata__", ())):
        return True
    name, module = getattr(annotation, "__name__", ""), getattr(annotation, "__module__", "")
    if name in _FOREIGN and module.partition(".")[0] == "pydantic":
        return True
    if _has_places(annotation) and annotation not in within:
        # A list in JSON, in which no name tells the secret from the rest.
        return any(is_secret_type(field, (*within, annotation)) for _, field in _fields(annotation))
    is_made_of_others = typing.get_origin(annotation) is not None
    return is_made_of_others and any(is_secret_type(part, within) for part in typing.get_args(annotation))


def secret_fields(annotations: Iterable[Any]) -> frozenset[str]:
    """The marked fields of all models inside the annotations, at any depth, as JSON names them."""
    waiting = list(annotations)
    seen: set[type] = set()
    found: set[str] = set()
    while waiting:
        annotation = _behind_alias(waiting.pop())
        waiting += typing.get_args(annotation)
        kind = typing.get_origin(annotation) or annotation
        # A type may contain itself.
        if not isinstance(kind, type) or kind in seen:
            continue
        seen.add(kind)
        for names, field in _fields(kind):
            waiting.append(field)
            if is_secret_type(field):
                found.update(names)
    return frozenset(found)


def _is_marked(metadata: Iterable[Any]) -> bool:
    return any(mark is Secret or isinstance(mark, Secret) for mark in metadata)


def _behind_alias(annotation: Any) -> Any:
    """What `type Pin = …` stands for."""
    return getattr(annotation, "__value__", annotation)


def _has_places(annotation: Any) -> bool:
    """Whether its fields stand in JSON by their places, and not by their names."""
    if not isinstance(annotation, type):
        return False
    if issubclass(annotation, msgspec.Struct):
        return annotation.__struct_config__.array_like
    return issubclass(annotation, tuple) and hasattr(annotation, "_fields")


def _fields(kind: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The names that each field of a class may have in JSON, and its type."""
    if is_pydantic(kind):
        for name, field in kind.model_fields.items():
            names = (name, field.alias or name, field.serialization_alias or name)
            # Pydantic takes the marks off the annotation.
            yield names, typing.Annotated[field.annotation, Secret] if _is_marked(field.metadata) else field.annotation
        return
    names_in_json: Mapping[str, str] = {}
    if issubclass(kind, msgspec.Struct):
        names_in_json = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    for name, annotation in _read_hints(kind).items():
        yield (names_in_json.get(name, name),), annotation


def _read_hints(kind: type) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except Exception:  # noqa: BLE001 - it is a stranger's class, and may fail in any way when it is asked
        # As they are written: whether one is marked can be seen of the text too.
        return dict(getattr(kind, "__annotations__", {}))
