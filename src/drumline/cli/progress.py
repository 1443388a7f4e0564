"""How far long work has come: a bar with counts for a person who watches, and nothing where nobody does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Advance", "show_progress"]

# How many are done, of how many; None: nobody knows yet.
Advance = Callable[[int, int | None], None]


@contextmanager
def show_progress(what: str) -> Iterator[Advance]:
    """Tell how far it has come, on the terminal where errors go; the bar leaves no trace there."""
    if not sys.stderr.isatty():
        yield lambda done, of: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as bars:
        bar = bars.add_task(what, total=None)

        def advance(done: int, of: int | None) -> None:
            bars.update(bar, completed=done, total=of, refresh=True)

        yield advance
