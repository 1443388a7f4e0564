from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drumline.errors import BadOption
from drumline.model.options import Backoff
from drumline.policy.retry import LONGEST, parse_after, wait_after

SECOND = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)

spans = st.integers(0, 10**9).map(lambda millis: timedelta(milliseconds=millis))
attempts = st.integers(1, 1000)
seeds = st.text(max_size=40)
factors = st.floats(1, 100)
jitters = st.floats(0, 10)


def expected_base(backoff: Backoff, attempt: int) -> timedelta:
    try:
        return min(backoff.initial * backoff.factor ** (attempt - 1), backoff.cap)
    except OverflowError:
        return backoff.cap if backoff.initial else timedelta()


@given(spans, factors, spans, jitters, attempts, seeds)
def test_a_wait_is_the_grown_and_capped_initial_times_one_to_one_plus_jitter(initial, factor, cap, jitter, n, seed):
    backoff = Backoff(initial=initial, factor=factor, cap=cap, jitter=jitter)
    base = expected_base(backoff, n)
    wait = wait_after(backoff, n, seed)
    assert base - MICROSECOND <= wait <= base * (1 + jitter) + MICROSECOND or wait == LONGEST


@given(spans, factors, spans, attempts, seeds)
def test_without_jitter_a_wait_is_exact(initial, factor, cap, n, seed):
    backoff = Backoff(initial=initial, factor=factor, cap=cap, jitter=0)
    assert wait_after(backoff, n, seed) == expected_base(backoff, n)


@given(spans, factors, spans, attempts, seeds)
def test_full_jitter_spreads_a_wait_over_zero_to_all_of_it(initial, factor, cap, n, seed):
    backoff = Backoff(initial=initial, factor=factor, cap=cap, jitter="full")
    assert timedelta() <= wait_after(backoff, n, seed) <= expected_base(backoff, n)


@given(st.lists(spans, min_size=1, max_size=5), attempts, seeds)
def test_a_list_names_the_waits_one_by_one_and_its_last_is_repeated(steps, n, seed):
    base = steps[n - 1] if n <= len(steps) else steps[-1]
    assert base <= wait_after(Backoff.of(steps), n, seed) <= base * 1.25 + MICROSECOND


def test_the_default_waits_double_from_a_quarter_of_a_second_up_to_an_hour():
    exact = Backoff(jitter=0)
    waits = [wait_after(exact, n, "").total_seconds() for n in (1, 2, 3, 4, 14, 15, 16, 1000)]
    assert waits == [0.25, 0.5, 1, 2, 2048, 3600, 3600, 3600]


def test_the_same_seed_gives_the_same_wait_and_others_are_spread():
    waits = {wait_after(Backoff(), 3, f"job {number}") for number in range(100)}
    assert len(waits) > 90
    assert wait_after(Backoff(), 3, "job 1") == wait_after(Backoff(), 3, "job 1")
    assert wait_after(Backoff(factor=1), 3, "job 1") != wait_after(Backoff(factor=1), 4, "job 1")


def test_no_jitter_however_great_leads_beyond_the_calendar():
    assert wait_after(Backoff(jitter=1e300), 1, "a") == LONGEST
    assert wait_after(Backoff(initial=timedelta(days=1), cap=timedelta(days=1), jitter=1e6), 1, "a") == LONGEST


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (5, 5 * SECOND),
        (0, 0 * SECOND),
        (1.5, 1.5 * SECOND),
        ("90s", 90 * SECOND),
        ("1h30m", 5400 * SECOND),
        ("500ms", 0.5 * SECOND),
        ("PT2M", 120 * SECOND),
        (timedelta(minutes=2), 120 * SECOND),
    ],
)
def test_after_may_be_seconds_or_a_duration(after, expected):
    assert parse_after(after) == expected


@pytest.mark.parametrize("text", ["120", " 120 ", "0120"])
def test_after_may_be_the_seconds_of_a_retry_after_header(text):
    assert parse_after(text) == 120 * SECOND


@pytest.mark.parametrize(
    "text",
    ["Wed, 21 Oct 2026 07:28:00 GMT", "Wednesday, 21-Oct-26 07:28:00 GMT", "Wed, 21 Oct 2026 09:28:00 +0200"],
)
def test_after_may_be_the_date_of_a_retry_after_header(text):
    assert parse_after(text) == datetime(2026, 10, 21, 7, 28, tzinfo=UTC)


def test_after_may_be_an_instant_in_any_zone():
    there = datetime(2026, 5, 5, 14, tzinfo=timezone(timedelta(hours=2)))
    assert parse_after(there) == datetime(2026, 5, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "after",
    [
        "soon",
        "",
        "²",
        "-5",
        -1,
        True,
        None,
        [],
        float("nan"),
        float("inf"),
        "9" * 30,
        timedelta(days=-1),
        timedelta.max,
        datetime(2026, 5, 5),  # noqa: DTZ001
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        "Wed, 21 Oct 2026 07:28:00",
        "Wed, 21 Oct 2026 07:28:00 -0000",
        "Wed, 21 Oct 99999999999999999999 07:28:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 -1400",
        "Wed, 41 Oct 2026 07:28:00 GMT",
    ],
)
def test_anything_else_is_refused_by_name(after):
    with pytest.raises(BadOption, match=r"^after must be "):
        parse_after(after)


@given(st.text())
def test_any_text_is_either_read_or_refused(text):
    try:
        assert isinstance(parse_after(text), timedelta | datetime)
    except BadOption as refused:
        assert refused.option == "after"  # noqa: PT017
