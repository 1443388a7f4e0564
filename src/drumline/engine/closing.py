"""How the end of an attempt is told, whoever recorded it: the worker that ran it, or the one that rescued it."""

from __future__ import annotations

from drumline.events import JobClosed
from drumline.model.outcome import Outcome

__all__ = ["job_closed"]


def job_closed(outcome: Outcome) -> JobClosed:
    """The event of an outcome that was accepted."""
    claim, attempt = outcome.claim, outcome.attempt
    ran = attempt.ended_at - attempt.started_at
    kind, error = outcome.kind.value, attempt.died_of
    return JobClosed(claim.id, claim.task, claim.queue, claim.attempt, attempt.ended, kind, ran, error)
