import asyncio
from datetime import timedelta

import pytest

from drumline.engine import janitor as module
from drumline.engine.janitor import PURGE_EVERY, SOON, Janitor
from drumline.errors import StoreUnreachable
from drumline.events import Events, JobClosed
from drumline.model.query import JobFilter, Keep
from tests.engine.kit import ME, OTHER
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio

LEASE = 30.0


async def greet() -> None: ...


class Steadiness:
    since = float("-inf")


@pytest.fixture
def steady():
    return Steadiness()


@pytest.fixture
def janitor(kit, steady):
    return Janitor(
        kit.store,
        kit.executions,
        by=ME,
        steady_since=lambda: steady.since,
        clock=kit.clock,
        events=kit.events,
        keep=Keep(),
    )


def lose(kit, *, by=OTHER, past=1.0, **using):
    """A claim that nobody has renewed; its lease is over for so long."""
    claim = kit.claim_one(kit.task(greet), replica=by, using={"lease": LEASE, **using})
    kit.clock.advance(LEASE + past)
    return claim


async def test_a_lost_job_is_retried_at_once(kit, janitor):
    claim = lose(kit)
    await janitor.step()
    job = kit.job(claim.id)
    assert (job.state, job.attempt, job.due_at) == ("ready", 1, kit.clock.now())


async def test_the_attempt_says_who_was_lost_and_who_found_out(kit, janitor):
    claim = lose(kit)
    await janitor.step()
    (attempt,) = kit.job(claim.id).attempts
    assert (attempt.ended, attempt.replica, attempt.by) == ("lost", OTHER, ME)
    assert (attempt.started_at, attempt.ended_at) == (claim.claimed_at, claim.lease_until)
    assert kit.job(claim.id).last_error == f"WorkerLost: worker {OTHER} was lost: it did not renew its lease of 30 s"


async def test_a_job_that_was_lost_in_its_last_attempt_is_dead(kit, janitor):
    claim = lose(kit, max_attempts=1)
    await janitor.step()
    assert kit.state(claim.id) == "dead"


async def test_a_lost_job_that_somebody_asked_to_cancel_is_cancelled(kit, janitor):
    claim = lose(kit)
    kit.cancel(claim.id)
    await janitor.step()
    assert (kit.state(claim.id), kit.ends(claim.id)) == ("cancelled", ["lost"])


async def test_a_lease_that_has_not_passed_is_left_alone(kit, janitor):
    claim = kit.claim_one(kit.task(greet), replica=OTHER, using={"lease": LEASE})
    kit.clock.advance(LEASE - 1)
    await janitor.step()
    assert kit.state(claim.id) == "running"


async def test_nothing_is_rescued_before_the_beats_were_steady_for_a_third_of_the_lease(kit, janitor, steady):
    claim = lose(kit)
    steady.since = kit.clock.monotonic()
    assert await janitor.step() == pytest.approx(SOON)
    kit.clock.advance(LEASE / 3 - 0.001)
    await janitor.step()
    assert kit.state(claim.id) == "running"
    kit.clock.advance(2 * SOON)
    await janitor.step()
    assert kit.state(claim.id) == "ready"


async def test_while_beats_do_not_come_nothing_is_rescued(kit, janitor, steady):
    steady.since = float("inf")
    claim = lose(kit, past=1e6)
    await janitor.step()
    assert kit.state(claim.id) == "running"


async def test_the_third_is_that_of_each_claims_own_lease(kit, janitor, steady):
    short, long = lose(kit, lease=3), lose(kit)
    steady.since = kit.clock.monotonic() - 1
    await janitor.step()
    assert (kit.state(short.id), kit.state(long.id)) == ("ready", "running")


async def test_what_runs_here_is_never_rescued_from_here(kit, janitor):
    claim = lose(kit, by=ME)
    kit.execution(claim)
    await janitor.step()
    assert kit.state(claim.id) == "running"


