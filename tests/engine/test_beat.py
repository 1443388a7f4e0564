import asyncio
import threading
from datetime import timedelta

import pytest

from drumline.engine.beat import LATE, LONGEST_INTERVAL, Heart
from drumline.errors import StoreUnreachable
from drumline.model.replica import Beat, ReplicaInfo
from drumline.policy.verdict import Lost, verdict
from tests.engine.kit import ME, OTHER
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio

NEVER = float("inf")


async def greet() -> None: ...


def make(kit, *leases, answers=None, on_beat=lambda: None, is_hearing=lambda: True):
    def describe(every):
        on_beat()
        return ReplicaInfo(id=ME, name="me", beat_every=every)

    return Heart(
        kit.store,
        kit.executions,
        describe=describe,
        leases=[timedelta(seconds=lease) for lease in leases],
        clock=kit.clock,
        is_hearing=is_hearing,
        on_answer=lambda _info, beat, _at: (answers if answers is not None else []).append(beat),
    )


def heart_threads():
    return [thread for thread in threading.enumerate() if thread.name == "drumline-heart"]


async def test_it_beats_every_third_of_the_shortest_lease(kit):
    heart = make(kit, 30, 6, 12)
    assert heart.step() == 2.0
    assert kit.workers()[ME].info.beat_every == timedelta(seconds=2)


async def test_it_beats_at_least_every_so_often(kit):
    assert make(kit).step() == LONGEST_INTERVAL.total_seconds()
    assert make(kit, 3600).step() == LONGEST_INTERVAL.total_seconds()


async def test_a_shorter_lease_that_is_held_makes_it_beat_more_often_from_now_on(kit):
    heart = make(kit, 30)
    heart.know_lease(timedelta(seconds=3))
    heart.know_lease(timedelta(seconds=60))
    assert heart.step() == 1.0


async def test_it_asks_every_second_while_nobody_would_tell_it_of_a_cancel(kit):
    beats: list[int] = []
    hears = threading.Event()
    hears.set()
    heart = make(kit, on_beat=lambda: beats.append(1), is_hearing=hears.is_set)
    heart.start()
    await eventually(lambda: beats)
    # It waits for the next beat, ten seconds away, when its hints fall silent.
    hears.clear()
    await eventually(lambda: len(beats) >= 3, LONGEST_INTERVAL.total_seconds() - 2)
    heart.stop()
    await heart.wait_stopped()


async def test_a_beat_prolongs_what_is_held(kit):
    execution = kit.execution(kit.claim_one(kit.task(greet), using={"lease": 30}))
    kit.clock.advance(20)
    make(kit).step()
    assert kit.job(execution.claim.id).lease_until == kit.clock.now() + timedelta(seconds=30)


async def test_the_answer_comes_on_the_event_loop_and_tells_what_is_lost_and_what_to_cancel(kit):
    name = kit.task(greet)
    answers: list[Beat] = []
    lost, cancelling, kept = (kit.execution(kit.claim_one(name)) for _ in range(3))
    unknown = kit.claim_one(name)
    claim = lost.claim
    kit.memory.finish([verdict(claim, Lost(), by=OTHER, started_at=claim.claimed_at, ended_at=claim.claimed_at)]).run()
    kit.cancel(cancelling.claim.id)
    heart = make(kit, answers=answers)
    await asyncio.to_thread(heart.step)
    await eventually(lambda: answers)
    assert answers[0].lost == [lost.claim.ref]
    assert answers[0].cancelling == [cancelling.claim.ref]
    assert answers[0].unknown == [unknown]
    assert kept.claim.ref not in (*answers[0].lost, *answers[0].cancelling)


async def test_before_the_first_beat_nobody_knows_whether_the_fleet_is_alive(kit):
    assert make(kit).steady_since == NEVER


async def test_it_is_steady_since_the_first_beat_as_long_as_beats_come_in_time(kit):
    heart = make(kit)
    kit.clock.advance(5)
    heart.step()
    for _ in range(5):
        kit.clock.advance(10)
        heart.step()
    assert heart.steady_since == 5


async def test_after_a_gap_it_is_steady_since_the_beat_that_ended_it(kit):
    heart = make(kit)
    heart.step()
    kit.clock.advance(10 + LATE + 0.5)
    heart.step()
    assert heart.steady_since == 10 + LATE + 0.5


