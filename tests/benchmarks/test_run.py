from dataclasses import replace

import pytest

from benchmarks.peers.run import Plan, find_amount
from benchmarks.peers.systems import PARTS, SYSTEMS

PLAN = Plan(jobs=50_000, rounds=5, most_waiting=1000, parts=set(PARTS))
SYSTEM = replace(SYSTEMS[0], most_jobs=2000)


@pytest.mark.parametrize(("jobs", "given"), [(500, 500), (50_000, 2000)])
def test_a_slow_system_is_given_fewer_jobs(jobs, given):
    assert find_amount("load", SYSTEM, replace(PLAN, jobs=jobs), {}) == given


@pytest.mark.parametrize(("drain", "rate"), [(20_001.0, 10_000), (0.4, 1)])
def test_half_load_is_half_of_what_was_drained_in_the_same_round(drain, rate):
    assert find_amount("half", SYSTEM, PLAN, {"drain": drain}) == rate


def test_no_more_jobs_wait_than_asked():
    assert find_amount("waiting", SYSTEM, PLAN, {}) == 1000