async def test_it_sleeps_until_the_earliest_lease_ends(kit, janitor):
    await janitor.step()
    now = kit.clock.now()
    assert not janitor.hear(now, None)
    assert janitor.hear(now, now + timedelta(seconds=20))
    assert await janitor.step() == pytest.approx(20.001)
    assert janitor.hear(now, now + timedelta(seconds=5))
    assert not janitor.hear(now, now + timedelta(seconds=8))
    assert await janitor.step() == pytest.approx(8.001)
    assert len(kit.wire.asked("expired")) == 1


async def test_lease_ends_are_reckoned_by_the_stores_clock_and_not_by_ours(kit, janitor):
    await janitor.step()
    there = kit.clock.now() + timedelta(days=1)
    janitor.hear(there, there + timedelta(seconds=5))
    assert await janitor.step() == pytest.approx(5.001)


async def test_a_lease_end_that_is_heard_of_during_a_look_is_not_forgotten(kit, janitor):
    hold = kit.wire.hold_reply("expired")
    step = asyncio.create_task(janitor.step())
    await eventually(lambda: hold.waiting)
    now = kit.clock.now()
    janitor.hear(now, now + timedelta(seconds=2))
    hold.let_go()
    assert await step == pytest.approx(2.001)


@pytest.mark.parametrize("operation", ["expired", "finish"])
async def test_after_an_error_it_looks_again(kit, janitor, operation):
    claim = lose(kit)
    kit.wire.fail(operation, times=1)
    with pytest.raises(StoreUnreachable):
        await janitor.step()
    await janitor.step()
    assert kit.state(claim.id) == "ready"


async def test_a_full_slice_is_followed_by_the_next_at_once(kit, janitor, monkeypatch):
    monkeypatch.setattr(module, "SLICE", 2)
    name = kit.task(greet)
    for _ in range(5):
        kit.claim_one(name, replica=OTHER)
    kit.clock.advance(31)
    pauses = [await janitor.step() for _ in range(3)]
    assert pauses[:2] == [0, 0]
    assert pauses[2] == pytest.approx(SOON)
    assert kit.memory.expired(10).run() == []


async def test_a_rival_that_was_quicker_costs_nothing(kit, janitor):
    claim = lose(kit)
    hold = kit.wire.hold("finish")
    step = asyncio.create_task(janitor.step())
    await eventually(lambda: hold.waiting)
    rival = Janitor(
        kit.memory,
        kit.executions,
        by="rival:1",
        steady_since=lambda: -1e9,
        clock=kit.clock,
        events=Events(),
        keep=Keep(),
    )
    await rival.step()
    hold.let_go()
    await step
    assert kit.ends(claim.id) == ["lost"]
    assert kit.heard(JobClosed) == []


@pytest.mark.parametrize(("max_attempts", "outcome"), [(2, "retry"), (1, "dead")])
async def test_the_end_of_a_lost_attempt_is_told_like_any_other(kit, janitor, max_attempts, outcome):
    claim = lose(kit, max_attempts=max_attempts)
    await janitor.step()
    (event,) = kit.heard(JobClosed)
    assert (event.job_id, event.task, event.attempt, event.ended, event.outcome) == (
        claim.id,
        "greet",
        1,
        "lost",
        outcome,
    )
    assert (event.ran, event.error) == (timedelta(seconds=LEASE), kit.job(claim.id).last_error)


async def test_it_purges_in_slices_and_then_every_minute(kit, janitor, monkeypatch):
    monkeypatch.setattr(module, "PURGE_SLICE", 2)
    name = kit.task(greet)
    ids = [kit.enqueue(name) for _ in range(3)]
    for job_id in ids:
        kit.cancel(job_id)
    kit.clock.advance(timedelta(days=2))
    janitor.hear(kit.clock.now(), None)
    pauses = [await janitor.step() for _ in range(3)]
    assert pauses == [0, 0, PURGE_EVERY]
    assert [given[1] for given in kit.wire.asked("purge")] == [2, 2, 2]
    assert [kit.memory.jobs(JobFilter(ids=(job_id,))).run().items for job_id in ids] == [[], [], []]
    kit.clock.advance(PURGE_EVERY - 1)
    assert await janitor.step() == pytest.approx(1)
    assert len(kit.wire.asked("purge")) == 3
