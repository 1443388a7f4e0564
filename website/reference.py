"""Pages of reference that are made from the code: the public names, the command line, the settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.main import get_command

import drumline
from drumline import testing, web
from drumline.cli.root import app
from drumline.config.sections import PREFIX, Settings

__all__ = ["reference_pages"]

# What a reader meets together. Each public name stands on one page, or the site is not made.
_PAGES = {
    "app": ("The app", ["Drumline"]),
    "tasks": ("Tasks and jobs", ["Task", "Call", "Tasks", "JobHandle", "Job", "JobState", "Context", "current"]),
    "options": ("Options", ["Backoff", "Retention", "Rule", "Schedule", "Secret"]),
    "errors": ("Errors", ["DrumlineError", "Retry", "GiveUp", "Snooze", "JobDead", "JobCancelled"]),
}
# How a type is called in a table of settings.
_WORDS = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true`, `false`",
    timedelta: "duration",
    type(None): "none",
}
# What the front door hands out or takes, which nobody has to import.
_HANDED_OUT = {
    "app": [
        "drumline.client.Jobs",
        "drumline.client.Queues",
        "drumline.schedules.Schedules",
        "drumline.blocking.Blocking",
        "drumline.model.query.Counts",
        "drumline.events.Events",
    ],
    "options": [
        "drumline.policy.options.SharedOptions",
        "drumline.policy.options.TaskOptions",
        "drumline.policy.call.UsingOptions",
        "drumline.policy.schedule.DeclaredOptions",
    ],
}


def reference_pages() -> dict[str, str]:
    """Every page by its path on the site."""
    return {
        **{f"reference/{name}.md": _names_page(name) for name in _PAGES},
        "reference/testing.md": _module_page("drumline.testing", testing.__all__, testing.__doc__),
        "reference/web.md": _module_page("drumline.web", web.__all__, web.__doc__),
        "reference/cli.md": _command_page(),
        "reference/settings.md": _settings_page(),
    }


def _names_page(page: str) -> str:
    title, first = _PAGES[page]
    placed = {name for _, names in _PAGES.values() for name in names}
    # Errors that the table does not name follow those that it does.
    rest = [name for name in drumline.__all__ if name not in placed]
    if strangers := [name for name in rest if not _is_error(name)]:
        raise ValueError(f"website/reference.py has no page for {', '.join(strangers)}")
    names = [*first, *rest] if page == "errors" else first
    parts = [f"drumline.{name}" for name in names] + _HANDED_OUT.get(page, [])
    return f"# {title}\n\n" + "\n".join(f"::: {part}" for part in parts)


def _is_error(name: str) -> bool:
    value = getattr(drumline, name)
    return isinstance(value, type) and issubclass(value, Exception)


def _module_page(module: str, names: list[str], about: str | None) -> str:
    return f"# {module}\n\n{about}\n\n" + "\n".join(f"::: {module}.{name}" for name in names)


def _command_page() -> str:
    root: Any = get_command(app)
    return "\n".join(["# drumline, every command", "", *_describe(root, "drumline")])


def _describe(command: Any, path: str) -> Iterator[str]:
    context = typer.Context(command, info_name=path)
    commands: dict[str, Any] = getattr(command, "commands", {})
    if path != "drumline":
        yield f"## {path}"
    yield from ["", re.sub(r"\s+", " ", command.help or ""), ""]
    if not commands or command.invoke_without_command:
        usage = " ".join(command.collect_usage_pieces(context))
        yield from ["```text", f"{path} {usage}", "```", ""]
    rows = [record for one in command.get_params(context) if (record := _parameter(one, context))]
    if rows:
        yield from ["| option | |", "|---|---|", *rows, ""]
    for name in sorted(commands):
        yield from _describe(commands[name], f"{path} {name}")


def _parameter(parameter: Any, context: Any) -> str | None:
    record = parameter.get_help_record(context)
    if record is None:
        return None
    names, text = (part.replace("|", "\\|") for part in record)
    return f"| `{names}` | {text} |"


def _settings_page() -> str:
    lines = ["# Settings, every key", "", "What each means: [Settings](../settings.md).", ""]
    plain = {name: field for name, field in Settings.model_fields.items() if not _is_section(field)}
    lines += _settings_table("", plain)
    for name, field in Settings.model_fields.items():
        if _is_section(field):
            section: Any = field.annotation
            lines += [f"## {name}", "", section.__doc__ or "", "", *_settings_table(f"{name}.", section.model_fields)]
    return "\n".join(lines)


def _is_section(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def _settings_table(prefix: str, fields: dict[str, FieldInfo]) -> list[str]:
    rows = [
        f"| `{prefix}{name}` | `{PREFIX}{f'{prefix}{name}'.replace('.', '__').upper()}` | {_kind(field.annotation)} "
        f"| {_default(field)} |"
        for name, field in fields.items()
    ]
    return ["| key | variable | takes | default |", "|---|---|---|---|", *rows, ""]


def _kind(annotation: Any) -> str:
    """What may be given, in words."""
    parts = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return _kind(parts[0])
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if get_origin(annotation) is tuple:
        return f"list of {_kind(parts[0])}"
    if parts:
        return ", ".join(_kind(part) for part in parts)
    return _WORDS.get(annotation) or f"`{annotation.__name__}`"


def _default(field: FieldInfo) -> str:
    match field.get_default():
        case None | ():
            return "none"
        case timedelta() as span:
            return f"`{span.total_seconds():g}s`"
        case bool() as value:
            return f"`{str(value).lower()}`"
        case str() | int() as value:
            return f"`{value}`"
        case value:
            return f"see [Settings](../settings.md) (`{type(value).__name__}`)"
