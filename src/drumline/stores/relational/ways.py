"""What a store brings to the shared operations: its statements, and the few things that it does in its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from drumline.model.job import Job, JobState, NewJob
from drumline.stores.base import Topic
from drumline.stores.statements import Operation, Row

__all__ = ["Again", "Holders", "S", "Step", "Ways"]

# Who holds which key, by task and name.
Holders = dict[tuple[str, str], str]


class Again(Exception):
    """What the step saw at its beginning is no longer so: undo it, and take it anew.

    Never where nobody else writes during a step.
    """


class Step(Protocol):
    """The present instant of one step, in milliseconds, and what it leaves beside its rows."""

    now: int

    def move(self, queue: str, task: str, before: str | None, after: str | None) -> None:
        """Count a job that goes from one stored state to another; None is outside the store."""

    def hint(self, news: Topic) -> None:
        """Tell this when all is committed."""


S = TypeVar("S", bound=Step)


class Ways(msgspec.Struct, Generic[S], frozen=True):
    """One store's statements by name, and its own ways.

    A statement may be given more than it looks at: a store that reads its own clock has no need of `now`.
    """

    sql: Mapping[str, str]
    # Hold schedules, unfinished jobs, or the right to do what has this id, until the end of the step.
    lock_schedules: Callable[[Iterable[str]], Operation[object]]
    lock_jobs: Callable[[Sequence[str]], Operation[object]]
    lock_action: Callable[[str], Operation[object]]
    # Make those of the jobs whose ids are new, blocked if they wait for another one; how they read.
    add: Callable[[S, Sequence[NewJob], str | None], Operation[dict[str, JobState]]]
    # Take the free ones of the keys of these jobs, none of which stands yet; who holds the others.
    take_keys: Callable[[S, Sequence[NewJob]], Operation[Holders]]
    # Let a waiting job take over what another one asks for; how it reads then.
    replace: Callable[[S, str, NewJob], Operation[JobState]]
    # End a job with these options as cancelled if it has not begun, and say whether that was so.
    cancel_waiting: Callable[[S, str, Any], Operation[bool]]
    # Make an ended job ready again.
    revive: Callable[[Mapping[str, Any]], Operation[None]]
    # Forget an ended job, and say whether there was one.
    forget: Callable[[S, str], Operation[bool]]
    # Arguments as a column holds them.
    write_args: Callable[[bytes], object]
    # A job, from a row of `pick_unfinished` or `pick_ended`.
    read_job: Callable[[Row], Job]
