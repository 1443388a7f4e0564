"""The options that several commands share."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

import typer

from drumline.errors import BadOption

__all__ = [
    "App",
    "AppArgument",
    "At",
    "Delay",
    "From",
    "Ids",
    "Json",
    "Key",
    "Meta",
    "Origin",
    "QueueName",
    "Reason",
    "State",
    "Store",
    "Tag",
    "TaskName",
    "To",
    "choose_filter",
    "hand_down",
    "read_duration",
    "read_instants",
    "read_object",
]

AppArgument = Annotated[
    str | None, typer.Argument(metavar="[APP]", help="The app as module:attribute, such as shop.jobs:drum.")
]
App = Annotated[
    str | None,
    typer.Option("--app", metavar="MODULE:ATTRIBUTE", help="The app; else DRUMLINE_APP, or the setting app."),
]
Store = Annotated[
    str | None, typer.Option("--store", metavar="URL", help="The store itself; no code of the app is needed.")
]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of jobs; else a filter.")]
State = Annotated[str | None, typer.Option("--state", help="Only jobs in this state, or these: dead,cancelled.")]
TaskName = Annotated[str | None, typer.Option("--task", help="Only jobs of this task.")]
QueueName = Annotated[str | None, typer.Option("--queue", help="Only jobs of this queue.")]
Tag = Annotated[str | None, typer.Option("--tag", help="Only jobs with this tag.")]
Key = Annotated[str | None, typer.Option("--key", help="Only jobs with this unique key.")]
Origin = Annotated[str | None, typer.Option("--origin", help="Only jobs that this route or command enqueued.")]
Meta = Annotated[str | None, typer.Option("--meta", metavar="JSON", help="Only jobs whose metadata hold all of this.")]
Reason = Annotated[str, typer.Option("--reason", help="Why, for the audit.")]
At = Annotated[str | None, typer.Option("--at", metavar="INSTANT", help="When: 2026-05-05T14:00:00Z.")]
Delay = Annotated[str | None, typer.Option("--delay", metavar="DURATION", help="After how long: 90, 500ms, 1h30m.")]

From = Annotated[str | None, typer.Option("--from", metavar="INSTANT", help="Since when: 2026-05-05T14:00:00Z.")]
To = Annotated[str | None, typer.Option("--to", metavar="INSTANT", help="Until when, included.")]

_NUMBER = re.compile(r"\d+(\.\d+)?")


def choose_filter(
    state: str | None,
    task: str | None,
    queue: str | None,
    tag: str | None,
    key: str | None,
    origin: str | None,
    meta: str | None,
) -> dict[str, Any]:
    """The words that were given, as `drum.jobs.find` takes them."""
    states = None if state is None else [part.strip() for part in state.split(",") if part.strip()]
    words = {"task": task, "queue": queue, "tag": tag, "key": key, "origin": origin}
    given: dict[str, Any] = {"state": states, **words, "meta": read_object(meta) or None}
    return {name: value for name, value in given.items() if value is not None}


def hand_down(context: typer.Context) -> None:
    """Let the options that stand before a sub-command count for it; what it is given itself counts more."""
    if context.invoked_subcommand is not None:
        given = {name: value for name, value in context.params.items() if value}
        context.default_map = {context.invoked_subcommand: given}


def read_duration(text: str | None) -> float | str | None:
    """A duration as code would give it: on a command line a number of seconds is a text too."""
    return float(text) if text is not None and _NUMBER.fullmatch(text) else text


def read_instants(start: str | None, end: str | None) -> tuple[datetime | None, datetime | None]:
    """The instants of `--from` and `--to`; BadOption if one is none, or they are the wrong way round."""
    from drumline.model.instant import parse_instant

    first = None if start is None else parse_instant(start, "--from")
    last = None if end is None else parse_instant(end, "--to")
    if first is not None and last is not None and last < first:
        raise BadOption("--to", f"not before --from, {start}", end)
    return first, last


def read_object(text: str | None) -> dict[str, Any] | None:
    """The object of `--meta`; BadOption if it is none."""
    import msgspec

    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except ValueError:
        raise BadOption("--meta", "a JSON object", text) from None
