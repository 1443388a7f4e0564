from datetime import timedelta

import msgspec
import pytest

from drumline.model.query import PauseKind
from drumline.model.replica import ReplicaState, Role
from drumline.model.schedule import Coordination, Decision, DstFold, DstGap, Misfire, Overlap, Rule, Schedule
from tests.support.build import BY, EVERY_MINUTE, new_schedule, options, tick_at, tick_without_job
from tests.support.promises import promises

EVERY_HOUR = Rule(every=timedelta(hours=1))


def decisions(rig, schedule="tock"):
    return [row.decision for row in rig.ticks(schedule)]


@promises("declare", "Hold these schedules")
def test_a_schedule_is_held_as_it_was_declared(rig):
    schedule = Schedule(
        name="nightly",
        task="clean.up",
        rule=Rule(
            cron="0 2 * * *",
            timezone="Europe/Berlin",
            start=rig.now(),
            end=rig.later(86_400),
            jitter=timedelta(seconds=3),
            dst_gap=DstGap.SKIP,
            dst_fold=DstFold.TWICE,
        ),
        coordination=Coordination.PER_REPLICA,
        misfire=Misfire.ALL,
        misfire_grace=timedelta(seconds=9),
        misfire_limit=7,
        misfire_max_age=timedelta(hours=2),
        overlap=Overlap.QUEUE_ONE,
        run_on_startup=True,
        args=b'{ "n" : 9223372036854775808 }',
        options=options(queue="low", priority=-3),
        tags=("t",),
        meta={"m": [1]},
    )
    rig.advance(5)
    assert rig.declare(schedule) == [True]
    status = rig.schedule("nightly")
    assert status.schedule == schedule
    assert (status.declared_at, status.begun_at, status.last_tick) == (rig.now(), rig.now(), rig.now())
    assert (status.last_fired_at, status.leader, status.paused_at) == (None, None, None)
    assert (status.running, status.total_runs, status.total_failures) == (0, 0, 0)


@promises("declare", "and say which are new or changed")
def test_declare_says_which_schedules_are_new_or_changed(rig):
    assert rig.declare(new_schedule("a"), new_schedule("b")) == [True, True]
    assert rig.declare(new_schedule("a"), new_schedule("b", args=b"[1]"), new_schedule("c")) == [False, True, True]
    assert rig.declare(new_schedule("a"), new_schedule("b", args=b"[1]"), new_schedule("c")) == [False, False, False]


@promises(
    "declare",
    "A new or changed rule",
    "starts from now: `last_tick` is set to the store's clock, and a ledger row tells of the change",
)
def test_a_changed_rule_starts_from_now_and_a_row_tells_of_it(rig):
    rig.declare(new_schedule())
    assert rig.schedule().last_tick == rig.now()
    before = len(decisions(rig))
    rig.advance(3600)
    assert rig.declare(new_schedule(rule=EVERY_HOUR)) == [True]
    assert (rig.schedule().begun_at, rig.schedule().last_tick) == (rig.now(), rig.now())
    assert len(decisions(rig)) == before + 1
    row = rig.ticks("tock")[0]
    assert (row.decision, row.recorded_at, row.job_id) == (Decision.CHANGED, rig.now(), None)
    assert [row.rule for row in rig.ticks("tock")] == [EVERY_HOUR, EVERY_MINUTE]


def test_two_changes_in_one_millisecond_are_two_rows(rig):
    rig.declare(new_schedule())
    rig.declare(new_schedule(rule=EVERY_HOUR))
    rig.declare(new_schedule())
    assert [row.rule for row in rig.ticks("tock")].count(EVERY_MINUTE) == 2
    assert len(rig.ticks("tock")) == 3


@promises("declare", "Every change gives the schedule a version that it never had before.")
def test_every_change_gives_the_schedule_a_version_of_its_own(rig):
    changes = [
        lambda: rig.declare(new_schedule(in_code=False)),
        lambda: rig.declare(new_schedule(in_code=False, args=b"[1]")),
        lambda: rig.declare(new_schedule(in_code=False, rule=EVERY_HOUR)),
        lambda: rig.pause(PauseKind.SCHEDULE, "tock"),
        lambda: rig.resume(PauseKind.SCHEDULE, "tock"),
        lambda: rig.fire(tick_without_job(rig.now(), Decision.ORPHANED)),
        lambda: rig.store.withdraw(["tock"], by=BY).run() and rig.declare(new_schedule(in_code=False)),
    ]
    versions = []
    for change in changes:
        change()
        versions.append(rig.schedule().version)
    assert versions == sorted(set(versions))
    rig.declare(new_schedule(in_code=False), new_schedule("other"))
    rig.pause(PauseKind.SCHEDULE, "other")
    rig.pause(PauseKind.QUEUE, "tock")
    assert rig.schedule().version == versions[-1]


def test_a_change_of_anything_but_the_rule_does_not_start_from_now(rig):
    rig.declare(new_schedule())
    declared, rows = rig.now(), decisions(rig)
    rig.advance(3600)
    assert rig.declare(new_schedule(args=b"[1]", overlap="skip")) == [True]
    assert rig.schedule().last_tick == declared
    assert decisions(rig) == rows


