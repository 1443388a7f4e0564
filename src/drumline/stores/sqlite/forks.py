"""What must not cross a fork: SQLite's connections and locks belong to the process that opened them."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

__all__ = ["Forkable", "watch_forks"]


class Forkable(Protocol):
    """Something that has connections open."""

    def stop_for_fork(self) -> None:
        """Give them back and hold still, until `go_on`."""

    def go_on(self) -> None:
        """The fork is over, and this is the parent."""

    def forget(self) -> None:
        """The fork is over, and this is the child: begin anew."""


# The interpreter's own list of fork hooks cannot be shortened; this one can, as stores come and go.
_open: WeakSet[Forkable] = WeakSet()


def watch_forks(item: Forkable) -> None:
    """Let the item know of every fork, for as long as it lives."""
    _open.add(item)


def _before() -> None:
    for item in list(_open):
        item.stop_for_fork()


def _after_in_parent() -> None:
    for item in list(_open):
        item.go_on()


def _after_in_child() -> None:
    for item in list(_open):
        item.forget()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
