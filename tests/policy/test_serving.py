from datetime import UTC, datetime

import pytest

from drumline.model.query import Count
from drumline.model.replica import Replica, ReplicaInfo, ReplicaState, Role
from drumline.policy.serving import find_unserved, live_workers, serves

NOW = datetime(2026, 5, 5, 14, 10, tzinfo=UTC)
READY = [Count(queue="mail", task="send", ready=1)]


def worker(
    *queues: str,
    tasks: tuple[str, ...] = ("send",),
    state: ReplicaState = ReplicaState.RUNNING,
    role: Role = Role.WORKER,
) -> Replica:
    info = ReplicaInfo(id="a:1", name="a", role=role, queues=queues, tasks=tasks)
    return Replica(info=info, shown="a", state=state, started_at=NOW, seen_at=NOW)


def test_live_workers_are_those_that_run_and_take_jobs():
    alive = worker()
    others = [worker(state=ReplicaState.LOST), worker(role=Role.WEB), worker(state=ReplicaState.DRAINING)]
    assert live_workers([*others, alive]) == [alive]


def test_a_worker_without_queues_serves_all_but_private_ones():
    assert serves(worker(), "mail")
    assert not serves(worker(), "@other")
    assert not serves(worker("low"), "mail")


@pytest.mark.parametrize(
    ("rows", "live", "why"),
    [
        (READY, [worker("mail")], ""),
        ([Count(queue="mail", task="send", delayed=1)], [], ""),
        (READY, [], "no worker is alive"),
        (READY, [worker("low")], "no live worker serves queue mail"),
        (READY, [worker(tasks=("greet",))], "no live worker knows task send"),
    ],
)
def test_why_ready_jobs_cannot_begin(rows, live, why):
    assert find_unserved("mail", rows, live) == why
