from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from drumline.model.job import Attempt, Failure, Job, JobState
from drumline.model.options import JobOptions
from drumline.model.query import By
from drumline.model.replica import Replica, ReplicaInfo, ReplicaState, Role
from drumline.policy.waiting import why_waiting

NOW = datetime(2026, 5, 5, 14, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)


def job(**given: Any) -> Job:
    base = Job(
        id="job-1",
        task="send",
        queue="mail",
        state=JobState.READY,
        priority=0,
        attempt=0,
        max_attempts=5,
        fence=0,
        args=b"{}",
        options=JobOptions(queue="mail"),
        created_at=NOW - timedelta(hours=1),
        due_at=NOW - timedelta(minutes=3),
    )
    return msgspec.structs.replace(base, **given)


def attempt(ended: str, error: Failure | None = None) -> Attempt:
    return Attempt(1, 1, "r1:1", "r1:1", NOW, NOW, ended, error)


def worker(
    *,
    state: ReplicaState = ReplicaState.RUNNING,
    role: Role = Role.WORKER,
    tasks: tuple[str, ...] = ("send",),
    queues: tuple[str, ...] = (),
    slots: int = 2,
    running: tuple[str, ...] = (),
) -> Replica:
    info = ReplicaInfo(id="r1:1", name="r1", role=role, tasks=tasks, queues=queues, slots=slots)
    return Replica(info=info, shown="r1", state=state, started_at=NOW, seen_at=NOW, running=running)


@pytest.mark.parametrize("state", [state for state in JobState if state not in (JobState.DELAYED, JobState.READY)])
def test_a_job_that_does_not_wait_has_no_reason(state):
    assert why_waiting(job(state=state), [], {}, NOW) == ""


def test_a_job_waits_for_another():
    waiting = job(state=JobState.DELAYED, waits_for="job-0", due_at=LATER)
    assert why_waiting(waiting, [worker()], {}, NOW) == "waits for job job-0 to end"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "due at 2026-05-05T14:05:00.000Z, in 5m"),
        ({"due_at": NOW + timedelta(milliseconds=250)}, "due at 2026-05-05T14:00:00.250Z, in 250ms"),
        (
            {"attempt": 2, "attempts": (attempt("failed"),)},
            "attempt 3 of 5 is due at 2026-05-05T14:05:00.000Z, in 5m",
        ),
        (
            {"attempts": (attempt("failed"), attempt("snoozed"))},
            "snoozed by its task until 2026-05-05T14:05:00.000Z, in 5m",
        ),
        (
            {"attempts": (attempt("released", Failure("BadArgument", "to: unknown argument")),)},
            "given back by r1:1 (to: unknown argument), for others to take at 2026-05-05T14:05:00.000Z, in 5m",
        ),
        ({"attempts": (attempt("released"),)}, "due at 2026-05-05T14:05:00.000Z, in 5m"),
    ],
)
def test_a_job_that_is_not_due_says_when_and_why(given, sentence):
    waiting = job(**{"state": JobState.DELAYED, "due_at": LATER, **given})
    # Also while its queue is paused and nobody works: it would wait all the same.
    assert why_waiting(waiting, [], {"mail": By("ann")}, NOW) == sentence


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        (By("ann"), "queue mail is paused by ann"),
        (By("ann", "cli", "a deploy"), "queue mail is paused by ann: a deploy"),
    ],
)
def test_a_paused_queue_is_a_reason(by, sentence):
    assert why_waiting(job(), [worker()], {"mail": by}, NOW) == sentence


def test_another_paused_queue_is_none():
    assert "paused" not in why_waiting(job(), [worker()], {"slow": By("ann")}, NOW)


@pytest.mark.parametrize(
    "workers",
    [
        [],
        [worker(state=ReplicaState.LOST)],
        [worker(state=ReplicaState.GONE)],
        [worker(state=ReplicaState.DRAINING)],
        [worker(role=Role.WEB), worker(role=Role.SCHEDULER)],
    ],
)
def test_without_a_live_worker_it_is_unclaimable(workers):
    assert why_waiting(job(), workers, {}, NOW) == "unclaimable for 3m: no worker is alive"


def test_a_task_that_no_live_worker_knows_is_unclaimable_with_its_age():
    workers = [worker(tasks=("other",)), worker(state=ReplicaState.LOST)]
    assert why_waiting(job(), workers, {}, NOW) == "unclaimable for 3m: no live worker knows task send"


def test_a_queue_that_no_able_worker_serves_is_unclaimable():
    workers = [worker(queues=("slow",)), worker(tasks=("other",))]
    assert why_waiting(job(), workers, {}, NOW) == (
        "unclaimable for 3m: no live worker that knows task send serves queue mail"
    )


def test_a_private_queue_is_served_by_its_own_replica_only():
    private = job(queue="@r2:1")
    assert "unclaimable" in why_waiting(private, [worker()], {}, NOW)
    assert "unclaimable" not in why_waiting(private, [worker(queues=("@r2:1",))], {}, NOW)


def test_busy_slots_are_counted():
    workers = [worker(running=("a", "b")), worker(slots=1, running=("c",), queues=("mail",))]
    assert why_waiting(job(), workers, {}, NOW) == "due for 3m: all slots are busy, 3 in 2 live workers"


def test_a_free_slot_means_that_its_turn_comes():
    workers = [worker(running=("a", "b")), worker(role=Role.COMBINED, running=("c",))]
    assert why_waiting(job(), workers, {}, NOW) == (
        "due for 3m: it is taken in its turn, after jobs of higher priority or an earlier due time"
    )


def test_what_the_store_calls_ready_is_due_though_the_clock_was_read_before():
    assert why_waiting(job(due_at=LATER), [], {}, NOW).endswith("no worker is alive")