@promises("declare", "and one whose orphaning was recorded, starts from now")
def test_a_schedule_whose_orphaning_was_recorded_starts_from_now(rig):
    rig.declare(new_schedule())
    rig.advance(60)
    rig.fire(tick_without_job(rig.now(), Decision.ORPHANED))
    assert rig.schedule().orphaned_at is not None
    rig.advance(3600)
    rig.declare(new_schedule())
    status = rig.schedule()
    assert (status.begun_at, status.last_tick, status.orphaned_at) == (rig.now(), rig.now(), None)
    assert decisions(rig)[:2] == [Decision.CHANGED, Decision.ORPHANED]


@promises("declare", "The latest declaration wins.")
def test_the_latest_declaration_wins(rig):
    rig.declare(new_schedule(args=b"[1]", in_code=False))
    rig.declare(new_schedule(args=b"[2]", in_code=False))
    assert rig.schedule().schedule.args == b"[2]"
    assert rig.declare(new_schedule(args=b"[3]")) == [True]
    assert rig.schedule().schedule == new_schedule(args=b"[3]")
    rig.declare(new_schedule(args=b"[4]"))
    assert rig.schedule().schedule.args == b"[4]"


@promises("declare", "`paused` counts at the first declaration only.")
def test_paused_counts_at_the_first_declaration_only(rig):
    rig.declare(new_schedule("a", paused=True), new_schedule("b"))
    assert rig.schedule("a").paused_at == rig.now()
    assert set(rig.store.paused(PauseKind.SCHEDULE).run()) == {"a"}
    rig.resume(PauseKind.SCHEDULE, "a")
    rig.declare(new_schedule("a", paused=True, args=b"[1]"), new_schedule("b", paused=True, rule=EVERY_HOUR))
    assert (rig.schedule("a").paused_at, rig.schedule("b").paused_at) == (None, None)
    rig.pause(PauseKind.SCHEDULE, "b")
    rig.declare(new_schedule("b", args=b"[2]"))
    assert rig.schedule("b").paused_at is not None


@promises("declare", "A schedule declared in code does not give way to one registered at run time: it answers False.")
def test_a_schedule_of_the_code_does_not_give_way_to_one_registered_at_run_time(rig):
    rig.declare(new_schedule())
    before = rig.schedule()
    assert rig.declare(new_schedule(in_code=False, args=b"[1]", rule=EVERY_HOUR)) == [False]
    assert rig.schedule() == before


@promises("withdraw", "Forget schedules that were registered at run time, and say which")
def test_only_schedules_registered_at_run_time_can_be_withdrawn(rig):
    rig.declare(new_schedule("code"), new_schedule("live", in_code=False))
    assert rig.store.withdraw(["code", "live", "unknown"], by=BY).run() == [False, True, False]
    assert [status.schedule.name for status in rig.store.schedules().run()] == ["code"]
    assert rig.store.withdraw(["live"], by=BY).run() == [False]


@promises("withdraw", "A ledger row tells of it, and earlier ones stay.")
def test_a_ledger_row_tells_that_a_schedule_was_withdrawn_and_earlier_ones_stay(rig):
    rig.declare(new_schedule(in_code=False))
    rig.fire(tick_at(rig.now()))
    rows = rig.ticks("tock")
    rig.advance(1)
    rig.store.withdraw(["tock"], by=BY).run()
    told, *kept = rig.ticks("tock")
    assert (told.decision, told.reason, told.rule, told.by) == (Decision.CHANGED, "withdrawn", None, BY.who)
    assert kept == rows


def test_a_tick_stays_a_duplicate_when_its_schedule_was_withdrawn_and_registered_again(rig):
    rig.declare(new_schedule(in_code=False))
    rig.fire(tick_at(rig.now()))
    rig.store.withdraw(["tock"], by=BY).run()
    rig.declare(new_schedule(in_code=False))
    assert [fired.answer for fired in rig.fire(tick_at(rig.now()))] == ["duplicate"]


@promises("schedules", "The schedules, by name; all of them if none is named.")
def test_schedules_are_told_by_name(rig):
    rig.declare(*(new_schedule(name) for name in ("b", "a", "d", "c")))
    assert [status.schedule.name for status in rig.store.schedules().run()] == ["a", "b", "c", "d"]
    assert [status.schedule.name for status in rig.store.schedules(["d", "no", "b"]).run()] == ["b", "d"]


@promises("schedules", "One of the code that no live replica declares is orphaned.")
@pytest.mark.parametrize("role", list(Role))
def test_a_schedule_of_the_code_that_no_live_replica_declares_is_orphaned(rig, role):
    rig.declare(new_schedule(), new_schedule("live", in_code=False))
    rig.beat("other:1", role=role)
    assert (rig.schedule().orphaned, rig.schedule("live").orphaned) == (True, False)
    rig.beat("r1:1", role=role, schedules=("tock",))
    assert rig.schedule().orphaned is False
    rig.advance(31)
    assert rig.schedule().orphaned is True
    rig.beat("r1:1", role=role, schedules=("tock",))
    assert rig.schedule().orphaned is False
    rig.beat("r1:1", role=role, schedules=("tock",), state=ReplicaState.GONE)
    assert (rig.schedule().orphaned, rig.schedule("live").orphaned) == (True, False)


def test_a_draining_replica_still_declares_its_schedules(rig):
    rig.declare(new_schedule())
    rig.beat("r1:1", schedules=("tock",), state=ReplicaState.DRAINING)
    assert rig.schedule().orphaned is False


def test_reading_schedules_changes_nothing(rig):
    rig.declare(new_schedule())
    rig.advance(3600)
    first = rig.store.schedules().run()
    assert rig.store.schedules().run() == first
    assert msgspec.structs.asdict(first[0])["orphaned"] is True
