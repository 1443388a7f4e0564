"""An outcome: what a claim came to, already decided. A store applies it if the fence still matches, else ignores it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from drumline.model.claim import Claim
from drumline.model.job import Attempt, Start

__all__ = ["Outcome", "OutcomeKind"]


class OutcomeKind(StrEnum):
    """The five fates of a claim."""

    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"
    # Again at `start`; the attempt is spent.
    RETRY = "retry"
    # Again at `start`; the attempt is given back.
    RELEASE = "release"


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """One claim's fate, with the line that closes its attempt.

    The line names its finisher, so it also tells a repeated call from a rival's under the same fence.
    """

    claim: Claim
    kind: OutcomeKind
    attempt: Attempt
    start: Start = None
    result: bytes | None = None
    result_is_repr: bool = False
    # As the next claim shall tell it.
    releases: int = 0

    @classmethod
    def done(cls, claim: Claim, attempt: Attempt, result: bytes | None, *, is_repr: bool = False) -> Outcome:
        return cls(claim, OutcomeKind.DONE, attempt, None, result, is_repr)

    @classmethod
    def dead(cls, claim: Claim, attempt: Attempt) -> Outcome:
        return cls(claim, OutcomeKind.DEAD, attempt)

    @classmethod
    def cancelled(cls, claim: Claim, attempt: Attempt) -> Outcome:
        return cls(claim, OutcomeKind.CANCELLED, attempt)

    @classmethod
    def retry(cls, claim: Claim, attempt: Attempt, start: Start) -> Outcome:
        return cls(claim, OutcomeKind.RETRY, attempt, start)

    @classmethod
    def release(cls, claim: Claim, attempt: Attempt, start: Start = None, *, releases: int = 0) -> Outcome:
        return cls(claim, OutcomeKind.RELEASE, attempt, start, releases=releases)
