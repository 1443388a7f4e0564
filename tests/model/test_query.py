from datetime import UTC, datetime

import pytest

from drumline.errors import BadOption
from drumline.model.query import HISTOGRAM_MILLIS, Count, Counts, JobFilter, SeriesPoint, Tally, histogram_bucket

ROWS = [
    Count(queue="a", task="x", ready=1, delayed=2, running=3, done=4, dead=5, cancelled=6),
    Count(queue="a", task="y", ready=10),
    Count(queue="b", task="x", running=100, done=200),
]


def test_a_span_falls_into_the_first_bucket_that_is_not_shorter():
    assert [histogram_bucket(end) for end in HISTOGRAM_MILLIS] == list(range(len(HISTOGRAM_MILLIS)))
    assert histogram_bucket(-5) == histogram_bucket(0) == 0
    assert histogram_bucket(3) == HISTOGRAM_MILLIS.index(5)
    assert histogram_bucket(HISTOGRAM_MILLIS[-1] + 1) == len(HISTOGRAM_MILLIS)


@pytest.mark.parametrize("where", [JobFilter(ids=()), JobFilter(task=""), JobFilter(meta={"a": None})])
def test_a_filter_that_names_something_is_not_empty(where):
    assert not where.is_empty
    assert JobFilter().is_empty
    assert JobFilter(states=frozenset(), meta={}).is_empty


@pytest.mark.parametrize(
    ("where", "is_shown"),
    [
        (JobFilter(), False),
        (JobFilter(task="x"), False),
        (JobFilter(queue="@web-1"), True),
        (JobFilter(ids=("a",)), True),
        (JobFilter(schedule="warm"), True),
    ],
)
def test_a_private_queue_is_shown_only_where_something_of_it_is_named(where, is_shown):
    assert where.shows("@web-1") is is_shown
    assert where.shows("mail")


def test_a_private_queue_counts_in_all_and_by_task_but_is_not_told():
    counts = Counts([*ROWS, Count(queue="@web-1", task="x", ready=7)])
    assert (set(counts.by_queue), counts.ready, counts.by_task["x"].ready) == ({"a", "b"}, 18, 8)


def test_a_series_point_has_a_bucket_for_every_span():
    point = SeriesPoint(minute=datetime(2026, 1, 1, tzinfo=UTC), queue="a", task="x")
    assert len(point.wait) == len(point.run) == histogram_bucket(10**12) + 1


def test_counts_are_told_row_by_row_in_all_by_queue_and_by_task():
    counts = Counts(ROWS)
    assert list(counts) == ROWS
    assert counts.total == Tally(ready=11, delayed=2, running=103, done=204, dead=5, cancelled=6)
    assert counts.by_queue == {
        "a": Tally(ready=11, delayed=2, running=3, done=4, dead=5, cancelled=6),
        "b": Tally(running=100, done=200),
    }
    assert counts.by_task == {
        "x": Tally(ready=1, delayed=2, running=103, done=204, dead=5, cancelled=6),
        "y": Tally(ready=10),
    }


@pytest.mark.parametrize(
    ("state", "number"),
    [
        ("ready", 11),
        ("delayed", 2),
        ("running", 103),
        ("done", 204),
        ("dead", 5),
        ("cancelled", 6),
        ("unfinished", 116),
    ],
)
def test_counts_tell_each_state_in_all(state, number):
    assert getattr(Counts(ROWS), state) == number


def test_no_rows_count_as_nothing():
    counts = Counts([])
    assert (counts.total, counts.by_queue, counts.by_task, counts.unfinished) == (Tally(), {}, {}, 0)


@pytest.mark.parametrize(
    "meta", [{"a": 1.5}, {"a": []}, {"a": {}}, {"a": 2**63}, {1: 2}, {1: "a"}, {"a": "\0"}, {"\0": 1}]
)
def test_a_filter_by_metadata_that_stores_would_compare_differently_is_refused(meta):
    with pytest.raises(BadOption, match="meta must be an object of texts without NUL, whole numbers of 64 bits"):
        JobFilter(meta=meta)


def test_a_filter_by_plain_metadata_stands():
    meta = {"text": "a", "number": 2**63 - 1, "flag": True, "none": None}
    assert JobFilter(meta=meta).meta == meta
