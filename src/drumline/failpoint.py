"""Failpoints: named places in the code at which a process can be made to die, to see what a crash there leaves behind.

    DRUMLINE_FAILPOINT=finish.before      kill this process (SIGKILL) when it first comes there
    DRUMLINE_FAILPOINT=finish.before:3    … when it comes there for the third time

Without that variable a place is a call of a function that does nothing, passed once per call of the store, not per job.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import count
from typing import TypeVar

from drumline.errors import BadSettings

__all__ = ["NAMES", "VARIABLE", "failpoint", "failpoint_before", "read_choice"]

VARIABLE = "DRUMLINE_FAILPOINT"

# Every place. Before: the step has not begun; answered: the store has done it, and nobody here has acted on that yet.
NAMES = (
    *("enqueue.before", "enqueue.answered"),
    *("claim.before", "claim.answered", "job.started"),
    *("report.answered", "finish.before", "finish.answered"),
    *("beat.before", "beat.answered"),
    *("declare.answered", "fire.before", "fire.answered"),
    *("reclaim.before", "reclaim.answered", "purge.answered"),
    *("drain.begun", "drain.written", "leave.answered"),
    # Inside a store: its step is done but for the commit (on Redis, sent), and committed but not told to anybody.
    *("store.before_commit", "store.committed"),
)

Call = TypeVar("Call", bound=Callable[..., object])


def _stay_alive(name: str) -> None:
    """Do nothing."""


def _killer(wanted: str, turn: int) -> Callable[[str], None]:
    turns = count(1)

    def die(name: str) -> None:
        if name == wanted and next(turns) == turn:
            os.kill(os.getpid(), signal.SIGKILL)

    return die


def read_choice(given: str | None) -> tuple[str, int] | None:
    """The place and the turn that are chosen; BadSettings for a place that there is not."""
    if not given:
        return None
    name, _, turn = given.partition(":")
    if name not in NAMES or not (turn or "1").isdecimal():
        raise BadSettings(f"{VARIABLE} must be one of {', '.join(NAMES)}, perhaps with :count, got {given!r}")
    return name, int(turn or "1")


_chosen = read_choice(os.environ.get(VARIABLE))
# Die here, if this process was told to.
failpoint: Callable[[str], None] = _stay_alive if _chosen is None else _killer(*_chosen)


def failpoint_before(name: str, call: Call) -> Call:
    """The call itself; or, where this place was chosen, one that passes the place first."""
    if _chosen is None or _chosen[0] != name:
        return call

    def pass_and_call(*args: object) -> object:
        failpoint(name)
        return call(*args)

    return pass_and_call  # type: ignore[return-value]  # the same arguments, the same answer
