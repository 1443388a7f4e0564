"""What crosses the border between a worker and its child processes: JSON, one message a frame, and no pickled object.

    worker ── Call, Flags … ──▶ child        the claim to run, and what became known of it since
    worker ◀── Began, words …, Answer ── child
    worker ── Leave ──▶ child                close the lifespan and exit

All goes through one connection, in order: what a task says comes before how it ended.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from drumline.model.claim import Claim
from drumline.model.job import Failure
from drumline.policy.verdict import Misfit, Raised, Returned, Wish

__all__ = [
    "Answer",
    "Balked",
    "Began",
    "Call",
    "Flags",
    "Gave",
    "Leave",
    "Main",
    "Message",
    "Order",
    "Progressed",
    "Said",
    "Threw",
    "ToldUser",
    "encode",
    "pack",
    "read_message",
    "read_order",
    "unpack",
]


class Main(msgspec.Struct, frozen=True):
    """The program that is the worker's `__main__`: a module that was run by name, or else a file."""

    module: str | None
    path: str | None


class Call(msgspec.Struct, frozen=True, tag=True):
    """Run the claim's task, which stands as `qualname` in a module."""

    claim: Claim
    module: str
    qualname: str
    # Where that module is the main program.
    main: Main | None = None
    # Of the trace in which it runs.
    carried: dict[str, str] = {}


class Flags(msgspec.Struct, frozen=True, tag=True):
    """What became of the claim of that fence meanwhile."""

    fence: int
    stopping: bool
    cancelled: bool
    held: bool


class Leave(msgspec.Struct, frozen=True, tag=True):
    """There is nothing more to do."""


class Began(msgspec.Struct, frozen=True, tag=True):
    """The task is called now: its code was found, and the lifespan is open."""


class Said(msgspec.Struct, frozen=True, tag=True):
    """A log line."""

    level: str
    message: str
    fields: dict[str, Any]


class Progressed(msgspec.Struct, frozen=True, tag=True):
    """How far the task is."""

    value: float
    message: str


class ToldUser(msgspec.Struct, frozen=True, tag=True):
    """A text for the person for whom the job runs."""

    message: str


class Gave(msgspec.Struct, frozen=True, tag=True):
    """The task returned."""

    result: bytes | None
    is_repr: bool


class Threw(msgspec.Struct, frozen=True, tag=True):
    """The task raised; it may have asked to run again at an instant, or after a time."""

    failure: Failure
    wish: Wish
    at: datetime | None = None
    after: timedelta | None = None


class Balked(msgspec.Struct, frozen=True, tag=True):
    """The stored arguments do not fit the task."""

    failure: Failure


Order = Call | Flags | Leave
Answer = Gave | Threw | Balked
Message = Began | Said | Progressed | ToldUser | Answer

encode = msgspec.json.Encoder().encode
read_order = msgspec.json.Decoder(Order).decode
read_message = msgspec.json.Decoder(Message).decode


def pack(ending: Returned | Raised | Misfit) -> Answer:
    """How a task ended, as it crosses the border."""
    match ending:
        case Returned():
            return Gave(ending.result, ending.is_repr)
        case Misfit():
            return Balked(ending.failure)
        case Raised():
            at = ending.start if isinstance(ending.start, datetime) else None
            after = ending.start if isinstance(ending.start, timedelta) else None
            return Threw(ending.failure, ending.wish, at, after)


def unpack(answer: Answer) -> Returned | Raised | Misfit:
    """The same, on the other side."""
    match answer:
        case Gave():
            return Returned(answer.result, answer.is_repr)
        case Balked():
            return Misfit(answer.failure)
        case Threw():
            return Raised(answer.failure, answer.wish, answer.at if answer.after is None else answer.after)
