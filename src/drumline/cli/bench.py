"""`drumline bench`: how many jobs a second one worker of this machine gets through on a store."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from drumline.cli.options import Json, Store
from drumline.cli.progress import Advance, show_progress
from drumline.cli.show import say, show_json

if TYPE_CHECKING:
    from drumline import Drumline

__all__ = ["add_to"]

Jobs = Annotated[int, typer.Option("--jobs", min=1, max=1_000_000, help="So many jobs that do nothing.")]
Concurrency = Annotated[int, typer.Option("--concurrency", min=1, help="The most at once.")]

# A queue and a task that no other worker serves.
QUEUE = "drumline-bench"
BATCH = 1000


def add_to(app: typer.Typer) -> None:
    app.command("bench")(bench)


def bench(jobs: Jobs = 10_000, concurrency: Concurrency = 100, as_json: Json = False, store: Store = None) -> None:
    """Measure one worker on a store, or, without one, on a SQLite file in a temporary folder; no job is left behind."""
    from drumline import Drumline
    from drumline.engine.alone import run_alone

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="drumline-bench-"))
        drum = Drumline(store or f"sqlite:///{Path(folder) / 'bench.db'}")
        advance = stack.enter_context(show_progress("jobs enqueued and run"))
        enqueueing, running = run_alone(_measure(drum, jobs, concurrency, advance))
    if as_json:
        show_json({"jobs": jobs, "enqueued_per_second": round(enqueueing), "run_per_second": round(running)})
        return
    say(f"enqueued  {enqueueing:,.0f} jobs a second")
    say(f"run       {running:,.0f} jobs a second")


async def _measure(drum: Drumline, jobs: int, concurrency: int, advance: Advance) -> tuple[float, float]:
    """Jobs a second: enqueued, and run to their ends."""
    from drumline.clock import SystemClock

    clock, ran = SystemClock(), 0

    @drum.task(name=QUEUE, queue=QUEUE)
    async def nothing() -> None:
        nonlocal ran
        ran += 1
        if not ran % BATCH:
            advance(jobs + ran, 2 * jobs)

    async with drum:
        try:
            began = clock.monotonic()
            for place in range(0, jobs, BATCH):
                await drum.enqueue_many([nothing.call() for _ in range(min(BATCH, jobs - place))])
                advance(place, 2 * jobs)
            enqueued = clock.monotonic()
            await drum.run(queues=[QUEUE], concurrency=concurrency, drain=True)
            ended = clock.monotonic()
        finally:
            await drum.jobs.cancel(queue=QUEUE, state=["ready", "delayed", "running"])
            await drum.jobs.discard(queue=QUEUE, state=["done", "dead", "cancelled"])
    return jobs / (enqueued - began), ran / (ended - enqueued)
