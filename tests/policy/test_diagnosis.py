from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drumline.model.finding import Finding
from drumline.model.query import By, Count
from drumline.model.replica import Replica, ReplicaInfo, ReplicaState, Role
from drumline.model.schedule import Rule, Schedule, ScheduleStatus
from drumline.model.schema import Pending
from drumline.policy.diagnosis import (
    check_clock,
    check_queues,
    check_reach,
    check_replicas,
    check_schedules,
    check_schema,
)

NOW = datetime(2026, 5, 5, 14, 10, tzinfo=UTC)
LONG_AGO = NOW - timedelta(minutes=4)
MILLISECOND = timedelta(milliseconds=1)


def replica(*, role: Role = Role.COMBINED, state: ReplicaState = ReplicaState.RUNNING, **facts: Any) -> Replica:
    info = ReplicaInfo(id="a:1", name="a", role=role, **({"tasks": ("send",)} | facts))
    return Replica(info=info, shown="a", state=state, started_at=NOW, seen_at=NOW)


def ready(since: datetime = LONG_AGO, **given: Any) -> Count:
    base: dict[str, Any] = {"queue": "mail", "task": "send", "ready": 3, "oldest_ready": since}
    return Count(**(base | given))


def status(**facts: Any) -> ScheduleStatus:
    schedule = Schedule(name="tidy", task="tidy", rule=Rule(every=timedelta(minutes=1)))
    base: dict[str, Any] = {"version": 1, "declared_at": LONG_AGO, "begun_at": LONG_AGO, "last_tick": NOW}
    return ScheduleStatus(schedule=schedule, **(base | facts))


def told(findings: list[Finding]) -> list[tuple[str, str]]:
    assert all(finding.why and finding.do for finding in findings if finding.level != "ok")
    return [(finding.level.value, finding.found) for finding in findings]


def test_a_store_far_away_is_worth_a_word():
    assert check_reach("here", MILLISECOND).level == "ok"
    assert (check_reach("here", 150 * MILLISECOND).level, check_reach("here", MILLISECOND).found) == (
        "advice",
        "here answers in 1.0 ms",
    )


@pytest.mark.parametrize(
    ("skew", "level", "words"),
    [
        (0.2, "ok", "agrees"),
        (3, "advice", "3.0 s behind"),
        (-3, "advice", "3.0 s ahead of"),
        (-90, "wrong", "90.0 s ahead of"),
    ],
)
def test_a_clock_that_goes_wrong_is_told_the_worse_the_louder(skew, level, words):
    finding = check_clock(timedelta(seconds=skew), MILLISECOND)
    assert finding.level == level
    assert words in finding.found


def test_a_slow_answer_is_no_skew():
    assert check_clock(timedelta(seconds=1.5), timedelta(seconds=2)).level == "ok"


def test_a_schema_that_lacks_something_is_wrong():
    assert check_schema([]).level == "ok"
    finding = check_schema([Pending(2, "groups")])
    assert (finding.level, finding.do) == ("wrong", "run `drumline migrate`")
    assert "2 (groups)" in finding.found


def test_queues_whose_jobs_can_begin_are_well():
    assert told(check_queues([ready()], [replica()], {}, NOW))[0][0] == "ok"


@pytest.mark.parametrize(
    ("workers", "why"),
    [
        ([], "no worker is alive"),
        ([replica(role=Role.SCHEDULER)], "no worker is alive"),
        ([replica(queues=("low",))], "no live worker serves queue mail"),
        ([replica(tasks=("greet",))], "no live worker of queue mail knows task send"),
    ],
)
def test_a_queue_that_nobody_serves_is_wrong(workers, why):
    assert told(check_queues([ready()], workers, {}, NOW)) == [
        ("wrong", f"queue mail, task send: 3 ready and 0 delayed, and {why}")
    ]


def test_jobs_that_are_not_due_or_have_just_become_so_are_worth_a_word():
    delayed = Count(queue="mail", task="send", delayed=1)
    assert [level for level, _ in told(check_queues([delayed], [], {}, NOW))] == ["advice"]
    assert [level for level, _ in told(check_queues([ready(NOW)], [], {}, NOW))] == ["advice"]


def test_a_paused_queue_is_told_and_not_called_unserved():
    assert told(check_queues([ready()], [], {"mail": By("ann", "cli", "a deploy")}, NOW)) == [
        ("advice", "queue mail is paused by ann (a deploy); jobs waiting: 3")
    ]


def test_private_queues_and_ended_jobs_need_nobody():
    rows = [ready(queue="@gone"), Count(queue="mail", task="send", done=3)]
    assert told(check_queues(rows, [], {}, NOW))[0][0] == "ok"


def test_schedules_that_fire_on_time_are_well():
    assert told(check_schedules([status()], [replica()], NOW)) == [("ok", "all fire on time: 1")]
    assert told(check_schedules([], [], NOW)) == [("ok", "there are none")]


@pytest.mark.parametrize(
    ("facts", "level", "words"),
    [
        ({"paused_at": LONG_AGO, "paused_by": "ann"}, "advice", "tidy is paused by ann since 2026-05-05T14:06:00.000Z"),
        ({"paused_at": LONG_AGO, "paused_by": "ann", "paused_why": "a move"}, "advice", "(a move)"),
        ({"orphaned": True}, "advice", "tidy is orphaned"),
        ({"last_tick": LONG_AGO}, "wrong", "tidy should have fired 3m ago"),
    ],
)
def test_a_schedule_that_does_not_fire_is_told(facts, level, words):
    ((found_level, found),) = told(check_schedules([status(**facts)], [replica()], NOW))
    assert found_level == level
    assert words in found


def test_that_nobody_fires_is_said_once_of_all_schedules():
    late = status(last_tick=LONG_AGO, orphaned=True)
    for others in ([], [replica(role=Role.WORKER)], [replica(state=ReplicaState.LOST)]):
        assert told(check_schedules([late, late], others, NOW)) == [
            ("wrong", "no live replica fires schedules, and there are 2")
        ]


def test_a_stuck_replica_is_wrong():
    assert told(check_replicas([replica()])) == [("ok", "running and well: 1")]
    assert told(check_replicas([replica(stuck=2)])) == [("wrong", "a has stuck slots: 2")]
