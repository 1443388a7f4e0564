"""What must not cross a fork: connections and locks belong to the process that opened them."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

__all__ = ["Forkable", "keep_open", "watch_forks"]


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
_of_parents: list[object] = []


def watch_forks(item: Forkable) -> None:
    """Let the item know of every fork, for as long as it lives."""
    _open.add(item)


def keep_open(connection: object | None) -> None:
    """In a child process: never close a connection of the parent's, not even by forgetting it."""
    if connection is not None:
        _of_parents.append(connection)


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
