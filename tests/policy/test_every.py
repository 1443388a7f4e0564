from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from drumline.policy.every import Every
from drumline.policy.rule import make_rule, shown_key, times

STEPS = st.integers(1, 10**9)
INSTANTS = st.integers(-(10**13), 10**13)


@given(STEPS, INSTANTS, INSTANTS)
def test_the_next_instant_is_the_first_on_the_grid_after(step, anchor, instant):
    found = Every(step, anchor).after(instant)
    assert (found - anchor) % step == 0
    assert found - step <= instant < found


@given(st.integers(1, 50), st.integers(-100, 100), st.integers(-200, 200), st.integers(-200, 200))
def test_counting_and_listing_agree_with_walking(step, anchor, after, until):
    walked = [instant for instant in range(after + 1, until + 1) if (instant - anchor) % step == 0]
    every = Every(step, anchor)
    assert list(every.between(after, until)) == walked
    assert every.count(after, until) == len(walked)


def test_a_thousand_ticks_do_not_drift():
    yields = times(make_rule("schedule s", every="333ms"))
    ticks = [datetime(2026, 5, 5, 14, 0, tzinfo=UTC)]
    for _ in range(1001):
        following = yields.after(ticks[-1])
        assert following is not None
        ticks.append(following)
    assert ticks[-1] - ticks[1] == timedelta(seconds=333)


def test_whoever_asks_when_gets_the_same_instants():
    yields = times(make_rule("schedule s", every="10s"))
    asked = [datetime(2026, 5, 5, 14, 0, 0, 1000 * offset, tzinfo=UTC) for offset in (0, 1, 500, 999)]
    assert {yields.after(instant) for instant in asked} == {datetime(2026, 5, 5, 14, 0, 10, tzinfo=UTC)}


def test_all_instants_within_one_step_show_the_same_bucket():
    rule = make_rule("schedule tick", every="10s")
    shown = {shown_key("tick", rule, datetime(2026, 5, 5, 14, 0, second, tzinfo=UTC)) for second in range(10)}
    assert shown == {"tick:177798960"}
    assert shown_key("tick", rule, datetime(2026, 5, 5, 14, 0, 10, tzinfo=UTC)) == "tick:177798961"
