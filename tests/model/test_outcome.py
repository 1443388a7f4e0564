from datetime import UTC, datetime, timedelta

from drumline.model.claim import Claim
from drumline.model.options import JobOptions
from drumline.model.outcome import Outcome, OutcomeKind
from tests.support.build import attempt_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLAIM = Claim("id", 7, "job", "default", 1, b"{}", JobOptions(), "r1:1", NOW, NOW, NOW, NOW)
ATTEMPT = attempt_of(CLAIM)


def test_each_fate_is_made_with_what_it_needs_and_nothing_else():
    minute = timedelta(minutes=1)
    made: list[tuple[Outcome, object]] = [
        (Outcome.done(CLAIM, ATTEMPT, b"1"), (OutcomeKind.DONE, None, b"1", False)),
        (Outcome.done(CLAIM, ATTEMPT, b"<x>", is_repr=True), (OutcomeKind.DONE, None, b"<x>", True)),
        (Outcome.dead(CLAIM, ATTEMPT), (OutcomeKind.DEAD, None, None, False)),
        (Outcome.cancelled(CLAIM, ATTEMPT), (OutcomeKind.CANCELLED, None, None, False)),
        (Outcome.retry(CLAIM, ATTEMPT, minute), (OutcomeKind.RETRY, minute, None, False)),
        (Outcome.release(CLAIM, ATTEMPT), (OutcomeKind.RELEASE, None, None, False)),
        (Outcome.release(CLAIM, ATTEMPT, NOW), (OutcomeKind.RELEASE, NOW, None, False)),
    ]
    assert {outcome.kind for outcome, _ in made} == set(OutcomeKind)
    for outcome, expected in made:
        assert (outcome.claim, outcome.attempt) == (CLAIM, ATTEMPT)
        assert (outcome.kind, outcome.start, outcome.result, outcome.result_is_repr) == expected
