"""Marking a parameter as secret: `Annotated[str, Secret]`, or a type of pydantic that says so itself."""

from __future__ import annotations

import typing
from typing import Any

__all__ = ["Secret", "is_secret_type"]

_FOREIGN = frozenset({"SecretStr", "SecretBytes", "Secret"})


class Secret:
    """A parameter with `Annotated[…, Secret]` is sent as it is, and shown as ***, wherever its job is shown."""


def is_secret_type(annotation: Any) -> bool:
    """Whether what has this type is not to be shown."""
    if any(mark is Secret or isinstance(mark, Secret) for mark in getattr(annotation, "__metadata__", ())):
        return True
    origin = typing.get_origin(annotation)
    name, module = getattr(annotation, "__name__", ""), getattr(annotation, "__module__", "")
    if name in _FOREIGN and module.partition(".")[0] == "pydantic":
        return True
    return origin is not None and any(is_secret_type(part) for part in typing.get_args(annotation))
