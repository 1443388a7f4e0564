from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from drumline.errors import BadOption
from drumline.model.schedule import DstFold, DstGap, Rule
from drumline.policy.rule import check_rule, describe, has_idle_zone, make_rule, shown_key, times

NOON = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)
NAIVE = NOON.replace(tzinfo=None)
SECOND = timedelta(seconds=1)


def rule(**options: Any) -> Rule:
    return make_rule("schedule nightly", **options)


def list_next(given: Rule, count: int = 5, after: datetime = NOON) -> list[datetime]:
    found: list[datetime] = []
    while len(found) < count and (instant := times(given).after(found[-1] if found else after)) is not None:
        found.append(instant)
    return found


@pytest.mark.parametrize(
    ("every", "span"),
    [
        (10, timedelta(seconds=10)),
        (0.25, timedelta(milliseconds=250)),
        ("500ms", timedelta(milliseconds=500)),
        ("1h30m", timedelta(minutes=90)),
        ("PT90M", timedelta(minutes=90)),
        (timedelta(hours=12), timedelta(hours=12)),
    ],
)
def test_an_interval_may_be_given_in_every_form_of_a_duration(every, span):
    assert rule(every=every) == Rule(every=span)
    assert list_next(rule(every=every)) == [NOON + span * k for k in range(1, 6)]


def test_seven_days_are_thursdays_at_midnight_in_utc():
    assert list_next(rule(every="7d"), 2) == [datetime(2026, 5, 7, tzinfo=UTC), datetime(2026, 5, 14, tzinfo=UTC)]


def test_the_start_is_the_anchor_of_an_interval_and_its_first_instant():
    start = NOON + timedelta(milliseconds=1234)
    assert list_next(rule(every="10s", start=start), 3) == [start, start + 10 * SECOND, start + 20 * SECOND]
    assert list_next(rule(every="10s", start=start), 1, start + SECOND) == [start + 10 * SECOND]


def test_the_end_may_be_an_instant_itself():
    given = rule(every="10s", end=NOON + 20 * SECOND)
    assert list_next(given) == [NOON + 10 * SECOND, NOON + 20 * SECOND]
    assert times(given).after(NOON + 20 * SECOND) is None


def test_a_cron_rule_yields_from_its_start_to_its_end():
    given = rule(cron="0 * * * *", start=NOON + timedelta(hours=2), end=NOON + timedelta(hours=3, minutes=59))
    expected = [NOON + timedelta(hours=2), NOON + timedelta(hours=3)]
    assert list_next(given) == expected
    wide = (NOON - timedelta(days=9), NOON + timedelta(days=9))
    assert list(times(given).between(*wide)) == expected
    assert times(given).count(*wide) == 2
    assert times(given).newest(*wide, 1) == expected[-1:]


def test_start_and_end_may_be_given_in_any_zone_or_as_text():
    east = timezone(timedelta(hours=2))
    given = rule(every=10, start=NOON.astimezone(east), end="2026-05-05T15:00:00+02:00")
    assert given == rule(every=10, start=NOON, end=NOON + timedelta(hours=1))
    assert given.start is not None
    assert given.start.tzinfo is UTC


def test_nothing_lies_in_a_range_that_ends_before_it_begins():
    for given in (rule(every=10), rule(cron="* * * * *")):
        assert list(times(given).between(NOON, NOON - 60 * SECOND)) == []
        assert times(given).count(NOON, NOON - 60 * SECOND) == 0
        assert times(given).newest(NOON, NOON - 60 * SECOND, 5) == []


def test_rules_end_before_the_years_do():
    late = datetime(9998, 12, 30, 23, 59, 50, tzinfo=UTC)
    assert list_next(rule(every="30s"), 5, late) == [datetime(9998, 12, 31, tzinfo=UTC)]
    assert list_next(rule(cron="59 23 31 12 *"), 5, late) == []
    assert list_next(rule(cron="0 0 29 2 *"), 5, late) == []
    assert list_next(rule(cron="* * * * *"), 5, datetime(9999, 6, 1, tzinfo=UTC)) == []
    assert times(rule(cron="0 0 * * *")).count(late, datetime(9999, 6, 1, tzinfo=UTC)) == 1


@pytest.mark.parametrize("options", [{"every": "7s"}, {"cron": "*/7 * * * * *", "timezone": "America/New_York"}])
@pytest.mark.parametrize("limit", [1, 2, 999])
def test_the_newest_are_the_last_of_all(options, limit):
    given = times(rule(**options))
    span = (NOON - timedelta(hours=5), NOON + timedelta(milliseconds=500))
    assert given.newest(*span, limit) == list(given.between(*span))[-limit:]


def test_a_month_of_seconds_is_counted_in_no_time():
    given = times(rule(cron="* * * * * *", timezone="America/New_York"))
    away = (NOON - timedelta(days=30), NOON)
    assert given.count(*away) == 30 * 86_400
    assert given.newest(*away, 3) == [NOON - 2 * SECOND, NOON - SECOND, NOON]


