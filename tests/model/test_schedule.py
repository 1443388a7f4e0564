from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from drumline.errors import BadOption
from drumline.model.schedule import (
    Coordination,
    Decision,
    FiredAnswer,
    Firing,
    Misfire,
    Overlap,
    Rule,
    Schedule,
    start_epoch,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RULE = Rule(every=timedelta(seconds=10))


def test_a_schedule_has_the_defaults_of_the_design():
    schedule = Schedule(name="tock", task="job", rule=RULE)
    assert (schedule.coordination, schedule.overlap) == (Coordination.FLEET, Overlap.ALLOW)
    assert (schedule.misfire, schedule.misfire_grace) == (Misfire.LATEST, timedelta(seconds=5))
    assert (schedule.misfire_limit, schedule.misfire_max_age) == (100, None)
    assert (schedule.run_on_startup, schedule.paused, schedule.in_code) == (False, False, True)
    assert (RULE.timezone, RULE.dst_gap, RULE.dst_fold) == ("UTC", "run_after", "once")


@pytest.mark.parametrize(
    ("name", "task", "option"), [("every night", "job", "schedule name"), ("tock", "send mail", "task")]
)
def test_a_schedule_with_a_wrong_name_is_refused(name, task, option):
    with pytest.raises(BadOption, match=rf"^{option} must be"):
        Schedule(name=name, task=task, rule=RULE)


@pytest.mark.parametrize(
    ("replica", "mark", "epoch"),
    [("", "start:3", 3), ("", "1760000000000", -1), ("r1:1", "start:3", -1), ("", "start:soon", -1)],
)
def test_only_the_tick_of_a_fleets_start_has_an_epoch(replica, mark, epoch):
    assert start_epoch(replica, mark) == epoch


@pytest.mark.parametrize(
    ("decision", "is_tick", "makes_job", "moves_on"),
    [
        (Decision.FIRED, True, True, True),
        (Decision.MISSED, True, False, True),
        (Decision.OVERLAP, True, False, True),
        (Decision.TRIGGER, False, True, False),
        (Decision.BACKFILL, False, True, False),
        (Decision.CHANGED, False, False, False),
    ],
)
def test_a_firing_knows_what_kind_it_is(decision, is_tick, makes_job, moves_on):
    firing = Firing(schedule="s", mark="1", instant=NOW, decision=decision)
    assert (firing.is_tick, firing.makes_job, firing.moves_on) == (is_tick, makes_job, moves_on)
    start = Firing(schedule="s", mark="start:1", instant=NOW, decision=decision)
    assert start.moves_on is False


def test_only_a_tick_of_the_fleet_that_was_worked_out_follows_the_last_tick():
    worked_out = Firing(schedule="tock", mark="1", instant=NOW, version=3)
    assert worked_out.follows_last_tick
    others = ({"version": None}, {"replica": "r:1"}, {"mark": "start:1"}, {"decision": Decision.ORPHANED})
    assert not any(msgspec.structs.replace(worked_out, **other).follows_last_tick for other in others)


@pytest.mark.parametrize(
    ("decision", "answer", "row"),
    [
        (Decision.FIRED, FiredAnswer.FIRED, Decision.FIRED),
        (Decision.FIRED, FiredAnswer.OVERLAP, Decision.OVERLAP),
        (Decision.BACKFILL, FiredAnswer.FIRED, Decision.FIRED),
        (Decision.MISSED, FiredAnswer.RECORDED, Decision.MISSED),
    ],
)
def test_a_row_says_what_came_of_a_firing(decision, answer, row):
    assert Firing(schedule="s", mark="1", instant=NOW, decision=decision).recorded_as(answer) is row
