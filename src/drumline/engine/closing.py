"""How the end of an attempt is told, whoever recorded it: the worker that ran it, or the one that rescued it."""

from __future__ import annotations

from collections.abc import Iterator

from drumline.events import Event, JobClosed, JobDied
from drumline.model.outcome import Outcome, OutcomeKind

__all__ = ["tell_closed"]


def tell_closed(outcome: Outcome) -> Iterator[Event]:
    """The events of an outcome that was accepted."""
    claim, attempt = outcome.claim, outcome.attempt
    ran = attempt.ended_at - attempt.started_at
    kind, error = outcome.kind.value, attempt.died_of
    yield JobClosed(claim.id, claim.task, claim.queue, claim.attempt, attempt.ended, kind, ran, error)
    if outcome.kind is OutcomeKind.DEAD:
        # A job that is retried by hand, and dies again, has another fence then.
        yield JobDied(f"dead:{claim.id}:{claim.fence}", claim.id, claim.task, claim.queue, claim.attempt, error)