ERRORS = [
    ({}, "rule must be given as either every= or cron=, got 'neither'"),
    ({"every": 1, "cron": "@daily"}, "rule must be given as either every= or cron=, got 'both'"),
    ({"every": 0}, "every must be a duration of 1 ms or more, got 0"),
    ({"every": "999us"}, "every must be a duration of 1 ms or more, got '999us'"),
    ({"every": timedelta(seconds=-1)}, "zero or more, got datetime.timedelta(days=-1, seconds=86399)"),
    ({"every": "soon"}, "every must be a duration (seconds"),
    ({"every": True}, "every must be a duration (seconds"),
    ({"cron": 5}, "cron must be a text, such as '0 9 * * *', got 5"),
    (
        {"cron": "@daily", "timezone": "Europe/Berln"},
        "timezone must be an IANA time zone (did you mean Europe/Berlin?)",
    ),
    ({"every": 1, "timezone": "Nowhere"}, "timezone must be an IANA time zone"),
    ({"cron": "@daily", "timezone": UTC}, "timezone must be the name of an IANA time zone, such as Europe/Berlin"),
    ({"every": 1, "start": NAIVE}, "start must be an instant with a time zone (an aware datetime)"),
    ({"every": 1, "end": NAIVE}, "end must be an instant with a time zone (an aware datetime)"),
    (
        {"every": 1, "end": datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))},
        "end must be an instant of the years 1 to 9999, in UTC",
    ),
    ({"every": 1, "start": NOON, "end": NOON - SECOND}, "end must be later than start, 2026-05-05T12:00:00+00:00"),
    (
        {"cron": "@daily", "start": NOON, "end": NOON + SECOND},
        "end must be so late that the rule yields an instant from start, 2026-05-05T12:00:00+00:00, on",
    ),
    ({"every": 1, "jitter": -1}, "jitter must be a duration"),
    ({"cron": "@daily", "dst_gap": "run"}, 'dst_gap must be "run_after" or "skip", got \'run\''),
    ({"cron": "@daily", "dst_fold": 2}, 'dst_fold must be "once" or "twice", got 2'),
    ({"every": 1, "dst_gap": "skip"}, "dst_gap must be left out with every=, which counts real time, got 'skip'"),
    ({"every": 1, "dst_fold": "twice"}, "dst_fold must be left out with every=, which counts real time, got 'twice'"),
]


@pytest.mark.parametrize(("options", "message"), ERRORS)
def test_a_bad_option_is_refused_by_name(options, message):
    with pytest.raises(BadOption) as caught:
        rule(**options)
    assert str(caught.value).startswith("schedule nightly: ")
    assert message in str(caught.value)


def test_all_options_reach_the_rule():
    given = rule(cron="  0 9\t* * * ", timezone="Europe/Berlin", jitter="30s", dst_gap="skip", dst_fold=DstFold.TWICE)
    assert given == Rule(
        cron="0 9 * * *",
        timezone="Europe/Berlin",
        jitter=timedelta(seconds=30),
        dst_gap=DstGap.SKIP,
        dst_fold=DstFold.TWICE,
    )


@pytest.mark.parametrize("options", [{"every": "10s", "start": NOON}, {"cron": "@daily", "dst_gap": "skip"}])
def test_a_rule_that_was_made_passes_the_check(options):
    assert check_rule("schedule s", rule(**options)) == rule(**options)


@pytest.mark.parametrize(
    "broken", [Rule(), Rule(every=timedelta()), Rule(cron="0 0 30 2 *"), Rule(cron="@daily", timezone="X")]
)
def test_a_rule_made_by_hand_is_checked_alike(broken):
    with pytest.raises(BadOption, match=r"^schedule s: "):
        check_rule("schedule s", broken)


def test_a_stored_rule_of_an_unknown_zone_cannot_be_read():
    with pytest.raises(BadOption, match="timezone"):
        times(Rule(cron="@daily", timezone="Mars/Base"))


def test_a_rule_is_read_once():
    assert times(rule(every="10s")) is times(msgspec.convert(msgspec.to_builtins(rule(every="10s")), Rule))


@pytest.mark.parametrize(
    ("options", "idle"),
    [
        ({"every": 1}, False),
        ({"every": 1, "timezone": "UTC"}, False),
        ({"every": 1, "timezone": "Europe/Berlin"}, True),
        ({"cron": "@daily", "timezone": "Europe/Berlin"}, False),
    ],
)
def test_a_zone_beside_an_interval_is_idle(options, idle):
    assert has_idle_zone(rule(**options)) is idle


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"every": 10}, "every 10s"),
        ({"every": "90m", "timezone": "Europe/Berlin"}, "every 1h30m"),
        ({"cron": "0 9 * * *", "timezone": "America/New_York"}, "cron 0 9 * * * America/New_York"),
        ({"cron": "@daily"}, "cron @daily"),
    ],
)
def test_a_rule_is_told_in_a_few_words(options, text):
    assert describe(rule(**options)) == text


def test_a_cron_tick_shows_its_unix_second():
    assert shown_key("nightly", rule(cron="@daily"), NOON) == "nightly:1777982400"
