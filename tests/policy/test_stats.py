from datetime import UTC, datetime, timedelta
from typing import Any

from drumline.model.query import HISTOGRAM_MILLIS, Count, SeriesPoint, histogram_bucket
from drumline.model.replica import Replica, ReplicaInfo, ReplicaState
from drumline.model.schedule import Rule, Schedule, ScheduleStatus
from drumline.policy.stats import Fleet, Stats, last_hour, sum_up

NOW = datetime(2026, 5, 5, 14, 10, 30, tzinfo=UTC)


def stats(**read: Any) -> Stats:
    nothing: dict[str, Any] = {"counts": [], "points": [], "schedules": [], "replicas": [], "paused": (), "now": NOW}
    return sum_up(Fleet(**(nothing | read)))


def spread(*millis: int) -> tuple[int, ...]:
    found = [0] * (len(HISTOGRAM_MILLIS) + 1)
    for value in millis:
        found[histogram_bucket(value)] += 1
    return tuple(found)


def point(queue: str, *, done: int = 0, failed: int = 0, run: tuple[int, ...] = ()) -> SeriesPoint:
    return SeriesPoint(minute=NOW, queue=queue, task="send", done=done, failed=failed, run=spread(*run))


def status(name: str, *, rule: Rule | None = None, **facts: Any) -> ScheduleStatus:
    every = Rule(every=timedelta(minutes=1))
    base: dict[str, Any] = {"version": 1, "declared_at": NOW, "begun_at": NOW, "last_tick": NOW}
    return ScheduleStatus(schedule=Schedule(name=name, task="send", rule=rule or every), **(base | facts))


def replica(state: ReplicaState, slots: int = 10) -> Replica:
    info = ReplicaInfo(id="a:1", name="a", slots=slots)
    return Replica(info=info, shown="a", state=state, started_at=NOW, seen_at=NOW)


def test_the_last_hour_is_of_whole_minutes_and_holds_the_one_that_has_begun():
    start, end = last_hour(NOW)
    assert (start, end) == (NOW.replace(hour=13, minute=11, second=0), NOW.replace(minute=11, second=0))


def test_jobs_are_counted_in_all_by_queue_and_by_task():
    counts = [
        Count(queue="mail", task="send", ready=2, dead=1, oldest_ready=NOW - timedelta(seconds=9)),
        Count(queue="mail", task="greet", ready=3, oldest_ready=NOW - timedelta(seconds=20)),
        Count(queue="low", task="send", running=4),
    ]
    found = stats(counts=counts)
    assert (found.jobs.ready, found.jobs.running, found.jobs.dead) == (5, 4, 1)
    assert [(line.name, line.tally.ready, line.tally.running) for line in found.queues] == [
        ("low", 0, 4),
        ("mail", 5, 0),
    ]
    assert [(line.name, line.tally.unfinished) for line in found.tasks] == [("greet", 3), ("send", 6)]
    assert [line.oldest_ready for line in found.queues] == [None, NOW - timedelta(seconds=20)]


def test_a_private_queue_is_in_the_sums_and_no_line_of_its_own():
    found = stats(counts=[Count(queue="@web-1", task="warm", ready=1)])
    assert (found.jobs.ready, found.queues, [line.name for line in found.tasks]) == (1, [], ["warm"])


def test_a_paused_queue_is_a_line_even_without_jobs_and_a_task_of_its_name_is_not_paused():
    found = stats(counts=[Count(queue="low", task="mail")], paused=("mail",))
    assert [(line.name, line.is_paused) for line in found.queues] == [("low", False), ("mail", True)]
    assert [(line.name, line.is_paused) for line in found.tasks] == [("mail", False)]


def test_the_pace_is_told_in_all_and_by_queue():
    counts = [Count(queue="mail", task="send"), Count(queue="low", task="send")]
    points = [point("mail", done=2, failed=1, run=(8, 8, 8)), point("low", done=1, run=(400,))]
    found = stats(counts=counts, points=points)
    assert (found.pace.done, found.pace.failed) == (3, 1)
    assert 0.25 < (found.pace.run_p95 or 0) <= 0.5
    assert [(line.name, line.pace.done, line.pace.failed) for line in found.queues] == [("low", 1, 0), ("mail", 2, 1)]
    assert [(line.pace.run_p95 or 0) <= 0.01 for line in found.queues] == [False, True]
    assert found.pace.wait_p50 is None


def test_schedules_that_are_paused_orphaned_or_late_are_counted():
    late = NOW - timedelta(minutes=5)
    found = stats(
        schedules=[
            status("well"),
            status("paused", paused_at=NOW, last_tick=late),
            status("orphaned", orphaned=True, last_tick=late),
            status("late", last_tick=late),
            status("over", rule=Rule(every=timedelta(minutes=1), end=late), last_tick=late),
            status("odd", rule=Rule(cron="not a rule"), last_tick=late),
        ]
    ).schedules
    assert (found.total, found.paused, found.orphaned, found.late) == (6, 1, 1, 1)


def test_replicas_are_counted_by_state_and_only_running_ones_have_slots():
    found = stats(replicas=[replica(state) for state in ReplicaState])
    assert found.replicas == {"running": 1, "draining": 1, "lost": 1}
    assert found.slots == 10
