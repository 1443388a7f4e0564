"""Cron in a zone equals a walk through real time, around changes of the clocks and elsewhere."""

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from drumline.errors import BadOption
from drumline.policy.rule import Times, make_rule, times
from tests.support.walking import LAST, Written, list_changes, look, walk

ZONES = [
    *(
        "Europe/Berlin",
        "America/New_York",
        "America/Sao_Paulo",
        "America/Havana",
        "Australia/Lord_Howe",
        "Pacific/Apia",
    ),
    *("Europe/Dublin", "Africa/Casablanca", "Antarctica/Troll", "Asia/Gaza", "America/Caracas", "Asia/Tokyo"),
]
HOUR = 3600
RULES = st.fixed_dictionaries(
    {"dst_gap": st.sampled_from(["run_after", "skip"]), "dst_fold": st.sampled_from(["once", "twice"])}
)


@st.composite
def fields(draw: st.DrawFn, low: int, high: int, most: int = 59) -> tuple[str, frozenset[int]]:
    """A field's text, and the numbers it means; those that it names are at most `most`."""
    everything = range(low, high + 1)
    numbers = st.integers(low, min(high, most))
    one, other = sorted(draw(st.tuples(numbers, numbers)))
    step = draw(st.integers(2, 9))
    return draw(
        st.sampled_from(
            [
                ("*", frozenset(everything)),
                (f"*/{step}", frozenset(everything[::step])),
                (f"{one}", frozenset({one})),
                (f"{one},{other}", frozenset({one, other})),
                (f"{one}-{other}", frozenset(range(one, other + 1))),
                (f"{one}/{step}", frozenset(range(one, high + 1, step))),
            ]
        )
    )


DAYS = st.one_of(
    st.just(("*", frozenset(range(1, 32)))),
    st.just(("L", frozenset({LAST}))),
    fields(1, 31),
)
ANY_WEEKDAY = frozenset((day, 0) for day in range(7))
WEEKDAYS = st.one_of(
    st.just(("*", ANY_WEEKDAY)),
    st.just(("sat-7", frozenset({(6, 0), (0, 0)}))),
    st.just(("MON-FRI", frozenset((day, 0) for day in range(1, 6)))),
    st.integers(0, 7).map(lambda day: (f"{day}", frozenset({(day % 7, 0)}))),
    st.integers(0, 7).map(lambda day: (f"{day}L", frozenset({(day % 7, LAST)}))),
    st.tuples(st.integers(0, 7), st.integers(1, 5)).map(
        lambda two: (f"{two[0]}#{two[1]}", frozenset({(two[0] % 7, two[1])}))
    ),
)
MONTHS = st.one_of(st.just(("*", frozenset(range(1, 13)))), fields(1, 12))
# Few hours lie near a change of the clocks: those of the night come more often.
HOURS = st.one_of(fields(0, 23), fields(0, 23, most=4))


@st.composite
def expressions(draw: st.DrawFn, seconds: st.SearchStrategy[tuple[str, frozenset[int]]]) -> Written:
    second, minute, hour = draw(seconds), draw(fields(0, 59)), draw(HOURS)
    day, month, weekday = draw(DAYS), draw(MONTHS), draw(WEEKDAYS)
    return Written(
        " ".join(field[0] for field in (second, minute, hour, day, month, weekday)).strip(),
        *(second[1], minute[1], hour[1]),
        names_hours=not hour[0].startswith("*"),
        days=day[1],
        weekdays=weekday[1],
        needs_both=day[0].startswith("*") or weekday[0].startswith("*"),
        months=month[1],
    )


WITHOUT_SECONDS = expressions(st.just(("", frozenset({0}))))
WITH_SECONDS = expressions(fields(0, 59))


@st.composite
def places(draw: st.DrawFn, hours: int) -> tuple[ZoneInfo, int, int]:
    """A zone, and a time of some hours in it: around a change of its clocks if it has any."""
    zone = ZoneInfo(draw(st.sampled_from(ZONES)))
    middle = draw(st.sampled_from([change for change, _, _ in list_changes(zone)] or [1_774_746_000]))
    first = middle - draw(st.integers(0, hours * 60)) * 60
    return zone, first, first + hours * HOUR


def read(written: Written, zone: ZoneInfo, rules: dict[str, str]) -> Times:
    try:
        return times(make_rule("schedule s", cron=written.text, timezone=zone.key, **rules))
    except BadOption as error:
        # Names a day like the 31st of April, or the first of a month as its fifth Monday.
        assume("a day which exists" not in str(error))
        raise


