from datetime import UTC, datetime, timedelta

import pytest

from drumline.model.query import HISTOGRAM_MILLIS, SeriesPoint, histogram_bucket
from drumline.policy.minutes import add_up, quantile

START = datetime(2026, 5, 5, 14, 0, tzinfo=UTC)
BUCKETS = len(HISTOGRAM_MILLIS) + 1


def histogram(*millis: int) -> tuple[int, ...]:
    found = [0] * BUCKETS
    for value in millis:
        found[histogram_bucket(value)] += 1
    return tuple(found)


def point(minute: int, *, task: str = "a", done: int = 0, failed: int = 0, wait: tuple[int, ...] = ()) -> SeriesPoint:
    spread = histogram(*wait)
    at = START + timedelta(minutes=minute)
    return SeriesPoint(minute=at, queue="q", task=task, done=done, failed=failed, wait=spread, run=spread)


def test_points_of_one_minute_are_added_and_empty_minutes_stay():
    minutes = add_up(
        [point(0, done=2), point(0, task="b", done=3, failed=1), point(2, done=4)],
        START,
        START + timedelta(minutes=4),
    )
    assert minutes.done == [5, 0, 4, 0]
    assert minutes.failed == [1, 0, 0, 0]


def test_wider_steps_add_their_minutes():
    minutes = add_up([point(n, done=1) for n in range(30)], START, START + timedelta(minutes=30), width=15)
    assert minutes.done == [15, 15]


def test_an_empty_histogram_has_no_quantile():
    assert quantile(histogram(), 0.5) is None


@pytest.mark.parametrize(("share", "low", "high"), [(0.5, 5, 10), (0.95, 250, 500)])
def test_a_quantile_lies_in_the_bucket_where_its_share_is_reached(share, low, high):
    found = quantile(histogram(*([8] * 90), *([400] * 10)), share)
    assert found is not None
    assert low <= found <= high


def test_what_is_beyond_the_last_bucket_counts_as_its_end():
    assert quantile(histogram(99_000_000), 0.5) == HISTOGRAM_MILLIS[-1]


def test_quantiles_by_step_and_of_all():
    minutes = add_up([point(0, wait=(8,)), point(1, wait=(400,))], START, START + timedelta(minutes=3))
    assert [value is None for value in minutes.waits(0.5)] == [False, False, True]
    assert (minutes.wait(0.99) or 0) > 250


def test_how_many_ran_at_once_is_run_time_over_time():
    minutes = add_up([point(0, wait=(30_000,) * 6)], START, START + timedelta(minutes=1))
    assert minutes.busy() == [pytest.approx(6 * 20_000 / 60_000)]


def test_run_times_of_all_steps_together():
    minutes = add_up([point(0, wait=(8,)), point(1, wait=(400,))], START, START + timedelta(minutes=2))
    assert (minutes.run(0.99) or 0) > 250
