"""What the exit code of a command says."""

from __future__ import annotations

from enum import IntEnum

from drumline.errors import (
    BadArgument,
    BadOption,
    BadSettings,
    DrumlineError,
    JobNotFound,
    StoreError,
    UnknownSchedule,
    UnknownTask,
)

__all__ = ["Exit", "exit_of"]


class Exit(IntEnum):
    """The five answers of a command."""

    DONE = 0
    # The answer is no: it was refused, or there was nothing to do it to.
    NO = 1
    # Bad usage or settings.
    USAGE = 2
    NOT_FOUND = 3
    # The store is out of reach, or cannot be used as it is.
    STORE = 75


def exit_of(error: DrumlineError) -> Exit:
    """The code for an error that reached the command line."""
    match error:
        case BadOption() | BadArgument() | BadSettings():
            return Exit.USAGE
        case JobNotFound() | UnknownTask() | UnknownSchedule():
            return Exit.NOT_FOUND
        case StoreError():
            return Exit.STORE
        case _:
            return Exit.NO