async def test_while_a_beat_is_overdue_nobody_knows_whether_the_fleet_is_alive(kit):
    heart = make(kit)
    heart.step()
    kit.clock.advance(10 + LATE)
    assert heart.steady_since == 0
    kit.clock.advance(0.1)
    assert heart.steady_since == NEVER


async def test_a_lease_that_makes_it_beat_more_often_is_no_gap(kit):
    heart = make(kit)
    heart.step()
    kit.clock.advance(9)
    heart.know_lease(timedelta(seconds=0.3))
    heart.step()
    assert heart.steady_since == 0


async def test_a_beat_that_failed_is_a_gap_however_short(kit, caplog):
    heart = make(kit)
    heart.step()
    kit.clock.advance(3)
    kit.wire.fail("beat", times=1)
    heart.start()
    await eventually(lambda: heart.steady_since == 3)
    heart.stop()
    await heart.wait_stopped()
    assert "heartbeat failed" in caplog.text


async def test_a_store_that_fails_raises_out_of_a_single_step(kit):
    kit.wire.fail("beat", times=1)
    with pytest.raises(StoreUnreachable):
        make(kit).step()


async def test_it_beats_from_a_thread_of_its_own_though_the_event_loop_is_blocked(kit):
    beaten = threading.Semaphore(0)
    heart = make(kit, 0.1, on_beat=beaten.release)
    heart.start()
    for _ in range(3):
        # Blocks this event loop, on purpose.
        assert beaten.acquire(timeout=10)
    heart.stop()
    await heart.wait_stopped()


async def test_it_beats_at_once_when_asked(kit):
    heart = make(kit)
    heart.start()
    await eventually(lambda: len(kit.wire.asked("beat")) == 1)
    heart.beat_now()
    await eventually(lambda: len(kit.wire.asked("beat")) == 2)
    heart.know_lease(timedelta(seconds=9))
    await eventually(lambda: len(kit.wire.asked("beat")) == 3)
    heart.stop()
    await heart.wait_stopped()


async def test_a_wish_for_a_beat_that_comes_during_one_is_not_forgotten(kit):
    hold = kit.wire.hold("beat")
    heart = make(kit)
    heart.start()
    await eventually(lambda: hold.waiting == 1)
    heart.beat_now()
    hold.let_go()
    await eventually(lambda: len(kit.wire.asked("beat")) == 2)
    heart.stop()
    await heart.wait_stopped()


async def test_after_stop_there_is_no_further_beat(kit):
    heart = make(kit)
    heart.start()
    await eventually(lambda: len(kit.wire.asked("beat")) == 1)
    heart.stop()
    await heart.wait_stopped()
    heart.beat_now()
    assert heart_threads() == []
    assert len(kit.wire.asked("beat")) == 1


async def test_stopping_does_not_wait_for_ever_for_a_beat_that_hangs(kit, monkeypatch):
    monkeypatch.setattr("drumline.engine.beat.PATIENCE", 0.05)
    hold = kit.wire.hold("beat")
    heart = make(kit)
    heart.start()
    await eventually(lambda: hold.waiting)
    heart.stop()
    await asyncio.wait_for(heart.wait_stopped(), 10)
    hold.let_go()
    await eventually(lambda: heart_threads() == [])


async def test_errors_do_not_end_it_and_are_logged_once(kit, caplog):
    kit.wire.fail("beat", times=3)
    answers: list[Beat] = []
    heart = make(kit, answers=answers)
    heart.start()
    for number in range(3):
        await eventually(lambda: len(kit.wire.asked("beat")) > number)  # noqa: B023 - awaited within the turn
        heart.beat_now()
    await eventually(lambda: answers)
    heart.stop()
    await heart.wait_stopped()
    assert caplog.text.count("heartbeat failed") == 1


async def test_it_ends_with_its_event_loop_so_that_abandoned_claims_expire(kit, caplog):
    async def abandon():
        heart = make(kit, 0.1)
        heart.start()
        await eventually(lambda: kit.wire.asked("beat"))

    await asyncio.to_thread(lambda: asyncio.run(abandon()))
    await eventually(lambda: heart_threads() == [])
