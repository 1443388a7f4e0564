from typing import Any

from benchmarks.peers.page import make_chart, make_page, name_chart, show

FACTS = {"versions": {"thing": "1.2"}, "settings": "quick", "keeps": "nothing", "beside": "drumline", "jobs": 5000}
FIGURES = {"one by one": 1.0, "100 callers": 30.0, "1,000 waiting": 40.0, "1,000,000 waiting": 50.0}
RESULT: dict[str, Any] = {
    "store": "redis",
    "title": "Valkey",
    "date": "2026-11-16 10:00 UTC",
    "machine": "2 cores",
    "command": "make bench",
    "rounds": 1,
    "systems": {
        "drumline": {**FACTS, "kind": "ours"},
        "bare": {**FACTS, "kind": "bare"},
        "arq": {**FACTS, "kind": "peer"},
    },
    "left_out": {"rq": "not installed"},
    "found": {"drumline": [{**FIGURES, "drain": 300.0}], "bare": [{"drain": 600.0}], "arq": [{"drain": 30.0}]},
}


def read_column(table: str, title: str) -> dict[str, str]:
    """The cells under a title, by the name of their row."""
    titles, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    return {row[0]: row[titles.index(title)] for row in rows}


def test_all_systems_stand_in_one_table_with_ratios_to_the_bare_loop_and_the_best_peer():
    everybody, _, _ = show(RESULT).split("\n\n")
    assert read_column(everybody, "drain, jobs/s") == {
        "drumline": "300",
        "bare": "600",
        "arq": "30",
        "drumline ÷ best peer": "10 (arq)",
        "drumline ÷ bare": "0.50",
        "drumline ÷ arq": "10",
    }


def test_what_only_ours_is_asked_stands_apart():
    _, ours, gains = show(RESULT).split("\n\n")
    assert read_column(ours, "1,000 waiting, µs/job") == {"drumline": "40.0"}
    assert read_column(gains, "100 callers ÷ one by one") == {"drumline": "30"}


def test_a_table_of_what_was_not_measured_is_left_out():
    drained = {**RESULT, "found": {name: [{"drain": 1.0}] for name in RESULT["found"]}}
    assert "\n\n" not in show(drained)


def test_the_page_tells_of_each_store_when_how_and_with_what_it_was_measured():
    page = make_page([RESULT])
    for told in (
        "## Valkey",
        "2026-11-16 10:00 UTC, 2 cores",
        "$ make bench",
        "thing 1.2",
        "Left out: rq: not installed",
    ):
        assert told in page
    assert f"(pictures/{name_chart(RESULT)})" in page


def test_a_page_without_results_says_so():
    assert make_page([]).endswith("No results of a full run are kept here yet.\n")


def test_the_chart_of_a_store_shows_how_fast_every_system_drains():
    chart = make_chart(RESULT)
    assert [name in chart for name in (">drumline<", ">bare<", ">arq<", ">600<", ">300<", ">30<")] == [True] * 6
