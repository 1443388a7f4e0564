from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drumline.model.claim import Claim
from drumline.model.job import Failure
from drumline.model.options import Backoff, JobOptions
from drumline.model.outcome import OutcomeKind
from drumline.policy.verdict import (
    MISFIT_PAUSE,
    MOST_RELEASES,
    Cancelled,
    Lost,
    Misfit,
    Raised,
    Returned,
    Stopped,
    TimedOut,
    Unreadable,
    Wish,
    verdict,
)

NOW = datetime(2026, 5, 5, 14, tzinfo=UTC)
LATER = NOW + timedelta(seconds=3)
BOOM = Failure("ValueError", "boom", "Traceback …")
EXACT = Backoff(initial=timedelta(seconds=10), jitter=0)


def claim(*, attempt: int = 1, cancelling: bool = False, releases: int = 0, **options) -> Claim:
    return Claim(
        id="job-1",
        fence=7,
        task="send",
        queue="mail",
        attempt=attempt,
        args=b"{}",
        options=JobOptions(**{"backoff": EXACT, **options}),
        replica="r1:1",
        created_at=NOW,
        due_at=NOW,
        claimed_at=NOW,
        lease_until=NOW + timedelta(seconds=30),
        cancelling=cancelling,
        releases=releases,
    )


def judge(ending, **given):
    return verdict(claim(**given), ending, by="r2:1", started_at=NOW, ended_at=LATER)


FAILURES = [(Raised(BOOM), "failed"), (TimedOut(BOOM), "timeout"), (Lost(), "lost")]
ENDINGS = [
    (Returned(b"1"), "done"),
    (Raised(BOOM), "failed"),
    (Raised(BOOM, Wish.GIVE_UP), "failed"),
    (Raised(BOOM, Wish.SNOOZE, timedelta(seconds=5)), "snoozed"),
    (TimedOut(BOOM), "timeout"),
    (Lost(), "lost"),
    (Cancelled(), "cancelled"),
    (Stopped(), "released"),
    (Misfit(BOOM), "released"),
]


@pytest.mark.parametrize(("ending", "ended"), ENDINGS)
def test_every_ending_closes_the_attempt_with_a_line_that_names_its_finisher(ending, ended):
    outcome = judge(ending, attempt=3)
    attempt = outcome.attempt
    assert outcome.claim == claim(attempt=3)
    assert (attempt.number, attempt.fence, attempt.replica, attempt.by) == (3, 7, "r1:1", "r2:1")
    assert (attempt.started_at, attempt.ended_at, attempt.ended) == (NOW, LATER, ended)


def test_what_returned_is_done_with_its_result():
    outcome = judge(Returned(b'"x"', is_repr=True))
    assert (outcome.kind, outcome.result, outcome.result_is_repr) == (OutcomeKind.DONE, b'"x"', True)
    assert outcome.attempt.error is None


@pytest.mark.parametrize("attempt", [1, 2, 4])
def test_what_raised_is_retried_after_its_back_off_while_attempts_are_left(attempt):
    outcome = judge(Raised(BOOM), attempt=attempt, max_attempts=5)
    assert (outcome.kind, outcome.start) == (OutcomeKind.RETRY, timedelta(seconds=10 * 2 ** (attempt - 1)))
    assert outcome.attempt.error == BOOM


def test_what_raised_is_retried_when_it_asked():
    assert judge(Raised(BOOM, Wish.RETRY, LATER)).start == LATER
    assert judge(Raised(BOOM, Wish.RETRY, timedelta())).start == timedelta()


@pytest.mark.parametrize(("ending", "ended"), FAILURES)
def test_the_last_attempt_leaves_the_job_dead(ending, ended):
    outcome = judge(ending, attempt=5, max_attempts=5)
    assert (outcome.kind, outcome.attempt.ended) == (OutcomeKind.DEAD, ended)


@pytest.mark.parametrize(("ending", "_ended"), FAILURES)
def test_one_attempt_means_never_again(ending, _ended):
    assert judge(ending, max_attempts=1).kind is OutcomeKind.DEAD


def test_a_wish_for_another_time_does_not_add_an_attempt():
    assert judge(Raised(BOOM, Wish.RETRY, LATER), attempt=5, max_attempts=5).kind is OutcomeKind.DEAD


def test_giving_up_is_dead_whatever_attempts_are_left():
    assert judge(Raised(BOOM, Wish.GIVE_UP), max_attempts=5).kind is OutcomeKind.DEAD


