"""finish: apply the outcomes of claims that are still held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from drumline.model.instant import to_millis
from drumline.model.outcome import Outcome, OutcomeKind
from drumline.stores.base import topic
from drumline.stores.files import read_statements
from drumline.stores.rows import (
    ENDS,
    attempt_line,
    due_of,
    expires_of,
    json_text,
    span_millis,
    state_due,
)
from drumline.stores.sqlite.ending import End, end
from drumline.stores.sqlite.step import Step
from drumline.stores.statements import Many, Operation, Statement

__all__ = ["find_held", "finish"]

_SQL = read_statements(__package__, "finish.sql")


def finish(step: Step, outcomes: Sequence[Outcome]) -> Operation[list[bool]]:
    held = yield from find_held(outcome.claim.id for outcome in outcomes)
    answers = [False] * len(outcomes)
    ends: list[End] = []
    waits: list[dict[str, Any]] = []
    for place, outcome in enumerate(outcomes):
        # Taken out, so that a second outcome of the same claim finds it closed.
        found = held.pop((outcome.claim.id, outcome.claim.fence), None)
        if found is None:
            continue
        cancelling, row = found
        answers[place] = True
        kind = outcome.kind
        if cancelling and kind not in ENDS:
            kind = OutcomeKind.CANCELLED
        step.close(outcome, kind)
        state = ENDS.get(kind)
        if state is not None:
            ends.append(_end(step, outcome, state, row))
        else:
            waits.append(_wait(step, outcome))
    if ends:
        yield from end(step, ends)
    if waits:
        yield Many(_SQL["wait_again"], waits)
    for place, applied in enumerate(answers):
        if not applied:
            answers[place] = yield from _is_repeated(outcomes[place])
    return answers


def find_held(ids: Iterable[str]) -> Operation[dict[tuple[str, int], tuple[bool, int]]]:
    """Those of the jobs that are running, by id and fence: whether somebody asks to stop them, and their place."""
    rows = yield Statement(_SQL["find_held"], {"ids": json_text(list(ids))})
    return {(job_id, fence): (cancelling, place) for job_id, fence, cancelling, place in rows}


def _end(step: Step, outcome: Outcome, state: str, place: int) -> End:
    claim, attempt = outcome.claim, outcome.attempt
    return End(
        place,
        claim.id,
        state,
        expires_of(claim.options, state, step.now),
        attempt_line(attempt),
        attempt.died_of,
        outcome.result,
        outcome.result_is_repr,
        claim.queue,
        claim.task,
        "x",
        claim.key,
        claim.schedule,
        span_millis(attempt.ended_at - attempt.started_at),
    )


def _wait(step: Step, outcome: Outcome) -> dict[str, Any]:
    claim = outcome.claim
    is_release = outcome.kind is OutcomeKind.RELEASE
    due = to_millis(claim.due_at) if is_release and outcome.start is None else due_of(outcome.start, step.now)
    state = state_due(due, step.now)
    step.move(claim.queue, claim.task, "x", state)
    step.hint(topic.queue(claim.queue))
    return {
        "id": claim.id,
        "state": state,
        "due": due,
        "given_back": is_release,
        "releases": outcome.releases,
        "error": outcome.attempt.died_of,
        "line": attempt_line(outcome.attempt),
    }


def _is_repeated(outcome: Outcome) -> Operation[bool]:
    rows = yield Statement(_SQL["has_attempt"], {"id": outcome.claim.id, "line": attempt_line(outcome.attempt)})
    return bool(rows)
