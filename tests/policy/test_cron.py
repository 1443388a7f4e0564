"""Cron expressions: reference lists, what is refused, and the rules for changes of the clocks as a table."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from drumline.errors import BadOption
from drumline.policy.rule import make_rule, note, times
from drumline.policy.zone import zone

NOON = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def list_next(after: datetime, count: int, **options: str) -> list[datetime]:
    yields = times(make_rule("schedule s", **options))
    found: list[datetime] = []
    while len(found) < count and (instant := yields.after(found[-1] if found else after)) is not None:
        found.append(instant)
    return found


def list_local(timezone: str, day: str, count: int = 4, **options: str) -> list[str]:
    """The first instants of a local day, as the wall clock with its offset shows them."""
    midnight = datetime.fromisoformat(day).replace(tzinfo=zone(timezone)).astimezone(UTC)
    found = list_next(midnight - timedelta(seconds=1), count, timezone=timezone, **options)
    return [instant.astimezone(zone(timezone)).strftime("%d %H:%M:%S%z") for instant in found]


# Tuesday, 2026-05-05, 12:00 UTC.
REFERENCE = {
    "*/5 * * * *": "05-05T12:05 05-05T12:10 05-05T12:15 05-05T12:20 05-05T12:25",
    "0 9 * * *": "05-06T09:00 05-07T09:00 05-08T09:00 05-09T09:00 05-10T09:00",
    "30 8 * * MON-FRI": "05-06T08:30 05-07T08:30 05-08T08:30 05-11T08:30 05-12T08:30",
    "0 0 1,15 * *": "05-15T00:00 06-01T00:00 06-15T00:00 07-01T00:00 07-15T00:00",
    "15 3 * JAN,jul sun": "07-05T03:15 07-12T03:15 07-19T03:15 07-26T03:15",
    # A day of the month or a day of the week, as cron has it; both, where one of them begins with a star.
    "0 0 13 * 5": "05-08T00:00 05-13T00:00 05-15T00:00 05-22T00:00 05-29T00:00",
    "0 0 */2 * 1": "05-11T00:00 05-25T00:00 06-01T00:00 06-15T00:00 06-29T00:00",
    # Sunday is 0 or 7.
    "0 6 * * 0": "05-10T06:00 05-17T06:00 05-24T06:00 05-31T06:00 06-07T06:00",
    "0 6 * * 7": "05-10T06:00 05-17T06:00 05-24T06:00 05-31T06:00 06-07T06:00",
    "0 6 * * 6-7": "05-09T06:00 05-10T06:00 05-16T06:00 05-17T06:00 05-23T06:00",
    # The last day, the last weekday, the last Friday, the second Monday.
    "0 0 L * *": "05-31T00:00 06-30T00:00 07-31T00:00 08-31T00:00 09-30T00:00",
    "0 0 LW * *": "05-29T00:00 06-30T00:00 07-31T00:00 08-31T00:00 09-30T00:00",
    "0 0 * * 5L": "05-29T00:00 06-26T00:00 07-31T00:00 08-28T00:00 09-25T00:00",
    "0 0 * * MON#2": "05-11T00:00 06-08T00:00 07-13T00:00 08-10T00:00 09-14T00:00",
    # Six fields have seconds first.
    "*/20 * * * * *": "05-05T12:00:20 05-05T12:00:40 05-05T12:01 05-05T12:01:20 05-05T12:01:40",
    "15,45 30 12 * * *": "05-05T12:30:15 05-05T12:30:45 05-06T12:30:15 05-06T12:30:45 05-07T12:30:15",
    "@hourly": "05-05T13:00 05-05T14:00 05-05T15:00 05-05T16:00 05-05T17:00",
    "@daily": "05-06T00:00 05-07T00:00 05-08T00:00 05-09T00:00 05-10T00:00",
    "@midnight": "05-06T00:00 05-07T00:00 05-08T00:00 05-09T00:00 05-10T00:00",
    "@weekly": "05-10T00:00 05-17T00:00 05-24T00:00 05-31T00:00 06-07T00:00",
    "@monthly": "06-01T00:00 07-01T00:00 08-01T00:00 09-01T00:00 10-01T00:00",
}


@pytest.mark.parametrize("text", REFERENCE)
def test_the_next_times_equal_the_reference_list(text):
    expected = [at(f"2026-{when}") for when in REFERENCE[text].split()]
    assert list_next(NOON, len(expected), cron=text) == expected


@pytest.mark.parametrize("text", ["@yearly", "@annually", " @Yearly ", "0 0 1 1 *"])
def test_a_year_has_three_names(text):
    assert list_next(NOON, 2, cron=text) == [at("2027-01-01"), at("2028-01-01")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0 0 29 2 *", ["2028-02-29", "2032-02-29"]), ("0 0 * 2 MON#5", ["2044-02-29", "2072-02-29"])],
)
def test_a_rare_day_is_found(text, expected):
    assert list_next(NOON, 2, cron=text) == [at(day) for day in expected]


def test_a_time_is_strictly_after_the_one_given():
    noon = datetime(2026, 5, 5, 12, tzinfo=UTC)
    for earlier, expected in ((1, noon), (0, noon + timedelta(days=1)), (-1, noon + timedelta(days=1))):
        assert list_next(noon - timedelta(milliseconds=earlier), 1, cron="0 12 * * *") == [expected]


FIELD_ERRORS = {
    "60 * * * * *": "its second field, '60', which takes 0 to 59",
    "61 * * * *": "its minute field, '61', which takes 0 to 59",
    "* 24 * * *": "its hour field, '24', which takes 0 to 23",
    "0 * 9,25 * * *": "its hour field, '9,25', which takes 0 to 23",
    "* * 32 * *": "its day-of-month field, '32', which takes 1 to 31, L (the last day) or LW (the last weekday)",
    "* * * FOO *": "its month field, 'FOO', which takes 1 to 12 or JAN to DEC",
    "* * * * FRI-SUN": "its day-of-week field, 'FRI-SUN', which takes 0 to 7 or SUN to SAT (a range ends with 7 "
    "for Sunday), 5L (the last Friday), 5#2 (the second)",
    "*/0 * * * *": "its minute field, '*/0', which takes 0 to 59",
    "5-1 * * * *": "its minute field, '5-1', which takes 0 to 59",
    "1, * * * *": "its minute field, '1,', which takes 0 to 59",
}


@pytest.mark.parametrize("text", FIELD_ERRORS)
def test_a_bad_expression_says_which_field_is_wrong(text):
    with pytest.raises(BadOption) as caught:
        make_rule("schedule nightly", cron=text)
    steps = "*, lists, ranges and steps such as */2"
    assert str(caught.value) == (f"schedule nightly: cron must be right in {FIELD_ERRORS[text]}; {steps}, got {text!r}")


OTHER_ERRORS = {
    "": "5 fields (minute hour day-of-month month day-of-week), or 6 with seconds first, and not 0",
    "* * * *": "5 fields (minute hour day-of-month month day-of-week), or 6 with seconds first, and not 4",
    "@reboot": "a rule for times; to run when the fleet starts, give run_on_startup=True",
    "@sometimes": "one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, or 5 or 6 fields",
    "0 0 30 2 *": "an expression that names a day which exists",
    "0 0 31 4,6 *": "an expression that names a day which exists",
    # The first of a month is never the fifth Monday.
    "0 0 */31 * MON#5": "an expression that names a day which exists",
    "1" * 600: "a text of at most 500 characters",
}


@pytest.mark.parametrize("text", OTHER_ERRORS)
def test_an_expression_without_times_is_refused(text):
    with pytest.raises(BadOption) as caught:
        make_rule("schedule nightly", cron=text)
    assert str(caught.value) == f"schedule nightly: cron must be {OTHER_ERRORS[text]}, got {text!r}"


# zone, local day, options, the first instants of the day.
CHANGES = [
    # Forward at 02:00 to 03:00.
    ("Europe/Berlin", "2026-03-29", {"cron": "30 2 * * *"}, ["29 03:00:00+0200", "30 02:30:00+0200"]),
    ("Europe/Berlin", "2026-03-29", {"cron": "30 2 * * *", "dst_gap": "skip"}, ["30 02:30:00+0200"]),
    # The end of the gap runs once, also where it is named itself.
    ("Europe/Berlin", "2026-03-29", {"cron": "0 2,3 * * *"}, ["29 03:00:00+0200", "30 02:00:00+0200"]),
    # Sixty times fall into the gap: one run for them all.
    ("Europe/Berlin", "2026-03-29", {"cron": "* 2 * * *"}, ["29 03:00:00+0200", "30 02:00:00+0200"]),
    ("Europe/Berlin", "2026-03-29", {"cron": "*/30 2-3 * * *"}, ["29 03:00:00+0200", "29 03:30:00+0200"]),
    # Seconds change nothing.
    ("Europe/Berlin", "2026-03-29", {"cron": "15 30 2 * * *"}, ["29 03:00:00+0200", "30 02:30:15+0200"]),
    # Hours as they come: those that do not exist do not run.
    (
        "Europe/Berlin",
        "2026-03-29",
        {"cron": "30 * * * *"},
        ["29 00:30:00+0100", "29 01:30:00+0100", "29 03:30:00+0200"],
    ),
    ("Europe/Berlin", "2026-03-29", {"cron": "0 */2 * * *"}, ["29 00:00:00+0100", "29 04:00:00+0200"]),
    ("Europe/Berlin", "2026-03-29", {"cron": "5 0 */2 * * *"}, ["29 00:00:05+0100", "29 04:00:05+0200"]),
    # Back at 03:00 to 02:00.
    ("Europe/Berlin", "2026-10-25", {"cron": "30 2 * * *"}, ["25 02:30:00+0200", "26 02:30:00+0100"]),
    (
        "Europe/Berlin",
        "2026-10-25",
        {"cron": "30 2 * * *", "dst_fold": "twice"},
        ["25 02:30:00+0200", "25 02:30:00+0100", "26 02:30:00+0100"],
    ),
    (
        "Europe/Berlin",
        "2026-10-25",
        {"cron": "15 30 2 * * *", "dst_fold": "twice"},
        ["25 02:30:15+0200", "25 02:30:15+0100", "26 02:30:15+0100"],
    ),
    (
        "Europe/Berlin",
        "2026-10-25",
        {"cron": "0,40 2 * * *"},
        ["25 02:00:00+0200", "25 02:40:00+0200", "26 02:00:00+0100"],
    ),
    (
        "Europe/Berlin",
        "2026-10-25",
        {"cron": "0 * * * *"},
        ["25 00:00:00+0200", "25 01:00:00+0200", "25 02:00:00+0200", "25 02:00:00+0100", "25 03:00:00+0100"],
    ),
    (
        "Europe/Berlin",
        "2026-10-25",
        {"cron": "0 */2 * * *"},
        ["25 00:00:00+0200", "25 02:00:00+0200", "25 02:00:00+0100"],
    ),
    # Half an hour, forward at 02:00 and back at 02:00.
    ("Australia/Lord_Howe", "2026-10-04", {"cron": "15 2 * * *"}, ["04 02:30:00+1100", "05 02:15:00+1100"]),
    ("Australia/Lord_Howe", "2026-10-04", {"cron": "45 2 * * *"}, ["04 02:45:00+1100", "05 02:45:00+1100"]),
    ("Australia/Lord_Howe", "2026-04-05", {"cron": "45 1 * * *"}, ["05 01:45:00+1100", "06 01:45:00+1030"]),
    (
        "Australia/Lord_Howe",
        "2026-04-05",
        {"cron": "15 1 * * *", "dst_fold": "twice"},
        ["05 01:15:00+1100", "06 01:15:00+1030"],
    ),
    # A whole day that was left out.
    ("Pacific/Apia", "2011-12-29", {"cron": "0 9 * * *"}, ["29 09:00:00-1000", "31 00:00:00+1400", "31 09:00:00+1400"]),
    ("Pacific/Apia", "2011-12-29", {"cron": "0 9 30 12 *"}, ["31 00:00:00+1400", "30 09:00:00+1400"]),
    ("Pacific/Apia", "2011-12-29", {"cron": "0 9 * * *", "dst_gap": "skip"}, ["29 09:00:00-1000", "31 09:00:00+1400"]),
    # A gap and a fold at midnight: the day begins at 01:00, or its last hour comes twice.
    (
        "America/Sao_Paulo",
        "2018-11-03",
        {"cron": "0 0 * * *"},
        ["03 00:00:00-0300", "04 01:00:00-0200", "05 00:00:00-0200"],
    ),
    ("America/Sao_Paulo", "2018-02-17", {"cron": "30 23 * * *"}, ["17 23:30:00-0200", "18 23:30:00-0300"]),
    (
        "America/Havana",
        "2026-03-07",
        {"cron": "30 0 * * *"},
        ["07 00:30:00-0500", "08 01:00:00-0400", "09 00:30:00-0400"],
    ),
    ("America/Havana", "2026-11-01", {"cron": "@daily"}, ["01 00:00:00-0400", "02 00:00:00-0500"]),
    # Winter is what Dublin calls the time that is off its standard; the walls jump as anywhere.
    ("Europe/Dublin", "2026-03-29", {"cron": "30 1 * * *"}, ["29 02:00:00+0100", "30 01:30:00+0100"]),
    ("Europe/Dublin", "2026-10-25", {"cron": "30 1 * * *"}, ["25 01:30:00+0100", "26 01:30:00+0000"]),
    # Two hours at once.
    ("Antarctica/Troll", "2026-03-29", {"cron": "0 1,2 * * *"}, ["29 03:00:00+0200", "30 01:00:00+0200"]),
    (
        "Antarctica/Troll",
        "2026-10-25",
        {"cron": "0 2 * * *", "dst_fold": "twice"},
        ["25 02:00:00+0200", "25 02:00:00+0000", "26 02:00:00+0000"],
    ),
]


@pytest.mark.parametrize(("timezone", "day", "options", "expected"), CHANGES)
def test_changes_of_the_clocks_follow_the_table(timezone, day, options, expected):
    assert list_local(timezone, day, len(expected), **options) == expected


@pytest.mark.parametrize(("timezone", "day", "options", "expected"), CHANGES)
def test_counting_and_listing_agree_with_asking_one_by_one(timezone, day, options, expected):
    yields = times(make_rule("schedule s", timezone=timezone, **options))
    start = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(days=1)
    end = start + timedelta(days=4)
    one_by_one = [instant for instant in list_next(start, 1000, timezone=timezone, **options) if instant <= end]
    assert list(yields.between(start, end)) == one_by_one
    assert yields.count(start, end) == len(one_by_one)


def test_nothing_runs_in_the_second_hour_of_two_unless_it_is_asked_for():
    # 02:10 to 02:50, for the second time.
    second = (at("2026-10-25T01:10"), at("2026-10-25T01:50"))
    for fold, count in (("once", 0), ("twice", 4)):
        yields = times(make_rule("schedule s", cron="*/10 2 * * *", timezone="Europe/Berlin", dst_fold=fold))
        assert yields.count(*second) == len(list(yields.between(*second))) == count


def notes(timezone: str, day: str, **options: str) -> list[str | None]:
    rule = make_rule("schedule s", timezone=timezone, **options)
    midnight = datetime.fromisoformat(day).replace(tzinfo=zone(timezone)).astimezone(UTC)
    return [note(rule, instant) for instant in islice(times(rule).between(midnight, midnight + timedelta(days=3)), 2)]


@pytest.mark.parametrize(
    ("day", "options", "expected"),
    [
        (
            "2026-03-29",
            {"cron": "30 2 * * *"},
            ["moved: 2026-03-29 02:30 does not exist, the clocks go forward to 2026-03-29 03:00", None],
        ),
        (
            "2026-03-29",
            {"cron": "15 */20 2 * * *"},
            [
                "moved: 2026-03-29 02:00:15 (with 2 more) does not exist, the clocks go forward to 2026-03-29 03:00",
                None,
            ],
        ),
        (
            "2026-03-29",
            {"cron": "30 2 * * *", "dst_gap": "skip"},
            ["skipped before it: 2026-03-29 02:30 does not exist, the clocks go forward to 2026-03-29 03:00", None],
        ),
        ("2026-03-29", {"cron": "30 4 * * *", "dst_gap": "skip"}, [None, None]),
        (
            "2026-03-29",
            {"cron": "30 2/2 * * *"},
            ["moved: 2026-03-29 02:30 does not exist, the clocks go forward to 2026-03-29 03:00", None],
        ),
        ("2026-03-29", {"cron": "30 */2 * * *"}, [None, None]),
        ("2026-10-25", {"cron": "30 2 * * *"}, ["happens twice: only the first runs", None]),
        (
            "2026-10-25",
            {"cron": "30 2 * * *", "dst_fold": "twice"},
            ["the first of two", "the second of two: the clocks have gone back to 2026-10-25 02:00"],
        ),
        ("2026-10-25", {"cron": "0 1-2 * * *"}, [None, "happens twice: only the first runs"]),
    ],
)
def test_a_preview_tells_what_the_clocks_did(day, options, expected):
    assert notes("Europe/Berlin", day, **options) == expected


def test_an_interval_needs_no_note():
    rule = make_rule("schedule s", every="1h", timezone="Europe/Berlin")
    assert note(rule, at("2026-03-29T01:00")) is None
