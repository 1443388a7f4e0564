"""How a job is to be treated, frozen when it is enqueued, so that rescue and purge need no code of the task."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Literal

import msgspec

from drumline.errors import BadOption
from drumline.model.instant import Duration, parse_duration

__all__ = [
    "DEFAULT_LEASE",
    "DEFAULT_QUEUE",
    "HIGHEST_PRIORITY",
    "PRIVATE",
    "Backoff",
    "JobOptions",
    "Retention",
    "check_count",
    "check_name",
    "check_namespace",
    "decode_options",
    "encode_options",
]

DEFAULT_QUEUE = "default"
# Before the name of a queue that one replica serves for itself. No user can give such a name.
PRIVATE = "@"
DEFAULT_LEASE = timedelta(seconds=30)
HIGHEST_PRIORITY = 100
MOST_ATTEMPTS = 1000

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,99}")
_NAMESPACE = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,40}")
_SHORTEST_LEASE = timedelta(milliseconds=100)


def check_name(value: object, option: str) -> str:
    """A task, queue or schedule name that every store, URL and label can carry."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise BadOption(option, "1 to 100 letters, digits or any of _ . : / - (the first a letter, digit or _)", value)
    return value


def check_namespace(value: object, option: str) -> str:
    """What keeps programs apart that share a store: a schema on Postgres, a prefix of keys on Redis."""
    if not isinstance(value, str) or not _NAMESPACE.fullmatch(value):
        raise BadOption(option, "1 to 41 letters, digits or any of _ . : -, not a digit first", value)
    return value


def check_count(value: object, option: str) -> int:
    """A whole number of 1 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadOption(option, "a whole number of 1 or more", value)
    return value


def _check_whole(option: str, value: object, lowest: int, highest: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise BadOption(option, f"a whole number from {lowest} to {highest}", value)


def _check_number(option: str, value: object, at_least: float) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not at_least <= value < float("inf"):
        raise BadOption(option, f"a number of {at_least} or more", value)


class Backoff(msgspec.Struct, frozen=True):
    """The waits between attempts: `initial * factor^(n-1)`, at most `cap`, times a random 1 … 1 + `jitter`.

    `jitter="full"` spreads each wait over 0 … 1 of itself. `steps` names the waits one by one, the last repeated.
    """

    initial: timedelta = timedelta(milliseconds=250)
    factor: float = 2.0
    cap: timedelta = timedelta(hours=1)
    jitter: float | Literal["full"] = 0.25
    steps: tuple[timedelta, ...] = ()

    def __post_init__(self) -> None:
        for name in ("initial", "cap"):
            # A frozen Struct has no other way to take "10s" where a timedelta is kept.
            msgspec.structs.force_setattr(self, name, parse_duration(getattr(self, name), f"backoff {name}"))
        steps = tuple(parse_duration(step, "backoff steps") for step in self.steps)
        msgspec.structs.force_setattr(self, "steps", steps)
        _check_number("backoff factor", self.factor, at_least=1)
        if self.jitter != "full":
            _check_number("backoff jitter", self.jitter, at_least=0)

    @classmethod
    def of(cls, value: Backoff | Duration | Sequence[Duration]) -> Backoff:
        """The back-off that `backoff=` names: the initial wait, a list of waits, or a whole Backoff."""
        if isinstance(value, Backoff):
            return value
        if isinstance(value, Sequence) and not isinstance(value, str):
            if not value:
                raise BadOption("backoff", "a wait, a list with at least one wait, or a Backoff", value)
            return cls(steps=tuple(parse_duration(step, "backoff") for step in value))
        return cls(initial=parse_duration(value, "backoff"))


class Retention(msgspec.Struct, frozen=True):
    """How long a job is kept once it has ended, by how it ended."""

    done: timedelta = timedelta(days=1)
    dead: timedelta = timedelta(days=7)
    cancelled: timedelta = timedelta(days=1)

    def __post_init__(self) -> None:
        for name in ("done", "dead", "cancelled"):
            msgspec.structs.force_setattr(self, name, parse_duration(getattr(self, name), f"retention {name}"))

    @classmethod
    def of(cls, value: Retention | Duration) -> Retention:
        """The retention that `retention=` names: one duration for all three ends, or a whole Retention."""
        if isinstance(value, Retention):
            return value
        span = parse_duration(value, "retention")
        return cls(done=span, dead=span, cancelled=span)


class JobOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """The options of one job."""

    queue: str = DEFAULT_QUEUE
    priority: int = 0
    max_attempts: int = 5
    backoff: Backoff = Backoff()
    timeout: timedelta | None = None
    lease: timedelta = DEFAULT_LEASE
    retention: Retention = Retention()

    def __post_init__(self) -> None:
        check_name(self.queue.removeprefix(PRIVATE), "queue")
        _check_whole("priority", self.priority, -HIGHEST_PRIORITY, HIGHEST_PRIORITY)
        if check_count(self.max_attempts, "max_attempts") > MOST_ATTEMPTS:
            raise BadOption("max_attempts", f"a whole number of at most {MOST_ATTEMPTS}", self.max_attempts)
        if self.lease < _SHORTEST_LEASE:
            raise BadOption("lease", "a duration of 100 ms or more", self.lease)
        if self.timeout is not None and self.timeout <= timedelta():
            raise BadOption("timeout", "a duration above zero, or None", self.timeout)


# Nearly all jobs of a task share their options: the text is made, and read, once.
@lru_cache(maxsize=1024)
def encode_options(options: JobOptions) -> bytes:
    """The options as kept in a store."""
    return msgspec.json.encode(options)


@lru_cache(maxsize=1024)
def decode_options(text: bytes) -> JobOptions:
    """The options that `encode_options` wrote.

    Options that no caller could have given were written past the front door: their job is treated as any other, for
    one row must not keep a fleet from its work, nor people from their pages.
    """
    try:
        return msgspec.json.decode(text, type=JobOptions)
    except msgspec.ValidationError:
        return JobOptions()
