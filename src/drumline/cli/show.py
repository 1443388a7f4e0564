"""How a command shows what it has to say: tables, fields, JSON, and one sentence for what went wrong.

Data may hold anything. It is never read as markup, and what would steer a terminal is shown as an escape.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from drumline.model.plain import clean

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

__all__ = ["complain", "make_table", "say", "show_fields", "show_json", "show_table", "tell_changes"]

_WHOLE = ("id", "job", "state", "attempt")
_STYLES = {
    "ready": "cyan",
    "delayed": "blue",
    "running": "yellow",
    "cancelling": "yellow",
    "done": "green",
    "dead": "red",
    "failed": "red",
    "cancelled": "magenta",
    "missed": "red",
    "paused": "yellow",
    "orphaned": "red",
}


def say(text: str) -> None:
    """One line of an answer."""
    print(clean(text))


def complain(sentence: object) -> None:
    """What went wrong, in one line, where errors go."""
    print(f"drumline: {clean(sentence)}", file=sys.stderr)


def show_json(value: Any) -> None:
    """The value, the same each time for the same value; ASCII only, so that any terminal and pipe can take it."""
    print(json.dumps(value, indent=2, default=str))


def show_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Rows under headers: cut to the terminal's width, or whole where it is piped."""
    if not sys.stdout.isatty():
        for line in _align([[header.upper() for header in headers], *([clean(cell) for cell in row] for row in rows)]):
            print(line)
        return
    from drumline.cli.console import Paper

    Paper().print(make_table(headers, rows))


def show_fields(fields: Iterable[tuple[str, object]], indent: str = "") -> None:
    """Names and values, one a line."""
    for line in _align([[indent + name, clean(value)] for name, value in fields]):
        print(line)


def _align(rows: list[list[str]]) -> list[str]:
    # The last column is left as it is: one long value there would make every line as long.
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)][:-1]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    ]


def make_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Rows under headers, for a terminal."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in headers:
        # What may wrap gives way where room is short, the widest first; an id that is cut cannot be copied.
        table.add_column(_rich_cell(header), no_wrap=header in _WHOLE)
    for row in rows:
        table.add_row(*(_rich_cell(clean(cell)) for cell in row))
    return table


def _rich_cell(cell: str) -> Text:
    from rich.text import Text

    return Text(cell, style=_STYLES.get(cell, ""), no_wrap=True, overflow="ellipsis")


def tell_changes(kind: str, answers: Mapping[str, bool], done: str, was_so: str, *, as_json: bool) -> None:
    """Say of each name whether something was done to it, or it was so before."""
    if as_json:
        show_json({name: {"changed": changed} for name, changed in answers.items()})
        return
    for name, changed in answers.items():
        say(f"{kind} {name}: {done if changed else was_so}")