def at(instant: int) -> datetime:
    return datetime.fromtimestamp(instant, UTC)


def check(yields: Times, expected: list[int], first: int, last: int) -> None:
    """All ways of asking give what the walk has found."""
    wanted = [at(instant) for instant in expected]
    assert list(yields.between(at(first - 1), at(last))) == wanted
    assert yields.count(at(first - 1), at(last)) == len(wanted)
    assert yields.newest(at(first - 1), at(last), 7) == wanted[-7:]
    for earlier, later in pairwise([at(first - 1), *wanted[:20]]):
        assert yields.after(earlier) == later


@settings(deadline=None)
@given(WITHOUT_SECONDS, places(hours=36), RULES)
def test_five_fields_equal_a_walk_from_minute_to_minute(written, place, rules):
    zone, first, last = place
    check(read(written, zone, rules), walk(written, look(zone, first, last, 60), **rules), first, last)


@settings(deadline=None)
@given(WITH_SECONDS, places(hours=2), RULES)
def test_six_fields_equal_a_walk_from_second_to_second(written, place, rules):
    zone, first, last = place
    check(read(written, zone, rules), walk(written, look(zone, first, last, 1), **rules), first, last)


@settings(deadline=None)
@given(WITHOUT_SECONDS, places(hours=4), RULES, st.integers(0, 4 * HOUR * 1000))
def test_a_time_is_never_at_or_before_the_one_given(written, place, rules, offset):
    zone, first, _ = place
    given = datetime.fromtimestamp(first + offset // 1000, UTC).replace(microsecond=offset % 1000 * 1000)
    found = read(written, zone, rules).after(given)
    assert found is not None
    assert found > given
    assert found.microsecond == 0


def write(
    text: str, minutes: range, hours: range, second: int = 0, weekdays: frozenset[tuple[int, int]] = ANY_WEEKDAY
) -> Written:
    return Written(
        text,
        *({second}, minutes, hours),
        names_hours=not text.split()[-4].startswith("*"),
        days=frozenset(range(1, 32)),
        weekdays=weekdays,
        needs_both=True,
    )


def only(number: int) -> range:
    return range(number, number + 1)


DEFAULT = {"dst_gap": "run_after", "dst_fold": "once"}
OTHER = {"dst_gap": "skip", "dst_fold": "twice"}
TWELVE = [
    (write("30 2 * * *", only(30), only(2)), DEFAULT),
    (write("30 2 * * *", only(30), only(2)), OTHER),
    (write("0 0 * * *", only(0), only(0)), DEFAULT),
    (write("*/15 0-4 * * *", range(0, 60, 15), range(5)), DEFAULT),
    (write("*/15 0-4 * * *", range(0, 60, 15), range(5)), OTHER),
    (write("*/10 * * * *", range(0, 60, 10), range(24)), DEFAULT),
    (write("0 * * * *", only(0), range(24)), DEFAULT),
    (write("30 */2 * * *", only(30), range(0, 24, 2)), DEFAULT),
    (write("20 */30 1-3 * * *", range(0, 60, 30), range(1, 4), second=20), DEFAULT),
    (write("5 10 * * * *", only(10), range(24), second=5), DEFAULT),
    (write("0 0-23 * * *", only(0), range(24)), {"dst_gap": "run_after", "dst_fold": "twice"}),
    (write("45 23 * * SAT", only(45), only(23), weekdays=frozenset({(6, 0)})), {"dst_gap": "skip", "dst_fold": "once"}),
]


def list_histories() -> list[ZoneInfo]:
    """One zone for each history of changes."""
    zones = [ZoneInfo(name) for name in sorted(available_timezones() - {"localtime", "posixrules"})]
    return list({list_changes(zone): zone for zone in zones}.values())


# About two minutes on one core.
@pytest.mark.prove
@pytest.mark.timeout(1800)
def test_twelve_expressions_equal_a_walk_around_every_change_of_every_zone():
    checked = 0
    for zone in list_histories():
        yielded = [(written, rules, read(written, zone, rules)) for written, rules in TWELVE]
        for change, _, _ in list_changes(zone):
            first, last = change - 6 * HOUR, change + 6 * HOUR
            moments = look(zone, first, last, 60)
            for written, rules, yields in yielded:
                check(yields, walk(written, moments, **rules), first, last)
                checked += 1
    assert checked > 100_000
