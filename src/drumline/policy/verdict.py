"""The fate of a job: what an execution came to, turned into an outcome. The only place that decides it.

Worker and rescuer both come here, so they cannot drift apart:

    returned a value ............................... done
    raised, and attempts are left .................. retry after its back-off, or when the task asked
    raised, and it is the last attempt ............. dead
    raised GiveUp, or an error not worth retrying .. dead
    raised Snooze .................................. released until then; the attempt is given back
    ran past its time limit ........................ as raised
    its worker was lost ............................ retried at once, or dead
    was cancelled on request ....................... cancelled
    its replica stops .............................. released; the attempt is given back
    its arguments do not fit this worker's code .... released for a while, for others to take; at last dead

A job that somebody asked to cancel is not tried again, whatever it died of.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

import msgspec

from drumline.model.claim import Claim
from drumline.model.job import Attempt, Failure, Start
from drumline.model.outcome import Outcome, OutcomeKind
from drumline.policy.retry import wait_after

__all__ = [
    "Cancelled",
    "Ending",
    "Lost",
    "Misfit",
    "Raised",
    "Returned",
    "Stopped",
    "TimedOut",
    "Wish",
    "verdict",
]

# How long a job whose arguments this worker does not understand is left to others, and how often.
MISFIT_PAUSE = timedelta(seconds=15)
MOST_RELEASES = 20


class Wish(StrEnum):
    """What a raised error asks for."""

    RETRY = "retry"
    GIVE_UP = "give up"
    SNOOZE = "snooze"


class Returned(msgspec.Struct, frozen=True, gc=False):
    """The task returned."""

    result: bytes | None
    is_repr: bool = False


class Raised(msgspec.Struct, frozen=True):
    """The task raised."""

    failure: Failure
    wish: Wish = Wish.RETRY
    # When it asked to run again; None: as the back-off says.
    start: Start = None


class TimedOut(msgspec.Struct, frozen=True):
    """The task ran past its time limit."""

    failure: Failure


class Lost(msgspec.Struct, frozen=True):
    """The replica that held the claim let its lease pass."""


class Cancelled(msgspec.Struct, frozen=True):
    """The task was stopped because somebody asked for it."""


class Stopped(msgspec.Struct, frozen=True):
    """The replica stops before the task was through."""


class Misfit(msgspec.Struct, frozen=True):
    """The stored arguments do not fit this worker's version of the task."""

    failure: Failure


class Unreadable(msgspec.Struct, frozen=True):
    """The stored arguments are encrypted with a key that this worker does not have."""

    failure: Failure


Ending = Returned | Raised | TimedOut | Lost | Cancelled | Stopped | Misfit | Unreadable


def verdict(claim: Claim, ending: Ending, *, by: str, started_at: datetime, ended_at: datetime) -> Outcome:
    """What becomes of the claim, with the line that closes its attempt."""
    if isinstance(ending, Returned):
        # First, and without more ado: nearly every job ends so.
        line = Attempt(claim.attempt, claim.fence, claim.replica, by, started_at, ended_at, "done")
        return Outcome(claim, OutcomeKind.DONE, line, None, ending.result, ending.is_repr)

    def closed(ended: str, error: Failure | None = None) -> Attempt:
        return Attempt(claim.attempt, claim.fence, claim.replica, by, started_at, ended_at, ended, error)

    match ending:
        case Raised():
            ended = "snoozed" if ending.wish is Wish.SNOOZE else "failed"
            return _as_wished(claim, ending, closed(ended, ending.failure))
        case TimedOut():
            return _again(claim, closed("timeout", ending.failure), None)
        case Lost():
            return _again(claim, closed("lost", _lost(claim)), timedelta())
        case Cancelled():
            return Outcome.cancelled(claim, closed("cancelled"))
        case Stopped():
            # Whether it can be read here was perhaps never tried.
            return Outcome.release(claim, closed("released"), releases=claim.releases)
        case Misfit() if claim.releases >= MOST_RELEASES:
            return Outcome.dead(claim, closed("failed", ending.failure))
        case Misfit() | Unreadable():
            line = closed("released", ending.failure)
            return Outcome.release(claim, line, _pause_of(claim, ending), releases=claim.releases + 1)
        case _:
            assert_never(ending)


def _pause_of(claim: Claim, ending: Misfit | Unreadable) -> timedelta:
    """For how long a job that this worker cannot read is left to others."""
    # A key may be missing for days, and is not the job's fault: it waits however often, but is looked at less and less.
    return MISFIT_PAUSE if isinstance(ending, Misfit) else MISFIT_PAUSE * min(claim.releases + 1, MOST_RELEASES)


def _as_wished(claim: Claim, ending: Raised, attempt: Attempt) -> Outcome:
    match ending.wish:
        case Wish.SNOOZE:
            return Outcome.release(claim, attempt, ending.start)
        case Wish.GIVE_UP:
            return Outcome.dead(claim, attempt)
        case Wish.RETRY:
            return _again(claim, attempt, ending.start)
        case _:
            assert_never(ending.wish)


def _again(claim: Claim, attempt: Attempt, start: Start) -> Outcome:
    if claim.cancelling:
        return Outcome.cancelled(claim, attempt)
    if claim.attempt >= claim.options.max_attempts:
        return Outcome.dead(claim, attempt)
    if start is None:
        start = wait_after(claim.options.backoff, claim.attempt, claim.id)
    return Outcome.retry(claim, attempt, start)


def _lost(claim: Claim) -> Failure:
    lease = claim.options.lease.total_seconds()
    return Failure("WorkerLost", f"worker {claim.replica} was lost: it did not renew its lease of {lease:g} s")
