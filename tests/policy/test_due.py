from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drumline.model.schedule import Decision, Misfire, Rule, Schedule
from drumline.policy.due import Due, due, jittered
from drumline.policy.rule import make_rule

NOON = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)
EVERY = {"every": "10s"}
FIRED, MISSED = Decision.FIRED, Decision.MISSED


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def schedule(rule: dict[str, Any] | None = None, **given: Any) -> Schedule:
    return Schedule(name="tick", task="tick", rule=make_rule("schedule tick", **(rule or EVERY)), **given)


def tell(found: Due) -> list[tuple[float, Decision]]:
    return [((ruling.instant - NOON).total_seconds(), ruling.decision) for ruling in found.rulings]


def test_nothing_is_due_before_the_next_instant():
    assert due(schedule(), NOON, after(9.999)) == Due((), after(10))


def test_an_instant_is_due_when_it_has_come():
    found = due(schedule(), NOON, after(10))
    assert tell(found) == [(10, FIRED)]
    assert found.rulings[0].reason == "on time"
    assert found.next == after(20)


@pytest.mark.parametrize("misfire", Misfire)
def test_less_than_the_grace_late_is_on_time_under_every_policy(misfire):
    assert tell(due(schedule(misfire=misfire), NOON, after(14.999))) == [(10, FIRED)]


@pytest.mark.parametrize(("misfire", "decision"), [("skip", MISSED), ("latest", FIRED), ("all", FIRED)])
def test_the_grace_itself_is_too_late(misfire, decision):
    found = due(schedule(misfire=Misfire(misfire)), NOON, after(15))
    assert tell(found) == [(10, decision)]
    assert found.rulings[0].reason == f"5s late; misfire={misfire}"


def test_every_instant_within_the_grace_fires():
    assert tell(due(schedule({"every": "1s"}), NOON, after(4.5))) == [(k, FIRED) for k in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("misfire", "decisions"),
    [("skip", [MISSED] * 5), ("latest", [MISSED] * 4 + [FIRED]), ("all", [FIRED] * 5)],
)
def test_a_fleet_that_was_away_for_five_ticks_follows_its_policy(misfire, decisions):
    found = due(schedule(misfire=Misfire(misfire)), NOON, after(57))
    assert tell(found) == list(zip((10, 20, 30, 40, 50), decisions, strict=True))
    assert found.next == after(60)


def test_the_newest_missed_one_does_not_fire_beside_one_that_is_on_time():
    found = due(schedule(misfire=Misfire.LATEST), NOON, after(31))
    assert tell(found) == [(10, MISSED), (20, MISSED), (30, FIRED)]
    assert found.rulings[1].reason == "11s late; misfire=latest, and a newer one fires"


@pytest.mark.parametrize(("misfire", "decision"), [("skip", MISSED), ("all", FIRED)])
def test_missed_ones_beside_one_that_is_on_time_follow_their_policy(misfire, decision):
    assert tell(due(schedule(misfire=Misfire(misfire)), NOON, after(31))) == [
        *((10, decision), (20, decision), (30, FIRED)),
    ]


def test_the_limit_lets_the_newest_through_oldest_first():
    found = due(schedule(misfire=Misfire.ALL, misfire_limit=2), NOON, after(57))
    assert tell(found) == [(10, MISSED), (20, MISSED), (30, MISSED), (40, FIRED), (50, FIRED)]
    assert found.rulings[2].reason == "27s late; misfire=all, but 2 newer ones reach misfire_limit"


def test_what_is_older_than_the_greatest_age_does_not_fire():
    found = due(schedule(misfire=Misfire.ALL, misfire_max_age=timedelta(seconds=27)), NOON, after(57))
    assert tell(found) == [(10, MISSED), (20, MISSED), (30, FIRED), (40, FIRED), (50, FIRED)]
    assert found.rulings[1].reason == "37s late; misfire=all, but older than misfire_max_age, 27s"


def test_age_and_limit_hold_together():
    given = schedule(misfire=Misfire.ALL, misfire_limit=2, misfire_max_age=timedelta(seconds=30))
    reasons = [ruling.reason.partition("; ")[2] for ruling in due(given, NOON, after(57)).rulings]
    assert reasons == [
        "misfire=all, but older than misfire_max_age, 30s",
        "misfire=all, but older than misfire_max_age, 30s",
        "misfire=all, but 2 newer ones reach misfire_limit",
        "misfire=all",
        "misfire=all",
    ]


