"""`drumline tasks`: every task of the app, with every option and its value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from drumline.cli.options import App, Json
from drumline.cli.show import say, show_fields, show_json

if TYPE_CHECKING:
    from drumline.policy.task import TaskDefinition

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    app.command("tasks")(list_tasks)


def list_tasks(as_json: Json = False, app: App = None) -> None:
    """List the tasks of the app, with every option and its value."""
    from drumline.cli.app import load_app

    tasks = [*load_app(app).tasks.values()]
    if as_json:
        show_json([_as_json(task) for task in tasks])
        return
    for task in tasks:
        say(f"{task.name}{_signature(task)}")
        show_fields(_fields(task), indent="  ")
    say(f"{len(tasks)} tasks")


def _as_json(task: TaskDefinition) -> dict[str, Any]:
    from drumline.model.view import options_json

    return {
        "task": task.name,
        **options_json(task.options),
        "executor": task.executor.value,
        "retry_on": _names(task.retry_on),
        "give_up_on": _names(task.give_up_on),
        "tags": list(task.tags),
        "aliases": list(task.aliases),
        "signature": _signature(task),
        "place": task.place,
    }


def _fields(task: TaskDefinition) -> list[tuple[str, object]]:
    from drumline.model.view import span_text

    options = task.options
    return [
        ("queue", options.queue),
        ("priority", options.priority),
        ("max_attempts", options.max_attempts),
        ("backoff", _backoff_text(task)),
        ("timeout", "none" if options.timeout is None else span_text(options.timeout)),
        ("lease", span_text(options.lease)),
        ("retention", ", ".join(f"{end} {span_text(getattr(options.retention, end))}" for end in _ENDS)),
        ("executor", task.executor),
        ("retry_on", ", ".join(_names(task.retry_on))),
        ("give_up_on", ", ".join(_names(task.give_up_on)) or "none"),
        ("tags", ", ".join(task.tags) or "none"),
        ("aliases", ", ".join(task.aliases) or "none"),
        ("place", task.place),
    ]


_ENDS = ("done", "dead", "cancelled")


def _backoff_text(task: TaskDefinition) -> str:
    from drumline.model.view import span_text

    backoff = task.options.backoff
    jitter = f"jitter {backoff.jitter}"
    if backoff.steps:
        return f"{', '.join(map(span_text, backoff.steps))}, {jitter}"
    return f"{span_text(backoff.initial)}, factor {backoff.factor:g}, cap {span_text(backoff.cap)}, {jitter}"


def _names(kinds: tuple[type[BaseException], ...]) -> list[str]:
    return [kind.__name__ for kind in kinds]


def _signature(task: TaskDefinition) -> str:
    """What is sent with a job: the parameters but for the context."""
    from drumline.model.signature import describe

    parts = (
        f"{parameter.name}: {describe(parameter.annotation)}" + ("" if parameter.is_required else " = …")
        for parameter in task.codec.signature.parameters
    )
    return f"({', '.join(parts)})"
