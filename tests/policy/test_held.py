import msgspec
import pytest

from drumline.model.schedule import Decision, Rule
from drumline.policy.held import Span, count_instants, count_paused, read_history, silence, subtract
from tests.policy.ledger import SEVEN, TEN, after, changed, fired, orphaned, paused, row, status


def span(first: float, last: float) -> Span:
    return Span(after(first), after(last))


@pytest.mark.parametrize(
    ("holes", "left"),
    [
        ([], [span(0, 10)]),
        ([span(2, 4)], [span(0, 2), span(4, 10)]),
        ([span(-5, 3), span(8, 20)], [span(3, 8)]),
        ([span(2, 6), span(3, 4), span(5, 7)], [span(0, 2), span(7, 10)]),
        ([span(-1, 11)], []),
        ([span(5, 5)], [span(0, 5), span(5, 10)]),
        ([span(10, 12), span(-3, 0)], [span(0, 10)]),
    ],
)
def test_holes_are_taken_out_of_a_span(holes, left):
    assert list(subtract(span(0, 10), holes)) == left


def test_a_pause_counts_the_instants_of_the_rules_that_held_in_it():
    rows = [changed(0), paused(5, 60), changed(22, SEVEN, 2), *fired(63)]
    history = read_history(rows, status(63, rule=SEVEN))
    # 10 and 20 of the first rule; 28, 35, 42, 49 and 56 of the second.
    assert count_instants(history, span(5, 60), after(100)) == 7


def test_an_orphaning_that_lasts_counts_up_to_now():
    rows = [changed(0), *fired(10), orphaned(10)]
    told = silence(rows[-1], rows[:1])
    assert told is not None
    assert count_instants(read_history(rows, status(10)), told, after(45)) == 3


def test_a_time_before_the_ledger_begins_cannot_be_counted():
    assert count_instants(read_history(fired(1000), status(1000)), span(5, 60), after(1100)) is None
    assert count_instants(read_history([], None), span(5, 60), after(100)) is None


def test_a_tick_is_no_silence():
    assert silence(row(10, Decision.MISSED), ()) is None


def test_a_withdrawn_schedule_has_no_rule():
    history = read_history([changed(0), changed(30, None, 2)], None)
    assert [stretch.span for stretch in history.stretches] == [span(0, 30)]


def test_a_row_of_a_pause_tells_by_itself_how_many_instants_it_passed_over():
    row = msgspec.structs.replace(paused(12, 42), rule=TEN)
    assert count_paused(row) == 3
    assert count_paused(msgspec.structs.replace(row, rule=None)) is None


def test_a_pause_of_a_rule_that_cannot_be_worked_out_here_is_not_counted():
    row = msgspec.structs.replace(paused(12, 42), rule=Rule(cron="@daily", timezone="Mars/Olympus"))
    assert count_paused(row) is None


def test_rows_since_a_time_tell_of_the_rule_that_holds_since_before():
    history = read_history(fired(70, 80), status(80), after(60))
    assert history.known_after == after(60)
    assert [(stretch.rule, stretch.span.after) for stretch in history.stretches] == [(TEN, after(60))]


def test_rows_since_a_time_tell_of_the_rule_that_held_then_and_of_those_since():
    rows = [changed(50), *fired(60, 70), changed(75, SEVEN, 2)]
    history = read_history(rows, status(75, rule=SEVEN), after(65))
    assert (history.known_after, [stretch.rule for stretch in history.stretches]) == (after(65), [TEN, SEVEN])


def test_an_orphaned_schedule_is_silent_though_the_row_that_tells_so_is_too_old():
    history = read_history([], status(30, orphaned_at=after(45)), after(100))
    assert [hole.after for hole in history.silences] == [after(30)]
