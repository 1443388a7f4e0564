"""finish: apply the outcomes of claims that are still held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drumline.model.outcome import Outcome
from drumline.stores.base import topic
from drumline.stores.files import read_statements
from drumline.stores.postgres.ending import lock_schedules, tell_schedules
from drumline.stores.postgres.rows import outcome_columns
from drumline.stores.postgres.step import Step
from drumline.stores.rows import FAILED, attempt_line, json_text, span_millis
from drumline.stores.statements import Operation, Statement

__all__ = ["finish", "has_schedules"]

_SQL = read_statements(__package__, "finish.sql")
# Retry and release.
_WAITING = ("r", "l")


def has_schedules(outcomes: Iterable[Outcome]) -> bool:
    return any(outcome.claim.schedule is not None for outcome in outcomes)


def finish(step: Step, outcomes: Sequence[Outcome]) -> Operation[list[bool]]:
    """Inside a transaction if a claim has a schedule, for then it takes several statements."""
    answers = [False] * len(outcomes)
    yield from lock_schedules(outcome.claim.schedule for outcome in outcomes)
    first: dict[tuple[str, int], int] = {}
    for place, outcome in enumerate(outcomes):
        # Only the first outcome of a claim can be applied.
        first.setdefault((outcome.claim.id, outcome.claim.fence), place)
    # In the order of their ids, so that two finishers of the same claims wait for each other in turn.
    places = sorted(first.values(), key=lambda place: outcomes[place].claim.id)
    while places:
        yield from _apply(step, outcomes, places, answers)
        places = [] if all(answers) else (yield from _find_repeated(outcomes, answers))
    return answers


def _apply(step: Step, outcomes: Sequence[Outcome], places: Sequence[int], answers: list[bool]) -> Operation[None]:
    given = outcome_columns(outcomes, places)
    found = yield Statement(_SQL["finish"], {**given, "is_quick": step.is_quick})
    applied: list[tuple[Outcome, str]] = []
    for kind, is_watched, closed in found:
        for place in closed:
            answers[place] = True
            outcome = outcomes[place]
            applied.append((outcome, kind))
            if kind in _WAITING:
                step.hint(topic.queue(outcome.claim.queue))
            else:
                step.end(outcome.claim.id, is_watched=is_watched)
    yield from _tell_schedules(step, applied)


def _tell_schedules(step: Step, applied: Sequence[tuple[Outcome, str]]) -> Operation[None]:
    ends: list[tuple[str, str, int | None]] = []
    runs: dict[str, tuple[int, int]] = {}
    for outcome, kind in applied:
        claim, attempt = outcome.claim, outcome.attempt
        if claim.schedule is None or kind == "l":
            continue
        closed, failed = runs.get(claim.schedule, (0, 0))
        runs[claim.schedule] = (closed + 1, failed + (attempt.ended in FAILED))
        if kind != "r":
            ends.append((claim.id, kind, span_millis(attempt.ended_at - attempt.started_at)))
    yield from tell_schedules(step, ends, runs)


def _find_repeated(outcomes: Sequence[Outcome], answers: list[bool]) -> Operation[list[int]]:
    """Answer as before for outcomes that were applied before; the places of those whose claim is held all the same.

    Somebody asked to cancel such a job in the very moment.
    """
    rows = [
        {"place": place, "id": outcome.claim.id, "fence": outcome.claim.fence, "line": attempt_line(outcome.attempt)}
        for place, outcome in enumerate(outcomes)
        if not answers[place]
    ]
    held: dict[str, int] = {}
    for place, is_repeated in (yield Statement(_SQL["find_repeated"], {"outcomes": json_text(rows)})):
        if is_repeated:
            answers[place] = True
        else:
            held.setdefault(outcomes[place].claim.id, place)
    return [place for _, place in sorted(held.items())]