@pytest.mark.parametrize("attempt", [1, 5])
def test_a_snoozed_job_is_released_until_then_also_in_its_last_attempt(attempt):
    outcome = judge(Raised(BOOM, Wish.SNOOZE, LATER), attempt=attempt, max_attempts=5)
    assert (outcome.kind, outcome.start) == (OutcomeKind.RELEASE, LATER)


def test_what_ran_too_long_is_retried_after_its_back_off():
    outcome = judge(TimedOut(BOOM))
    assert (outcome.kind, outcome.start) == (OutcomeKind.RETRY, timedelta(seconds=10))


def test_what_was_lost_is_retried_at_once_and_says_who_lost_it():
    outcome = judge(Lost())
    assert (outcome.kind, outcome.start) == (OutcomeKind.RETRY, timedelta())
    assert outcome.attempt.error == Failure("WorkerLost", "worker r1:1 was lost: it did not renew its lease of 30 s")


def test_what_was_cancelled_is_cancelled():
    assert judge(Cancelled()).kind is OutcomeKind.CANCELLED


@pytest.mark.parametrize(("ending", "_ended"), FAILURES)
@pytest.mark.parametrize("attempt", [1, 5])
def test_a_job_that_somebody_asked_to_cancel_is_not_tried_again(ending, _ended, attempt):
    outcome = judge(ending, attempt=attempt, max_attempts=5, cancelling=True)
    assert outcome.kind is OutcomeKind.CANCELLED
    assert outcome.attempt.ended == _ended


def test_what_was_stopped_is_released_at_once_though_it_was_the_last_attempt():
    outcome = judge(Stopped(), attempt=5, max_attempts=5)
    assert (outcome.kind, outcome.start, outcome.attempt.error) == (OutcomeKind.RELEASE, None, None)


def test_a_misfit_is_left_to_others_for_a_while_and_says_why():
    outcome = judge(Misfit(BOOM))
    assert (outcome.kind, outcome.start, outcome.attempt.error) == (OutcomeKind.RELEASE, MISFIT_PAUSE, BOOM)


def test_only_workers_that_could_not_read_the_job_count_towards_its_end():
    """One that was snoozed twenty times was read twenty times; one that was stopped was perhaps never looked at."""
    snoozed = Raised(BOOM, Wish.SNOOZE, MISFIT_PAUSE)
    endings = {Misfit(BOOM): 4, Unreadable(BOOM): 4, Stopped(): 3, snoozed: 0, Raised(BOOM): 0, Lost(): 0}
    assert {ending: judge(ending, releases=3).releases for ending in endings} == endings


def test_a_misfit_that_nobody_took_for_long_is_dead_and_says_why():
    assert judge(Misfit(BOOM), releases=MOST_RELEASES - 1).kind is OutcomeKind.RELEASE
    outcome = judge(Misfit(BOOM), releases=MOST_RELEASES)
    assert (outcome.kind, outcome.attempt.ended, outcome.attempt.error) == (OutcomeKind.DEAD, "failed", BOOM)


@given(st.sampled_from([ending for ending, _ in ENDINGS]), st.integers(1, 20), st.integers(1, 20), st.booleans())
def test_whoever_judges_comes_to_the_same_fate(ending, attempt, most, cancelling):
    held = claim(attempt=attempt, max_attempts=most, cancelling=cancelling)
    worker = verdict(held, ending, by="r1:1", started_at=NOW, ended_at=LATER)
    rescuer = verdict(held, ending, by="r2:1", started_at=NOW, ended_at=NOW)
    assert msgspec.structs.replace(rescuer, attempt=worker.attempt) == worker


@given(st.sampled_from([ending for ending, _ in ENDINGS]), st.integers(1, 20), st.integers(1, 20), st.booleans())
def test_an_attempt_beyond_the_last_is_never_granted(ending, attempt, most, cancelling):
    outcome = judge(ending, attempt=attempt, max_attempts=most, cancelling=cancelling)
    assert outcome.kind is not OutcomeKind.RETRY or attempt < most


@pytest.mark.parametrize(
    ("releases", "pauses"), [(0, 1), (1, 2), (MOST_RELEASES - 1, MOST_RELEASES), (10 * MOST_RELEASES, MOST_RELEASES)]
)
def test_a_job_whose_key_is_missing_waits_however_often_and_is_looked_at_less_and_less(releases, pauses):
    outcome = judge(Unreadable(BOOM), releases=releases)
    assert (outcome.kind, outcome.start) == (OutcomeKind.RELEASE, MISFIT_PAUSE * pauses)
    assert (outcome.attempt.ended, outcome.attempt.error) == ("released", BOOM)
