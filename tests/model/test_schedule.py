from datetime import timedelta

import pytest

from drumline.errors import BadOption
from drumline.model.schedule import Coordination, Misfire, Overlap, Rule, Schedule, start_epoch

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
