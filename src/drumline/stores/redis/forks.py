"""After a fork: what threads and connections a store had, its parent has."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

__all__ = ["Forkable", "watch_forks"]


class Forkable(Protocol):
    """Something that has threads and connections."""

    def forget(self) -> None:
        """This process is a fork: begin anew."""


# The interpreter's own list of fork hooks cannot be shortened; this one can, as stores come and go.
_open: WeakSet[Forkable] = WeakSet()


def watch_forks(item: Forkable) -> None:
    """Let the item know when this process is a fork, for as long as it lives."""
    _open.add(item)


def _after_in_child() -> None:
    for item in list(_open):
        item.forget()


os.register_at_fork(after_in_child=_after_in_child)
