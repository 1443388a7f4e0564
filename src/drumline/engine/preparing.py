"""Loading the worker's main program in a child process, for the tasks that stand in it.

What stands below `if __name__ == "__main__":` is not run there. What was forgotten to be put below it must not enqueue
once more, nor start another worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from drumline.errors import DrumlineError

__all__ = ["preparing", "refuse_while_preparing"]

_is_preparing: ContextVar[bool] = ContextVar("drumline_preparing", default=False)


@contextmanager
def preparing() -> Iterator[None]:
    """While this is open the main program is loaded, and nothing else."""
    token = _is_preparing.set(True)
    try:
        yield
    finally:
        _is_preparing.reset(token)


def refuse_while_preparing() -> None:
    """DrumlineError where jobs would be made or run by a program that is only loaded for its tasks."""
    if _is_preparing.get():
        raise DrumlineError(
            "a child process loads this program to find its tasks, and must not use the store meanwhile: "
            'put what enqueues or runs jobs below `if __name__ == "__main__":`'
        )
