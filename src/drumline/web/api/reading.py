"""How a request is read: its query, its JSON body, its cursor. What does not fit is 422, with the path of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from drumline.errors import JobNotFound
from drumline.model.instant import parse_instant
from drumline.model.job import JobState, Source
from drumline.model.query import JobFilter
from drumline.model.result import DEPTH_LIMIT, measure_depth
from drumline.policy.filter import job_filter
from drumline.web.answers import Refusal
from drumline.web.site import Ask, Parameter

__all__ = ["FILTERS", "PAGING", "read_body", "read_filter", "read_id", "read_instant", "read_paging", "read_query"]

T = TypeVar("T")

MOST_ON_A_PAGE = 200
ON_A_PAGE = 50
_TEXT = {"type": "string"}
_INSTANT = {"type": "string", "format": "date-time"}
PAGING = (
    Parameter("after", _TEXT, "`next` of the page before."),
    Parameter("limit", {"type": "integer", "minimum": 1, "maximum": MOST_ON_A_PAGE, "default": ON_A_PAGE}),
)
FILTERS = (
    Parameter("state", _TEXT, f"One or more of {', '.join(JobState)}, with commas."),
    *(Parameter(name, _TEXT) for name in ("task", "queue", "tag", "key", "schedule", "origin", "error")),
    Parameter("source", {"type": "string", "enum": [source.value for source in Source]}),
    Parameter("meta", _TEXT, "A JSON object: each of its values stands in the job's metadata."),
    Parameter("created_from", _INSTANT),
    Parameter("created_to", _INSTANT),
)
# `Expected `int`, got `str` - at `$.options.priority``, as msgspec puts it.
_PLACE = re.compile(r"^(?P<message>.*?)(?: - at `(?:key in )?\$\.?(?P<path>.*)`)?$", re.DOTALL)


def read_query(ask: Ask, known: tuple[Parameter, ...]) -> dict[str, str]:
    """The query, each parameter once; an unknown one is refused, so that a typing error does not widen a filter."""
    names = {parameter.name for parameter in known}
    found: dict[str, str] = {}
    for name, value in ask.request.query_params.multi_items():
        if name not in names:
            raise _wrong(name, f"unknown; there are {', '.join(sorted(names)) or 'none'}")
        if name in found:
            raise _wrong(name, "given twice")
        if "\0" in value:
            raise _wrong(name, "must not contain NUL")
        found[name] = value
    return found


def read_paging(query: dict[str, str]) -> tuple[str | None, int]:
    """The cursor and the number of items that are asked for."""
    text = query.get("limit", str(ON_A_PAGE))
    if not re.fullmatch(r"[0-9]{1,3}", text, re.ASCII) or not 1 <= int(text) <= MOST_ON_A_PAGE:
        raise _wrong("limit", f"must be a whole number from 1 to {MOST_ON_A_PAGE}")
    return query.get("after") or None, int(text)


def read_filter(given: dict[str, Any]) -> JobFilter:
    """The jobs that these words name."""
    words = {name: value for name, value in given.items() if name not in ("after", "limit") and value is not None}
    if isinstance(words.get("state"), str):
        words["state"] = [part.strip() for part in words["state"].split(",") if part.strip()]
    if isinstance(words.get("meta"), str):
        words["meta"] = _decode(words["meta"].encode(), dict[str, Any], "meta")
    if "source" in words and words["source"] not in list(Source):
        raise _wrong("source", f"must be one of {', '.join(Source)}")
    return job_filter(**words)


def read_instant(text: str, option: str) -> datetime:
    return parse_instant(text, option)


def read_id(ask: Ask) -> str:
    """The job's id, in its usual form; what is none is an id that nobody has."""
    try:
        return str(UUID(ask.path["id"]))
    except ValueError:
        raise JobNotFound("no such job is stored: the id is no UUID") from None


def read_body(ask: Ask, kind: type[T]) -> T:
    """The JSON body as this type; an empty one is an empty object."""
    data = ask.body or b"{}"
    if ask.body and ask.request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refusal(415, "the body must be JSON, with the content type application/json")
    body: T = _decode(data, kind, "")
    return body


def _decode(data: bytes, kind: Any, where: str) -> Any:
    if data.count(b"[") + data.count(b"{") > DEPTH_LIMIT and measure_depth(data) > DEPTH_LIMIT:
        raise _wrong(where, f"nested more than {DEPTH_LIMIT} deep")
    return _attempt(lambda: msgspec.json.decode(data, type=kind), where)


def _attempt(decode: Callable[[], Any], where: str) -> Any:
    try:
        return decode()
    except msgspec.ValidationError as error:
        match = _PLACE.match(str(error))
        assert match is not None
        path = ".".join(part for part in (where, match["path"] or "") if part)
        raise _wrong(path, match["message"]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if where:
            raise _wrong(where, "must be JSON") from None
        raise Refusal(400, "the body is not JSON") from None


def _wrong(path: str, message: str) -> Refusal:
    return Refusal(422, f"{path}: {message}" if path else message, problems=((path, message),))
