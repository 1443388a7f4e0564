from datetime import timedelta

import pytest

from drumline.model.query import By, PauseKind
from drumline.model.schedule import Decision, Rule
from tests.support.build import BY, new_schedule
from tests.support.promises import promises

KINDS = list(PauseKind)


@pytest.fixture
def paused_names(rig):
    """What is paused of a kind, by whom and why; schedules `a`, `b`, `c` stand, as queues do by themselves."""
    rig.declare(*(new_schedule(name) for name in "abc"))
    return lambda kind: rig.store.paused(kind).run()


@promises("pause", "Pause or resume queues or schedules, and say which changed.")
@pytest.mark.parametrize("kind", KINDS)
def test_pause_says_which_have_changed(rig, paused_names, kind):
    assert rig.pause(kind, "a", "b") == [True, True]
    assert rig.pause(kind, "b", "c") == [False, True]
    assert set(paused_names(kind)) == {"a", "b", "c"}
    assert rig.resume(kind, "a", "b") == [True, True]
    assert rig.resume(kind, "b", "c") == [False, True]
    assert paused_names(kind) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_queues_and_schedules_of_one_name_are_two_things(rig, paused_names, kind):
    rig.pause(kind, "a")
    (other,) = set(KINDS) - {kind}
    assert (set(paused_names(kind)), paused_names(other)) == ({"a"}, {})


@promises("pause", "It is stored, so it holds for the fleet and across restarts.")
@pytest.mark.parametrize("kind", KINDS)
def test_a_pause_holds_for_the_fleet_and_across_restarts(rig, paused_names, kind):
    rig.pause(kind, "a")
    assert set(rig.another().paused(kind).run()) == {"a"}
    rig.store.close().run()
    rig.advance(86_400)
    assert set(paused_names(kind)) == {"a"}


@promises(
    "pause",
    "Resuming a schedule starts it from now, and a ledger row tells from when to when it was paused.",
)
def test_resuming_a_schedule_starts_it_from_now_and_leaves_a_row(rig):
    rig.declare(new_schedule())
    rig.advance(60)
    rig.pause(PauseKind.SCHEDULE, "tock")
    began = rig.now()
    status = rig.schedule()
    assert (status.paused_at, status.paused_by, status.paused_why) == (began, BY.who, BY.why)
    rig.advance(3600)
    rig.resume(PauseKind.SCHEDULE, "tock")
    status = rig.schedule()
    assert (status.last_tick, status.paused_at, status.paused_by, status.paused_why) == (rig.now(), None, None, None)
    (row,) = [row for row in rig.ticks("tock") if row.decision is Decision.PAUSED]
    assert (row.instant, row.until, row.job_id) == (began, rig.now(), None)
    assert (row.by, row.reason, row.rule) == (BY.who, BY.why, new_schedule().rule)


@promises("pause", "So does one that is given another rule, is adopted or withdrawn meanwhile:", "a row for each rule.")
def test_a_pause_in_which_the_rule_changes_leaves_a_row_for_each_rule(rig):
    first, second = Rule(every=timedelta(seconds=10)), Rule(every=timedelta(seconds=1))
    rig.declare(new_schedule(rule=first, in_code=False))
    rig.pause(PauseKind.SCHEDULE, "tock")
    began = rig.now()
    rig.advance(60)
    rig.declare(new_schedule(rule=second, in_code=False))
    changed = rig.now()
    assert rig.schedule().paused_at == began
    rig.advance(60)
    rig.store.withdraw(["tock"], by=BY).run()
    rows = sorted((row for row in rig.ticks("tock") if row.decision is Decision.PAUSED), key=lambda row: row.instant)
    assert [(row.instant, row.until, row.rule, row.reason) for row in rows] == [
        (began, changed, first, BY.why),
        (changed, rig.now(), second, BY.why),
    ]


def test_each_pause_leaves_a_row_of_its_own(rig):
    rig.declare(new_schedule())
    for _ in range(3):
        rig.advance(60)
        rig.pause(PauseKind.SCHEDULE, "tock")
        rig.advance(60)
        rig.resume(PauseKind.SCHEDULE, "tock")
    rows = [row for row in rig.ticks("tock") if row.decision is Decision.PAUSED]
    assert [row.until for row in rows] == [rig.now(), rig.later(-120), rig.later(-240)]


def test_pausing_a_queue_leaves_no_row_in_the_ledger(rig):
    rig.pause(PauseKind.QUEUE, "mail")
    rig.resume(PauseKind.QUEUE, "mail")
    assert rig.ticks() == []


@promises("pause", "The audit row is written in the same step; its id is the token")
@pytest.mark.parametrize("kind", KINDS)
def test_a_pause_leaves_an_audit_row_under_its_token(rig, paused_names, kind):
    rig.advance(7)
    rig.pause(kind, "a", "b", token="p1", by=By("bob", "dashboard", "deploy"))
    (row,) = [row for row in rig.audit() if row.id == "p1"]
    assert (row.at, row.by) == (rig.now(), By("bob", "dashboard", "deploy"))
    assert row.targets == ("a", "b")
    assert "pause" in row.action
    rig.pause(kind, "a", paused=False, token="p2")
    (resumed,) = [row for row in rig.audit() if row.id == "p2"]
    assert resumed.action != row.action


@promises("pause", "and a repeat with it does nothing again")
@pytest.mark.parametrize("kind", KINDS)
def test_a_repeat_with_the_same_token_does_nothing_again(rig, paused_names, kind):
    first = rig.pause(kind, "a", token="p1")
    rig.resume(kind, "a")
    rows = rig.audit(), rig.ticks()
    assert rig.pause(kind, "a", token="p1") == first
    assert paused_names(kind) == {}
    assert (rig.audit(), rig.ticks()) == rows


@promises("pause", "An unknown schedule answers False.")
def test_an_unknown_schedule_answers_false(rig, paused_names):
    assert rig.pause(PauseKind.SCHEDULE, "nobody", "a") == [False, True]
    assert set(paused_names(PauseKind.SCHEDULE)) == {"a"}
    assert rig.resume(PauseKind.SCHEDULE, "nobody") == [False]


def test_a_queue_may_be_paused_before_it_has_jobs(rig):
    assert rig.pause(PauseKind.QUEUE, "later") == [True]
    rig.add(queue="later")
    assert rig.take(9) == []


@promises("paused", "What is paused, by whom and why.")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_paused_is_told_with_who_and_why(rig, paused_names, kind):
    ann, bob = By("ann", "cli", "flood"), By("bob", "api", "")
    rig.pause(kind, "a", by=ann)
    rig.pause(kind, "b", by=bob)
    assert paused_names(kind) == {"a": ann, "b": bob}
    rig.pause(kind, "a", by=bob)
    assert paused_names(kind)["a"] == ann
