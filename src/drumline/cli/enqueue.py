"""`drumline enqueue`: make a job of a task that is known by its registered name."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drumline.cli.options import App, At, Delay, Json, read_duration, read_object
from drumline.cli.show import say, show_json
from drumline.errors import BadSettings

if TYPE_CHECKING:
    from drumline import Drumline

__all__ = ["add_to"]

Name = Annotated[str, typer.Argument(metavar="NAME", help="The task's registered name.")]
Arguments = Annotated[
    str, typer.Argument(metavar="[JSON]", help="The arguments as a JSON object; - reads it from standard input.")
]
Store = Annotated[str | None, typer.Option("--store", hidden=True)]
Queue = Annotated[str | None, typer.Option("--queue", help="Another queue than the task's.")]
Priority = Annotated[int | None, typer.Option("--priority", help="-100 to 100, higher first.")]
Key = Annotated[str | None, typer.Option("--key", help="A unique key: at most one job of the task holds it.")]
KeyWindow = Annotated[
    str | None, typer.Option("--key-window", help="How long it is held: unfinished, pending, or a duration.")
]
OnConflict = Annotated[str | None, typer.Option("--on-conflict", help="If it is held: skip, replace or raise.")]
MaxAttempts = Annotated[int | None, typer.Option("--max-attempts", help="How many attempts, the first included.")]
Timeout = Annotated[str | None, typer.Option("--timeout", metavar="DURATION", help="The time limit of an attempt.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag to find it by; can be given again.")]
Meta = Annotated[str | None, typer.Option("--meta", metavar="JSON", help="An object to keep with the job.")]
Id = Annotated[str | None, typer.Option("--id", help="A UUID of your own: a repeat makes no second job.")]


def add_to(app: typer.Typer) -> None:
    app.command("enqueue")(enqueue)


def enqueue(
    name: Name,
    arguments: Arguments = "{}",
    app: App = None,
    store: Store = None,
    delay: Delay = None,
    at: At = None,
    queue: Queue = None,
    priority: Priority = None,
    key: Key = None,
    key_window: KeyWindow = None,
    on_conflict: OnConflict = None,
    max_attempts: MaxAttempts = None,
    timeout: Timeout = None,
    tag: Tags = None,
    meta: Meta = None,
    id: Id = None,
    as_json: Json = False,
) -> None:
    """Make a job of a task, checked as code would check it."""
    from drumline.cli.app import load_app

    if store is not None:
        raise BadSettings("enqueue needs the task's code to check the arguments: name the app, not the store")
    given: dict[str, Any] = {
        "at": at,
        "queue": queue,
        "priority": priority,
        "key": key,
        "on_conflict": on_conflict,
        "tags": tag,
        "id": id,
    }
    given |= {"max_attempts": max_attempts, "meta": read_object(meta)}
    spans = {"delay": delay, "key_window": key_window, "timeout": timeout}
    given |= {option: read_duration(span) for option, span in spans.items()}
    payload = sys.stdin.read() if arguments == "-" else arguments
    chosen = {option: value for option, value in given.items() if value is not None and value != []}
    _tell(asyncio.run(_enqueue(load_app(app), name, payload, chosen)), as_json=as_json)


async def _enqueue(drum: Drumline, name: str, payload: str, options: dict[str, Any]) -> dict[str, Any]:
    from drumline.model.job import Enqueued
    from drumline.model.sealed import read_body
    from drumline.model.view import enqueued_json

    call = drum.find_task(name).using(origin="drumline enqueue", **options).call_json(payload)
    async with drum:
        (handle,) = await drum.enqueue_many([call], act=drum.client(via="cli").act("enqueue"))
        answer = enqueued_json(call.job, Enqueued(handle.id, handle.state, handle.created, handle.replaced))
        if not (handle.created or handle.replaced):
            standing = (await handle.refresh()).info
            answer |= {"queue": standing.queue, "priority": standing.priority, "tags": list(standing.tags)}
            answer |= {"args": read_body(standing.args), "key": standing.key}
        return answer


def _value(text: str | bytes) -> Any:
    import msgspec

    return msgspec.json.decode(text)


def _tell(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        show_json(answer)
    else:
        say(_sentence(answer))


def _sentence(answer: dict[str, Any]) -> str:
    what = f"job {answer['id']} of task {answer['task']}"
    where = f"{answer['state']} in queue {answer['queue']}"
    if answer["replaced"]:
        return f"{what} was replaced: {where}"
    return f"{what}: {where}" if answer["created"] else f"{what} stood already: {where}"
