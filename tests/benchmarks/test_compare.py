import pytest

from benchmarks.peers.compare import (
    DRAIN,
    MEASURES,
    find_best,
    find_gain,
    find_ratio,
    lay_out,
    make_figures,
    make_gains,
    make_rows,
    show_figures,
)

BY_NAME = {measure.name: measure for measure in MEASURES}
BULK, P50 = BY_NAME["bulk"], BY_NAME["pick-up p50"]


def test_a_cell_is_the_median_with_the_least_and_the_most():
    assert show_figures([{"drain": 900.0}, {"drain": 12_345.6}, {"drain": 1000.0}], DRAIN) == "1,000 [900..12,346]"


def test_a_cell_of_one_round_is_its_figure():
    assert show_figures([{"pick-up p50": 1.25}], P50) == "1.2"


def test_a_measure_that_a_system_does_not_have_is_a_dash():
    assert show_figures([{"drain": 1.0}], BULK) == "–"
    assert find_ratio([{"bulk": 1.0}], [{"drain": 1.0}], BULK) is None


def test_there_is_no_ratio_to_nothing():
    assert find_ratio([{"drain": 1.0}], [{"drain": 0.0}], DRAIN) is None


def test_a_ratio_is_the_median_of_the_ratios_of_each_round():
    # By the medians of each side it would be 2; a slow round, which met both, must not count so.
    ours = [{"drain": 100.0}, {"drain": 40.0}, {"drain": 300.0}]
    theirs = [{"drain": 25.0}, {"drain": 50.0}, {"drain": 75.0}]
    assert find_ratio(ours, theirs, DRAIN) == 4.0


def test_a_gain_is_the_median_of_one_measure_by_another_in_each_round():
    rounds = [{"bulk": 10.0, "drain": 1.0}, {"bulk": 6.0, "drain": 2.0}, {"bulk": 90.0, "drain": 3.0}]
    assert find_gain(rounds, "bulk", "drain") == 10.0


def test_there_is_no_gain_without_both_measures():
    assert find_gain([{"bulk": 10.0}], "bulk", "drain") is None


def test_rounds_that_do_not_pair_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        find_ratio([{"drain": 1.0}, {"drain": 1.0}], [{"drain": 1.0}], DRAIN)


def test_the_best_peer_has_the_highest_rate_and_the_least_wait():
    found = {"slow": [{"drain": 10.0, "pick-up p50": 1.0}], "late": [{"drain": 20.0, "pick-up p50": 9.0}]}
    assert find_best(found, ["slow", "late"], DRAIN) == "late"
    assert find_best(found, ["slow", "late"], P50) == "slow"
    assert find_best(found, ["slow", "late"], BULK) is None


def test_the_table_compares_ours_with_the_best_peer_and_with_each():
    found = {"ours": [{"drain": 30.0}], "a": [{"drain": 2.0}], "b": [{"drain": 20.0}]}
    column = [row[1] for row in make_rows(found, "ours", {}, ["a", "b"])]
    assert column == ["drain, jobs/s", "30", "2", "20", "1.50 (b)", "15", "1.50"]


def test_the_table_compares_each_setting_of_ours_with_the_bare_loop_of_the_same_setting():
    found = {"ours": [{"drain": 30.0}], "ours, normal": [{"drain": 40.0}], "bare": [{"drain": 50.0}]}
    *_, last = make_rows(found, "ours", {"bare": "ours, normal"}, [])
    assert last == ["ours, normal ÷ bare", "0.80"]


def test_the_figures_of_some_systems_are_a_table_of_their_own():
    found = {"ours": [{"drain": 30.0, "bulk": 1.0}], "a": [{"drain": 2.0}]}
    assert make_figures(found, ["ours"], [BULK, DRAIN]) == [["", "bulk, jobs/s", "drain, jobs/s"], ["ours", "1", "30"]]


def test_a_measure_that_nobody_has_is_no_column():
    found = {"ours": [{"drain": 30.0}], "a": [{"bulk": 2.0}]}
    assert make_figures(found, ["ours"], [BULK, DRAIN])[0] == ["", "drain, jobs/s"]
    assert make_gains(found, ["ours"]) == [[""], ["ours"]]


def test_what_more_jobs_in_waiting_cost_is_told_beside_what_few_cost():
    found = {"ours": [{"1,000 waiting": 40.0, "1,000,000 waiting": 50.0}]}
    assert make_gains(found, ["ours"]) == [["", "1,000,000 waiting ÷ 1,000 waiting"], ["ours", "1.25"]]


def test_a_table_is_markdown_with_columns_of_one_width():
    assert lay_out([["", "a"], ["long", "1"]]) == "|      | a |\n|------|---|\n| long | 1 |"
