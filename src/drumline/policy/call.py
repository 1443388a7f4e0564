"""One call of a task: the options given with it, and the job that comes of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, Unpack
from uuid import UUID

import msgspec

from drumline.errors import BadOption
from drumline.model.instant import Duration, parse_duration, parse_instant
from drumline.model.job import Conflict, Key, KeyWindow, NewJob, Start
from drumline.model.options import JobOptions
from drumline.model.result import plain_object
from drumline.policy.options import SharedOptions, check_text, list_tags, merge, refuse_unknown
from drumline.policy.task import TaskDefinition

__all__ = ["META_LIMIT", "NO_CHOICE", "CallOptions", "UsingOptions", "choose", "make_encoded_job", "make_job"]

META_LIMIT = 16 * 1024
LONGEST_KEY = 512
LONGEST_ORIGIN = 200

_EQUIVALENTS = {
    "countdown": "delay=",
    "eta": "at=",
    "run_at": "at=",
    "unique": "key=",
    "name": "the name of another task: drum.enqueue(name, …)",
    "retries": "max_attempts=, which counts the first attempt too",
    "max_retries": "max_attempts=, which counts the first attempt too",
}


class UsingOptions(SharedOptions, total=False):
    """What `task.using(…)` takes."""

    delay: Duration
    at: datetime | str
    key: str
    key_window: Literal["unfinished", "pending"] | Duration
    on_conflict: Literal["skip", "replace", "raise"]
    id: str | UUID
    meta: Mapping[str, Any]
    origin: str
    transaction: object


class CallOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The checked options of one call."""

    # Those of the job, complete; None where the task's own stand.
    options: JobOptions | None = None
    start: Start = None
    key: Key | None = None
    id: str | None = None
    # In front of these stand the task's own.
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = {}
    origin: str | None = None
    # The caller's own connection to the store, in whose transaction the job is made.
    transaction: object = None
    # What was given, so that a second `using` can add to it.
    given: Mapping[str, Any] = {}


NO_CHOICE = CallOptions()


def choose(
    definition: TaskDefinition, before: CallOptions = NO_CHOICE, /, **options: Unpack[UsingOptions]
) -> CallOptions:
    """The options of a call: those given before, and these; BadOption, naming the task, for a wrong one."""
    try:
        refuse_unknown(options, UsingOptions.__annotations__, _EQUIVALENTS)
        return _read(definition, {**_keep(before.given, options), **options})
    except BadOption as error:
        raise error.at(f"task {definition.name}") from error.__cause__


def make_job(
    definition: TaskDefinition,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    call: CallOptions = NO_CHOICE,
    *,
    fresh_id: str,
) -> NewJob:
    """The job that this call of the task asks for; BadArgument for arguments that do not fit.

    `fresh_id` becomes its id, unless the call names one.
    """
    return make_encoded_job(definition, definition.codec.encode(args, kwargs), call, fresh_id=fresh_id)


def make_encoded_job(
    definition: TaskDefinition, args: bytes, call: CallOptions = NO_CHOICE, *, fresh_id: str
) -> NewJob:
    """The same for arguments that the task's codec has already encoded or accepted."""
    return NewJob(
        id=call.id or fresh_id,
        task=definition.name,
        args=args,
        options=call.options or definition.options,
        start=call.start,
        key=call.key,
        tags=call.tags or definition.tags,
        meta=call.meta,
        origin=call.origin,
    )


def _keep(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What still counts of earlier options: a new time takes the place of an old one, however each was given."""
    dropped = {"delay", "at"} if now.keys() & {"delay", "at"} else set()
    return {name: value for name, value in before.items() if name not in dropped}


def _read(definition: TaskDefinition, given: Mapping[str, Any]) -> CallOptions:
    options = merge(definition.options, given)
    return CallOptions(
        options=None if options is definition.options else options,
        start=_read_start(given),
        key=_read_key(given),
        id=_read_id(given),
        tags=list_tags([*definition.tags, *list_tags(given["tags"])]) if "tags" in given else (),
        meta=plain_object(given["meta"], "meta", META_LIMIT) if "meta" in given else {},
        origin=check_text(given["origin"], "origin", LONGEST_ORIGIN) if "origin" in given else None,
        transaction=given.get("transaction"),
        given=given,
    )


def _read_start(given: Mapping[str, Any]) -> Start:
    if "at" in given:
        if "delay" in given:
            raise BadOption("at", "left out where delay is given", given["at"])
        return parse_instant(given["at"], "at")
    return parse_duration(given["delay"], "delay") if "delay" in given else None


def _read_key(given: Mapping[str, Any]) -> Key | None:
    if "key" not in given:
        for option in ("key_window", "on_conflict"):
            if option in given:
                raise BadOption(option, "left out where no key is given", given[option])
        return None
    name = check_text(given["key"], "key", LONGEST_KEY)
    window, span = _read_window(given.get("key_window", KeyWindow.UNFINISHED))
    return Key(name, window, span, _read_conflict(given.get("on_conflict", Conflict.SKIP)))


def _read_window(value: Any) -> tuple[KeyWindow, timedelta | None]:
    if value in (KeyWindow.UNFINISHED, KeyWindow.PENDING):
        return KeyWindow(value), None
    expected = '"unfinished", "pending" or a duration above zero'
    try:
        span = parse_duration(value, "key_window")
    except BadOption as error:
        raise BadOption("key_window", expected, value) from error
    if not span:
        raise BadOption("key_window", expected, value)
    return KeyWindow.TIME, span


def _read_conflict(value: Any) -> Conflict:
    if value not in list(Conflict):
        raise BadOption("on_conflict", '"skip", "replace" or "raise"', value)
    return Conflict(value)


def _read_id(given: Mapping[str, Any]) -> str | None:
    if "id" not in given:
        return None
    try:
        return str(UUID(str(given["id"])))
    except ValueError:
        raise BadOption("id", "a UUID", given["id"]) from None
