"""`drumline jobs`: look at jobs, and act on them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from drumline.cli.act import act, cancelled, discarded, moved, retried
from drumline.cli.options import (
    App,
    At,
    Delay,
    Ids,
    Json,
    Key,
    Meta,
    Origin,
    QueueName,
    Reason,
    State,
    Store,
    Tag,
    TaskName,
    choose_filter,
    read_duration,
)
from drumline.cli.progress import show_progress
from drumline.cli.show import complain, say, show_json, show_table
from drumline.errors import BadOption

if TYPE_CHECKING:
    from drumline.model.job import Job

__all__ = ["app"]

HEADERS = ("id", "task", "queue", "state", "attempt", "due", "last error")

app = typer.Typer(help="Look at jobs, and act on them.", rich_markup_mode=None)

Limit = Annotated[int, typer.Option("--limit", min=1, help="At most so many.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]


@app.command("list")
def list_jobs(
    state: State = None,
    task: TaskName = None,
    queue: QueueName = None,
    tag: Tag = None,
    key: Key = None,
    origin: Origin = None,
    meta: Meta = None,
    limit: Limit = 50,
    as_json: Json = False,
    name: App = None,
    store: Store = None,
) -> None:
    """List jobs, newest first."""
    from drumline.model.view import job_json

    found = asyncio.run(_find(name, store, choose_filter(state, task, queue, tag, key, origin, meta), limit + 1))
    jobs, more = found[:limit], len(found) > limit
    if as_json:
        show_json([job_json(job) for job in jobs])
        return
    show_table(HEADERS, map(_row, jobs))
    if more:
        complain(f"there are more: the newest {limit} are shown, --limit shows more")


@app.command("show")
def show_job(id: Id, as_json: Json = False, name: App = None, store: Store = None) -> None:
    """Show all of one job: its arguments, attempts with tracebacks, log lines, and why it waits if it does."""
    from drumline.cli.page import read_page, show_page

    page = asyncio.run(read_page(name, store, id))
    if as_json:
        show_json(page.as_json())
    else:
        show_page(page)


@app.command("retry")
def retry_jobs(
    ids: Ids = None,
    state: State = None,
    task: TaskName = None,
    queue: QueueName = None,
    tag: Tag = None,
    key: Key = None,
    origin: Origin = None,
    meta: Meta = None,
    reason: Reason = "",
    as_json: Json = False,
    name: App = None,
    store: Store = None,
) -> None:
    """Make ended jobs ready again, under their own ids, with fresh attempts. A filter means dead jobs."""
    act(retried(reason), ids, choose_filter(state, task, queue, tag, key, origin, meta), name, store, as_json=as_json)


@app.command("cancel")
def cancel_jobs(
    ids: Ids = None,
    state: State = None,
    task: TaskName = None,
    queue: QueueName = None,
    tag: Tag = None,
    key: Key = None,
    origin: Origin = None,
    meta: Meta = None,
    reason: Reason = "",
    as_json: Json = False,
    name: App = None,
    store: Store = None,
) -> None:
    """Cancel jobs: those that wait end at once, those that run are asked to stop. A filter means unfinished jobs."""
    act(cancelled(reason), ids, choose_filter(state, task, queue, tag, key, origin, meta), name, store, as_json=as_json)


@app.command("discard")
def discard_jobs(
    ids: Ids = None,
    state: State = None,
    task: TaskName = None,
    queue: QueueName = None,
    tag: Tag = None,
    key: Key = None,
    origin: Origin = None,
    meta: Meta = None,
    reason: Reason = "",
    as_json: Json = False,
    name: App = None,
    store: Store = None,
) -> None:
    """Forget ended jobs. A filter means dead jobs."""
    act(discarded(reason), ids, choose_filter(state, task, queue, tag, key, origin, meta), name, store, as_json=as_json)


@app.command("reschedule")
def reschedule_jobs(
    ids: Ids = None,
    at: At = None,
    delay: Delay = None,
    state: State = None,
    task: TaskName = None,
    queue: QueueName = None,
    tag: Tag = None,
    key: Key = None,
    origin: Origin = None,
    meta: Meta = None,
    reason: Reason = "",
    as_json: Json = False,
    name: App = None,
    store: Store = None,
) -> None:
    """Move waiting jobs to another time. A filter means waiting jobs."""
    if (at is None) == (delay is None):
        raise BadOption("--at", "given, or --delay, but not both", at)
    verb = moved(reason, at, read_duration(delay))
    act(verb, ids, choose_filter(state, task, queue, tag, key, origin, meta), name, store, as_json=as_json)


@app.command("purge")
def purge_jobs(as_json: Json = False, name: App = None, store: Store = None) -> None:
    """Forget now what has outlived its retention: ended jobs, and old rows of ledger, audit and series.

    Workers do the same by themselves, a slice at a time.
    """
    forgotten = asyncio.run(_purge(name, store))
    if as_json:
        show_json({"forgotten": forgotten})
    else:
        say(f"forgotten: {forgotten:,}")


async def _purge(name: str | None, store: str | None) -> int:
    from drumline.cli.app import reach
    from drumline.model.query import Keep

    async with reach(name, store) as client:
        opened, forgotten = await client.store(), 0
        with show_progress("forgotten") as advance:
            while number := await opened.purge(Keep()):
                forgotten += number
                advance(forgotten, None)
    return forgotten


async def _find(name: str | None, store: str | None, where: dict[str, object], limit: int) -> list[Job]:
    from drumline.cli.app import reach
    from drumline.policy.filter import job_filter

    wanted = job_filter(**where)  # type: ignore[arg-type]
    async with reach(name, store) as client:
        return [job async for job in client.jobs.select(wanted, limit)]


def _row(job: Job) -> tuple[object, ...]:
    from drumline.model.view import instant_text

    attempts = f"{job.attempt}/{job.max_attempts}"
    return (job.id, job.task, job.queue, job.state, attempts, instant_text(job.due_at), job.last_error or "")
