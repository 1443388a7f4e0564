"""The picture of one look at the store, for a terminal; and the same as a line, for a pipe."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from drumline.demo.news import Scene

__all__ = ["draw", "line_of"]

STATES = {"ready": "cyan", "delayed": "blue", "running": "yellow", "done": "green", "dead": "red"}
COLOURS = {"done": "green", "retry": "yellow", "dead": "red", "cancelled": "magenta", "release": "blue"}
MOST_ROWS = 5


def line_of(scene: Scene) -> str:
    """The counts in one line."""
    total = scene.counts.total
    states = "  ".join(f"{state} {getattr(total, state)}" for state in STATES)
    return f"{scene.elapsed:4.0f} s  {states}  {scene.per_second:.1f} jobs/s"


def draw(scene: Scene, hints: Sequence[str]) -> RenderableType:
    """The whole picture."""
    sides = Table.grid(expand=True, padding=(0, 1))
    sides.add_column(ratio=1)
    sides.add_column(ratio=1)
    sides.add_row(
        Group(
            _frame("queues", _queues(scene)),
            _frame("schedules", _schedules(scene)),
            _frame("dead letters", _dead(scene)),
        ),
        Group(_frame("running", _running(scene)), _frame("events", _events(scene))),
    )
    title = Text.assemble(("drumline", "bold"), f"   {scene.elapsed:.0f} s   {scene.per_second:.1f} jobs/s")
    return Group(title, sides, *(Text(hint, style="dim", no_wrap=True, overflow="ellipsis") for hint in hints))


def _frame(title: str, body: RenderableType) -> Panel:
    return Panel(body, title=title, title_align="left", box=box.ROUNDED, border_style="dim", padding=(0, 1))


def _queues(scene: Scene) -> Table:
    table = Table(box=None, expand=True, padding=(0, 1, 0, 0))
    table.add_column("")
    for state, colour in STATES.items():
        table.add_column(state, justify="right", style=colour)
    for name, tally in sorted(scene.counts.by_queue.items()):
        table.add_row(Text(name), *(str(getattr(tally, state)) for state in STATES))
    return table


def _schedules(scene: Scene) -> Table:
    table = Table(box=None, expand=True, padding=(0, 1, 0, 0))
    table.add_column("")
    table.add_column("rule", no_wrap=True, overflow="ellipsis")
    table.add_column("runs", justify="right", style="green")
    table.add_column("next", justify="right")
    for schedule in scene.schedules:
        at = schedule.next_run_at
        table.add_row(
            Text(schedule.name), schedule.schedule, str(schedule.total_runs), f"{at:%H:%M:%S}" if at else "paused"
        )
    return table


def _running(scene: Scene) -> Table:
    table = Table.grid(expand=True, padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for job in scene.running[:MOST_ROWS]:
        told: RenderableType = Text(f"attempt {job.attempt}" if job.attempt > 1 else "", style="yellow")
        if job.progress is not None:
            told = ProgressBar(total=1.0, completed=job.progress.value)
        table.add_row(Text(job.task), told)
    return _filled(table, len(scene.running), MOST_ROWS)


def _events(scene: Scene) -> Table:
    table = Table.grid(expand=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for outcome, line in scene.events:
        table.add_row(Text(line, style=COLOURS.get(outcome, "")))
    return _filled(table, len(scene.events), 8)


def _dead(scene: Scene) -> Table:
    table = Table.grid(expand=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for job in scene.dead[:MOST_ROWS]:
        table.add_row(Text.assemble((job.task, "red"), f" {job.last_error}"))
    return _filled(table, len(scene.dead), MOST_ROWS)


def _filled(table: Table, shown: int, rows: int) -> Table:
    """As high as it can get, so that the picture does not jump."""
    for _ in range(rows - shown):
        table.add_row("")
    return table
