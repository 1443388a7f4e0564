from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drumline.errors import BadOption
from drumline.model.instant import from_millis, millis, parse_duration, parse_instant, to_millis

YEARS_100 = 36_500 * 86_400


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0, timedelta()),
        (5, timedelta(seconds=5)),
        (0.25, timedelta(milliseconds=250)),
        ("500ms", timedelta(milliseconds=500)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("1.5h", timedelta(hours=1, minutes=30)),
        ("7d", timedelta(days=7)),
        ("PT5M", timedelta(minutes=5)),
        ("+P1DT2H", timedelta(days=1, hours=2)),
        ("p1d", timedelta(days=1)),
        (timedelta(days=2), timedelta(days=2)),
        (YEARS_100, timedelta(days=36_500)),
    ],
)
def test_a_duration_is_read_however_it_was_written(written, meant):
    assert parse_duration(written, "delay") == meant


def test_parts_of_a_millisecond_are_dropped_from_a_duration():
    assert parse_duration(timedelta(microseconds=1999), "delay") == timedelta(milliseconds=1)


@pytest.mark.parametrize(
    "written",
    [
        -1,
        "-5s",
        "-PT5M",
        timedelta(microseconds=-1),
        YEARS_100 + 1,
        timedelta(days=36_501),
        float("nan"),
        float("inf"),
        1e300,
        "",
        "soon",
        "5 bananas",
        "Pnonsense",
        "9" * 400 + "h",
        True,
        None,
        [],
        b"5s",
    ],
    ids=repr,
)
def test_what_is_no_duration_is_refused_by_name(written):
    with pytest.raises(BadOption, match=r"^delay must be a duration") as raised:
        parse_duration(written, "delay")
    assert raised.value.option == "delay"


@pytest.mark.parametrize(
    "written",
    [
        "2026-05-05T14:00:00Z",
        "2026-05-05T16:00:00+02:00",
        datetime(2026, 5, 5, 14, tzinfo=UTC),
        datetime(2026, 5, 5, 10, tzinfo=timezone(timedelta(hours=-4))),
        datetime(2026, 5, 5, 16, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2026, 5, 5, 14, 0, 0, 999, tzinfo=UTC),
    ],
    ids=str,
)
def test_an_instant_of_any_zone_is_read_as_utc_in_whole_milliseconds(written):
    instant = parse_instant(written, "at")
    assert (instant, instant.tzinfo) == (datetime(2026, 5, 5, 14, tzinfo=UTC), UTC)


@pytest.mark.parametrize(
    "written",
    [datetime(2026, 5, 5, 14), "2026-05-05T14:00:00", "tomorrow", "", 1_777_989_600, None],  # noqa: DTZ001
    ids=repr,
)
def test_what_is_no_instant_with_a_zone_is_refused_by_name(written):
    with pytest.raises(BadOption, match=r"^at must be an instant with a time zone"):
        parse_instant(written, "at")


@given(st.integers(-(10**11), 10**14))
def test_milliseconds_and_instants_mean_each_other(value):
    instant = from_millis(value)
    assert (to_millis(instant), instant.microsecond % 1000, instant.tzinfo) == (value, 0, UTC)


@given(st.datetimes(timezones=st.just(UTC), min_value=datetime(1900, 1, 1), max_value=datetime(2900, 1, 1)))  # noqa: DTZ001
def test_an_instant_in_milliseconds_is_never_later_than_itself(instant):
    cut = from_millis(to_millis(instant))
    assert timedelta() <= instant - cut < timedelta(milliseconds=1)


@pytest.mark.parametrize(("micros", "expected"), [(0, 0), (999, 0), (1000, 1), (-1, -1), (86_400_000_001, 86_400_000)])
def test_a_span_is_told_in_whole_milliseconds(micros, expected):
    assert millis(timedelta(microseconds=micros)) == expected


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00"])
def test_an_instant_outside_the_years_that_can_be_told_is_refused(text):
    with pytest.raises(BadOption, match="at must be an instant of the years 1 to 9999"):
        parse_instant(text, "at")
