from datetime import UTC, datetime

import pytest

from drumline.web.dashboard.plot import draw_bars, draw_lines, draw_spark

START = datetime(2026, 5, 5, 14, 0, tzinfo=UTC)


def test_bars_stand_on_each_other_within_the_picture():
    plot = draw_bars([START], [3], [1], "ended")
    (bar,) = plot.bars
    assert bar.failed_y >= 0
    assert bar.failed_y + bar.failed_height == pytest.approx(bar.done_y)
    assert bar.done_y + bar.done_height == pytest.approx(160)
    assert plot.data == f"[[{int(START.timestamp())}],[3],[1]]"


def test_a_chart_without_anything_says_so():
    assert draw_bars([START], [0], [0], "ended").is_empty
    assert draw_lines([START], [None], [None], "waits").is_empty


def test_a_sparkline_of_nothing_is_flat():
    assert draw_spark([0, 0]) == "0.0,26.0 220.0,26.0"
