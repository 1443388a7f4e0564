"""The OpenAPI document, made of the very table that is served."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.responses import Response

from drumline.web.access import UserRole
from drumline.web.answers import answer_json
from drumline.web.api import bodies
from drumline.web.api.schemas import ERROR
from drumline.web.guard import SAFE_METHODS
from drumline.web.site import Ask, Entry, Handle

__all__ = ["describe", "openapi_entry"]

_TEMPLATE = "#/components/schemas/{name}"
_MEANINGS = {
    200: "Done.",
    201: "Made.",
    202: "Asked for; it may take a moment.",
    400: "The body is not JSON.",
    401: "Who asks is not known.",
    403: "Closed, too little a role, or a page of another origin.",
    404: "There is no such thing.",
    409: "Not in the state that things are in.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "Something does not fit: each problem with its path.",
    429: "Too many: slow down.",
    503: "The store is out of reach, or this process is about to leave.",
}
_OF_THE_BODY = (400, 413, 415)


def openapi_entry(described: Iterable[Entry]) -> Entry:
    """The route of the document that describes these entries, and itself."""
    entries = list(described)
    entry = Entry(
        method="GET",
        path="/api/openapi.json",
        role=UserRole.VIEWER,
        handle=_answer(entries),
        summary="This document.",
        answers={200: {"type": "object"}},
    )
    entries.append(entry)
    return entry


def _answer(entries: list[Entry]) -> Handle:
    async def handle(ask: Ask) -> Response:
        return answer_json(describe(entries, ask.request.scope.get("root_path", "")))

    return handle


def describe(entries: Iterable[Entry], prefix: str = "") -> dict[str, Any]:
    """The document."""
    from importlib.metadata import version

    paths: dict[str, dict[str, Any]] = {}
    for entry in entries:
        path = re.sub(r":path}", "}", entry.path)
        paths.setdefault(path, {})[entry.method.lower()] = _operation(entry)
    types = [getattr(bodies, name) for name in bodies.__all__ if isinstance(getattr(bodies, name), type)]
    _, components = msgspec.json.schema_components(types, ref_template=_TEMPLATE)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Drumline", "version": version("drumline")},
        "servers": [{"url": prefix or "/"}],
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": ERROR},
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{"basic": []}, {"bearer": []}],
    }


def _operation(entry: Entry) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": entry.summary,
        "operationId": f"{entry.method.lower()}_" + re.sub(r"\W+", "_", entry.path).strip("_"),
        "responses": {str(status): _response(entry, status) for status in _statuses(entry)},
        "x-role": entry.role,
    }
    if parameters := [*_path_parameters(entry), *_query_parameters(entry)]:
        operation["parameters"] = parameters
    if entry.body is not None:
        # A definition of its own stands among the components: here is but its name.
        schema = {name: value for name, value in entry.body.items() if name != "$defs"}
        operation["requestBody"] = {"required": entry.needs_body, "content": {"application/json": {"schema": schema}}}
    return operation


def _path_parameters(entry: Entry) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)(?::\w+)?}", entry.path)
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _query_parameters(entry: Entry) -> list[dict[str, Any]]:
    return [{"name": one.name, "in": "query", "schema": one.schema, "description": one.about} for one in entry.query]


def _statuses(entry: Entry) -> list[int]:
    found = {*entry.answers, 401, 403, 422, 429, 503}
    if entry.method not in SAFE_METHODS:
        found.update(_OF_THE_BODY)
    if "{" in entry.path:
        found.add(404)
    return sorted(found)


def _response(entry: Entry, status: int) -> dict[str, Any]:
    schema = entry.answers.get(status) if status < 300 else {"$ref": _TEMPLATE.format(name="Error")}
    media = entry.media if status < 300 else "application/json"
    return {"description": _MEANINGS[status], "content": {media: {"schema": schema or {}}}}
