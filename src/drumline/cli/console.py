"""A console that is drawn on, and what happens when nobody reads it any more."""

from __future__ import annotations

from rich.console import Console

__all__ = ["Paper"]


class Paper(Console):
    """Whoever read the other end of the pipe has seen enough: that ends the command, and is no failure."""

    def __init__(self) -> None:
        super().__init__(highlight=False)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
