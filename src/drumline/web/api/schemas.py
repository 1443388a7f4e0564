"""What the API answers, as JSON schemas; those of what it takes are made of the types in `bodies`."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["ANSWER", "ANSWERS", "ERROR", "JOB", "JOBS", "NEW_JOB", "listing", "schema_of", "shape"]

_TEXT: dict[str, Any] = {"type": "string"}


def shape(*required: str, **properties: Any) -> dict[str, Any]:
    """An object that has at least these."""
    return {"type": "object", "required": [*required, *properties], "properties": properties}


def listing(name: str, item: dict[str, Any]) -> dict[str, Any]:
    """A page of items."""
    properties = {name: {"type": "array", "items": item}, "next": {"type": ["string", "null"]}}
    return {"type": "object", "required": list(properties), "properties": properties}


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The schema of a body, with all it refers to."""
    return msgspec.json.schema(kind, ref_template="#/components/schemas/{name}")


JOB = shape("args", "attempts", id=_TEXT, task=_TEXT, queue=_TEXT, state=_TEXT, attempt={"type": "integer"})
JOBS = listing("jobs", JOB)
NEW_JOB = shape(id=_TEXT, task=_TEXT, queue=_TEXT, state=_TEXT, created={"type": "boolean"})
ANSWER = shape(id=_TEXT, answer=_TEXT)
ANSWERS = shape(answers={"type": "object", "additionalProperties": _TEXT}, more={"type": "boolean"})
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": _TEXT,
        "problems": {"type": "array", "items": shape(path=_TEXT, message=_TEXT)},
    },
}
