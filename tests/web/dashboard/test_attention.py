from datetime import UTC, datetime, timedelta

import pytest

from drumline.model.query import By, Count, SeriesPoint
from drumline.model.replica import Replica, ReplicaInfo, ReplicaState, Role
from drumline.model.schedule import Rule, Schedule, ScheduleStatus
from drumline.web.dashboard.attention import find_attention
from drumline.web.dashboard.depths import measure_depths

NOW = datetime(2026, 5, 5, 14, 10, tzinfo=UTC)
LONG_AGO = NOW - timedelta(minutes=4)


def worker(
    *,
    queues: tuple[str, ...] = (),
    tasks: tuple[str, ...] = ("send",),
    state: ReplicaState = ReplicaState.RUNNING,
    stuck: int = 0,
    running: tuple[str, ...] = (),
    role: Role = Role.WORKER,
) -> Replica:
    info = ReplicaInfo(id="web-1:a", name="web-1", role=role, queues=queues, tasks=tasks, slots=10, stuck=stuck)
    return Replica(info=info, shown="web-1", state=state, started_at=NOW, seen_at=NOW, running=running)


def ready(number: int, *, queue: str = "mail", task: str = "send", since: datetime = LONG_AGO) -> Count:
    return Count(queue=queue, task=task, ready=number, oldest_ready=since)


def status(*, last_tick: datetime, **facts: object) -> ScheduleStatus:
    schedule = Schedule(name="tidy", task="tidy", rule=Rule(every=timedelta(minutes=1)))
    return ScheduleStatus(
        schedule=schedule,
        version=1,
        declared_at=LONG_AGO,
        begun_at=LONG_AGO,
        last_tick=last_tick,
        **facts,  # type: ignore[arg-type]
    )


def attention(counts=(), workers=(), schedules=(), paused=None):
    depths = measure_depths(counts, workers, paused or {}, [])
    return [
        f"{item.head} {item.subject} {item.words}".strip()
        for item in find_attention(counts, depths, schedules, workers, NOW)
    ]


def test_when_all_is_well_there_is_nothing():
    assert attention([ready(3)], [worker()], [status(last_tick=NOW - timedelta(seconds=30))]) == []


def test_dead_letters_are_told_by_task_the_most_first_with_their_error():
    counts = [
        Count(queue="q", task="charge", dead=2, last_error="Timeout: no answer\nmore"),
        Count(queue="q", task="mail", dead=5, last_error="Refused"),
        Count(queue="r", task="charge", dead=1),
    ]
    assert attention(counts, [worker()]) == ["5 dead letters mail Refused", "3 dead letters charge Timeout: no answer"]


def test_of_very_many_tasks_with_dead_letters_the_rest_share_a_line():
    counts = [Count(queue="q", task=f"t{number}", dead=number + 1) for number in range(6)]
    assert attention(counts, [worker()])[-1] == "6 more dead letters  of 3 other tasks"


@pytest.mark.parametrize(
    ("workers", "words"),
    [
        ([], "no worker is alive"),
        ([worker(state=ReplicaState.LOST)], "no worker is alive"),
        ([worker(role=Role.WEB)], "no worker is alive"),
        ([worker(queues=("other",))], "no live worker serves queue mail"),
        ([worker(tasks=("other",))], "no live worker knows task send"),
    ],
)
def test_jobs_that_nobody_can_take_are_told_with_the_reason(workers, words):
    assert attention([ready(1)], workers) == [f"Waiting mail 1 job waits for 4 min: {words}"]


def test_a_queue_that_has_just_got_its_jobs_is_not_unserved_yet():
    assert attention([ready(1, since=NOW)], []) == []


def test_a_paused_queue_is_meant_to_wait():
    assert attention([ready(1)], [], paused={"mail": By("ann")}) == []


def test_a_schedule_that_should_have_fired_is_late():
    assert attention([], [worker()], [status(last_tick=LONG_AGO)]) == ["Late tidy should have fired 3 min ago"]


def test_a_paused_schedule_is_not_late():
    assert attention([], [worker()], [status(last_tick=LONG_AGO, paused_at=LONG_AGO)]) == []


def test_an_orphaned_schedule_is_told():
    (told,) = attention([], [worker()], [status(last_tick=LONG_AGO, orphaned=True)])
    assert told.startswith("Orphaned tidy")


def test_stuck_slots_and_lost_replicas_that_held_jobs_are_told():
    ailing = [worker(stuck=1), worker(state=ReplicaState.LOST, running=("a", "b"))]
    assert [told.split()[0] for told in attention([], ailing)] == ["Stuck", "Lost"]


def test_a_queue_clears_at_the_pace_of_its_last_minutes():
    recent = [SeriesPoint(minute=NOW, queue="mail", task="send", done=90, failed=10)]
    (depth,) = measure_depths([ready(40)], [worker()], {}, recent)
    assert depth.pace == 20
    assert depth.clears_in == timedelta(minutes=2)


def test_a_queue_that_gives_nothing_never_clears():
    (depth,) = measure_depths([ready(40)], [worker()], {"mail": By("ann")}, [])
    assert (depth.clears_in, depth.never_clears) == (None, True)


def test_private_queues_are_not_shown():
    assert measure_depths([ready(1, queue="@web-1")], [worker()], {}, []) == []
