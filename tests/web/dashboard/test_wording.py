from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from drumline.web.dashboard.wording import count, cut, join, per_cent, plural, relative, span, wall

NOW = datetime(2026, 5, 5, 14, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 ms"),
        (0.0312, "31 ms"),
        (0.9996, "1.0 s"),
        (0.9, "900 ms"),
        (3.14, "3.1 s"),
        (9.99, "10 s"),
        (38, "38 s"),
        (99.6, "2 min"),
        (240, "4 min"),
        (5400, "90 min"),
        (6000, "1.7 h"),
        (8 * 3600, "8 h"),
        (36 * 3600, "36 h"),
        (3 * 86400, "3 days"),
        (-38, "38 s"),
    ],
)
def test_a_span_is_told_in_one_number_and_one_unit(seconds, words):
    assert span(timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "now"), (4, "in 4 s"), (3.6, "in 4 s"), (-7, "7 s ago"), (-8 * 3600, "8 h ago")]
)
def test_an_instant_is_told_from_where_the_reader_stands(seconds, words):
    assert relative(NOW + timedelta(seconds=seconds), NOW) == words


@pytest.mark.parametrize(
    ("instant", "words"),
    [
        (NOW + timedelta(seconds=10), "14:10:10"),
        (NOW + timedelta(minutes=5), "14:15"),
        (NOW + timedelta(days=1), "tomorrow 14:10"),
        (NOW - timedelta(days=1), "yesterday 14:10"),
        (NOW + timedelta(days=3), "Fri 14:10"),
        (NOW - timedelta(days=3), "2 May 14:10"),
        (NOW + timedelta(days=300), "1 Mar 2027 14:10"),
    ],
)
def test_a_wall_names_the_day_unless_it_is_today(instant, words):
    assert wall(instant, NOW) == words


def test_a_wall_is_that_of_the_zone():
    assert wall(NOW, NOW, ZoneInfo("America/New_York")) == "10:10"


def test_numbers_have_commas_and_their_word_its_form():
    assert count(1284) == "1,284"
    assert [plural(number, "job") for number in (0, 1, 1200)] == ["0 jobs", "1 job", "1,200 jobs"]
    assert plural(2, "more", "more") == "2 more"


@pytest.mark.parametrize(
    ("part", "whole", "shown"), [(0, 0, "0"), (0, 9, "0"), (7, 1000, "0.7"), (1, 10**6, "0.1"), (1, 3, "33")]
)
def test_a_small_share_is_not_rounded_to_nothing(part, whole, shown):
    assert per_cent(part, whole) == shown


def test_what_is_cut_says_so():
    assert cut("snare", 5) == "snare"
    assert cut("snares", 5) == "snar…"


def test_lists_are_joined_as_people_do():
    assert join(["a"]) == "a"
    assert join(["a", "b", "c"]) == "a, b and c"