@pytest.mark.parametrize("rule", [{"every": "1s"}, {"cron": "* * * * * *", "timezone": "Europe/Berlin"}])
@pytest.mark.parametrize(
    ("misfire", "reason"),
    [
        ("skip", "misfire=skip"),
        ("latest", "misfire=latest, and a newer one fires"),
        ("all", "misfire=all, but 100 newer ones reach misfire_limit"),
    ],
)
def test_beyond_a_thousand_the_oldest_share_one_ruling(rule, misfire, reason):
    month = timedelta(days=30)
    shared, *alone = due(schedule(rule, misfire=Misfire(misfire)), NOON - month, after(4.5)).rulings
    missed = [ruling for ruling in alone if ruling.instant <= after(-0.5)]
    assert len(missed) == 1000
    assert all(ruling.count == 1 and ruling.until is None for ruling in alone)
    assert (shared.decision, shared.reason) == (MISSED, f"{shared.count} instants; {reason}")
    assert shared.instant == NOON - month + timedelta(seconds=1)
    assert shared.until == alone[0].instant - timedelta(seconds=1)
    assert shared.count + len(alone) == month // timedelta(seconds=1) + 4


@pytest.mark.parametrize(("missed", "rulings"), [(999, 999), (1000, 1000), (1001, 1001), (1002, 1001)])
def test_only_two_or_more_share(missed, rulings):
    found = due(schedule({"every": "1s"}, misfire=Misfire.SKIP), NOON, after(missed + 5.0))
    alone = [ruling for ruling in found.rulings if ruling.instant <= after(missed)]
    assert len(alone) == rulings
    assert alone[0].count == (2 if missed == 1002 else 1)


def test_a_limit_above_a_thousand_fires_each_under_its_own_ruling():
    found = due(schedule({"every": "1s"}, misfire=Misfire.ALL, misfire_limit=1500), NOON, after(2004.5))
    shared, *alone = found.rulings
    assert (shared.count, shared.decision) == (499, MISSED)
    assert [ruling.decision for ruling in alone] == [FIRED] * 1505


def test_a_rule_that_has_ended_has_no_next_instant():
    given = schedule({"every": "10s", "end": after(20)})
    assert tell(due(given, NOON, after(60))) == [(10, MISSED), (20, FIRED)]
    assert due(given, NOON, after(60)).next is None


def test_a_clock_that_was_set_back_makes_nothing_due_twice():
    assert due(schedule(), after(50), NOON) == Due((), after(60))


@given(
    st.sampled_from(Misfire),
    st.integers(1, 40),
    st.integers(0, 400),
    st.integers(0, 12),
    st.none() | st.integers(0, 200),
    st.integers(1, 20),
)
def test_every_due_instant_gets_one_ruling_and_the_policy_decides(misfire, step, away, grace, age, limit):
    given = schedule(
        {"every": step},
        misfire=misfire,
        misfire_grace=timedelta(seconds=grace),
        misfire_limit=limit,
        misfire_max_age=None if age is None else timedelta(seconds=age),
    )
    now = after(away)
    instants = [after(k) for k in range(1, away + 1) if int(after(k).timestamp()) % step == 0]
    on_time = [instant for instant in instants if (now - instant).total_seconds() < grace]
    missed = [instant for instant in instants if instant not in on_time]
    firing = {
        Misfire.SKIP: [],
        Misfire.LATEST: missed[-1:] if not on_time else [],
        Misfire.ALL: [instant for instant in missed[-limit:] if age is None or (now - instant).total_seconds() <= age],
    }[misfire]
    found = due(given, NOON, now).rulings
    assert [ruling.instant for ruling in found] == instants
    assert [ruling.instant for ruling in found if ruling.decision is FIRED] == [*firing, *on_time]
    assert all(ruling.reason for ruling in found)


def test_without_jitter_a_job_is_due_at_its_tick():
    assert jittered(schedule(), NOON) == NOON


def test_jitter_is_the_same_wherever_it_is_worked_out():
    # A fixed answer: another one in a later version would make two versions disagree in a rolling deploy.
    assert jittered(schedule({"every": "10s", "jitter": "5s"}), NOON) == after(1.967)


def test_jitter_fills_its_range_and_differs_by_schedule():
    here = schedule({"every": "10s", "jitter": "3ms"})
    there = Schedule(name="other", task="tick", rule=here.rule)
    moves = [[jittered(one, after(k)) - after(k) for k in range(200)] for one in (here, there)]
    assert {move / timedelta(milliseconds=1) for move in moves[0]} == {0, 1, 2, 3}
    assert moves[0] != moves[1]


def test_an_unreadable_rule_is_not_taken_for_one_without_instants():
    with pytest.raises(ValueError, match="timezone"):
        due(Schedule(name="tick", task="tick", rule=Rule(cron="@daily", timezone="Mars/Base")), NOON, NOON)
