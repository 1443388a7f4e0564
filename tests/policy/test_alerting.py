from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drumline.events import JobDied, QueueRecovered, QueueUnserved, ScheduleLate, ScheduleRecovered
from drumline.model.query import By, Count
from drumline.model.replica import Replica, ReplicaInfo, ReplicaState, Role
from drumline.model.schedule import Rule, Schedule, ScheduleStatus
from drumline.policy.alerting import find_late, find_lookout, find_unserved_queues, recovered

NOW = datetime(2026, 5, 5, 14, 10, tzinfo=UTC)
LONG_AGO = NOW - timedelta(minutes=4)


def replica(id: str = "a:1", *, state: ReplicaState = ReplicaState.RUNNING, started: int = 0, **facts: Any) -> Replica:
    info = ReplicaInfo(id=id, name="a", **({"tasks": ("send",)} | facts))
    return Replica(info=info, shown="a", state=state, started_at=NOW + timedelta(seconds=started), seen_at=NOW)


def ready(since: datetime = LONG_AGO, **given: Any) -> Count:
    base: dict[str, Any] = {"queue": "mail", "task": "send", "ready": 3, "oldest_ready": since}
    return Count(**(base | given))


def status(last_tick: datetime) -> ScheduleStatus:
    schedule = Schedule(name="tidy", task="tidy", rule=Rule(every=timedelta(minutes=1)))
    return ScheduleStatus(schedule=schedule, version=1, declared_at=LONG_AGO, begun_at=LONG_AGO, last_tick=last_tick)


def unserved(counts, replicas, paused=None):
    return list(find_unserved_queues(counts, replicas, paused or {}, NOW))


def test_the_replica_that_has_run_for_longest_looks():
    old = replica("b:1", started=1)
    gone = replica("d:1", state=ReplicaState.LOST)
    assert find_lookout([replica("a:1", started=2), old, replica("c:1", started=1), gone]) == "b:1"
    assert find_lookout([gone]) is None


def test_a_schedule_that_should_have_fired_is_late_since_its_instant():
    due = LONG_AGO + timedelta(minutes=1)
    assert list(find_late([status(LONG_AGO), status(NOW)], NOW)) == [
        ScheduleLate(f"late:tidy:{int(due.timestamp() * 1000)}", "tidy", due)
    ]


def test_a_queue_that_nobody_serves_is_told_with_the_reason_and_since_when():
    later = LONG_AGO + timedelta(seconds=1)
    (alert,) = unserved([ready(), ready(later, task="other"), ready(queue="low")], [replica(queues=("low",))])
    assert (alert.queue, alert.since, alert.reason) == ("mail", LONG_AGO, "no live worker serves queue mail")


def test_each_unserved_queue_is_told_by_itself():
    told = unserved([ready(queue="b"), ready(queue="a"), ready(queue="b", task="other")], [])
    assert [alert.queue for alert in told] == ["a", "b"]


@pytest.mark.parametrize(
    ("counts", "replicas", "paused"),
    [
        ([ready()], [replica()], {}),
        ([ready()], [], {"mail": By("ann", "cli", "")}),
        ([ready(NOW - timedelta(seconds=29))], [], {}),
        ([ready(ready=0, delayed=1, oldest_ready=None)], [], {}),
        ([ready(queue="@a:1")], [], {}),
    ],
    ids=["served", "paused", "only just", "nothing ready", "private"],
)
def test_a_queue_is_not_unserved(counts, replicas, paused):
    assert unserved(counts, replicas, paused) == []


def test_a_scheduler_serves_no_queue():
    assert unserved([ready()], [replica(role=Role.SCHEDULER)])[0].reason == "no worker is alive"


def test_what_is_over_is_told_under_the_same_id():
    assert recovered(QueueUnserved("u", "mail", NOW, "")) == QueueRecovered("u", "mail")
    assert recovered(ScheduleLate("l", "tidy", NOW)) == ScheduleRecovered("l", "tidy")
    with pytest.raises(TypeError, match="JobDied does not pass by itself"):
        recovered(JobDied("d", "1", "send", "mail", 1, None))
