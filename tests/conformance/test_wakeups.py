import asyncio
import threading
from contextlib import AsyncExitStack, asynccontextmanager

import psutil
import pytest

from drumline.model.query import CommandKind, PauseKind
from drumline.stores.base import topic
from tests.support.build import BY, cancelled, dead, done, new_job, new_schedule, release, tick_at
from tests.support.promises import promises
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def listening(rig, *topics):
    """What is heard of the topics, as a list that grows."""
    heard: list[str] = []
    async with rig.store.wakeups(heard.append) as listener:
        listener.watch(topics)
        yield heard


async def blocking(work, *args):
    """Run a step as callers without an event loop do, while this loop goes on."""
    return await asyncio.to_thread(work, *args)


@promises("topic", "The things a hint can be about.")
@promises("topic.queue", "There may be work in the queue.")
@promises("wakeups", "Call `hear`", "when a watched topic may have news")
async def test_a_new_job_is_heard_of_in_its_queue(rig):
    async with listening(rig, topic.queue("mail")) as heard:
        await rig.store.enqueue([new_job(queue="other"), new_job(queue="mail")])
        await eventually(lambda: topic.queue("mail") in heard)
        assert set(heard) == {topic.queue("mail")}


@promises("wakeups", "on this event loop")
async def test_hear_is_called_on_the_listeners_own_loop(rig):
    threads = []
    async with rig.store.wakeups(lambda _: threads.append((threading.get_ident(), asyncio.get_running_loop()))) as ear:
        ear.watch([topic.queue("default")])
        await blocking(rig.add)
        await eventually(lambda: threads)
    assert set(threads) == {(threading.get_ident(), asyncio.get_running_loop())}


@promises("topic.ended", "The job may have ended.")
@pytest.mark.parametrize("end", [done, dead, cancelled], ids=lambda end: end.__name__)
async def test_the_end_of_a_watched_job_is_heard_of(rig, end):
    claim = await blocking(rig.start)
    async with listening(rig, topic.ended(claim.id)) as heard:
        await blocking(rig.finish, end(claim))
        await eventually(lambda: topic.ended(claim.id) in heard)


async def test_the_end_of_a_waiting_job_by_command_is_heard_of(rig):
    job_id = await blocking(rig.add)
    async with listening(rig, topic.ended(job_id)) as heard:
        await blocking(rig.command, CommandKind.CANCEL, job_id)
        await eventually(lambda: topic.ended(job_id) in heard)


@promises("topic.cancel", "Somebody asks to stop a job that the replica holds.")
async def test_a_request_to_stop_is_heard_of_by_the_replica_that_holds_the_job(rig):
    claim = await blocking(rig.start)
    async with listening(rig, topic.cancel(claim.replica)) as heard:
        await blocking(rig.command, CommandKind.CANCEL, claim.id)
        await eventually(lambda: topic.cancel(claim.replica) in heard)


async def test_a_request_to_stop_by_a_later_tick_is_heard_of_too(rig):
    await blocking(rig.declare, new_schedule(overlap="cancel_running"))
    await blocking(rig.fire, tick_at(rig.now()))
    claim = await blocking(rig.take_one)
    async with listening(rig, topic.cancel(claim.replica)) as heard:
        await blocking(rig.fire, tick_at(rig.later(-60)))
        await eventually(lambda: topic.cancel(claim.replica) in heard)


async def test_changes_of_schedules_and_pauses_are_heard_of(rig):
    changes = [
        lambda: rig.declare(new_schedule(in_code=False)),
        lambda: rig.pause(PauseKind.SCHEDULE, "tock"),
        lambda: rig.resume(PauseKind.SCHEDULE, "tock"),
        lambda: rig.pause(PauseKind.QUEUE, "mail"),
        lambda: rig.resume(PauseKind.QUEUE, "mail"),
        lambda: rig.store.withdraw(["tock"], by=BY).run(),
    ]
    async with listening(rig, topic.CHANGES) as heard:
        for change in changes:
            heard.clear()
            await blocking(change)
            await eventually(lambda: topic.CHANGES in heard)


@pytest.mark.parametrize("how", ["fired", "released", "waited for", "retried", "moved"])
async def test_a_job_that_becomes_ready_in_any_way_is_heard_of(rig, how):
    await blocking(rig.declare, new_schedule(overlap="queue_one"))
    await blocking(rig.fire, tick_at(rig.now(), queue="mail"))
    claim = await blocking(rig.take_one)
    if how == "waited for":
        await blocking(rig.fire, tick_at(rig.later(-60), queue="mail"))
    if how == "retried":
        await blocking(rig.finish, done(claim))
    moved = await blocking(lambda: rig.add(queue="mail", delay=60))
    steps = {
        "fired": lambda: rig.fire(tick_at(rig.later(-120), queue="mail"), tick_at(rig.later(-180), queue="mail")),
        "released": lambda: rig.finish(release(claim)),
        "waited for": lambda: rig.finish(done(claim)),
        "retried": lambda: rig.command(CommandKind.RETRY, claim.id),
        "moved": lambda: rig.command(CommandKind.RESCHEDULE, moved),
    }
    if how == "fired":
        await blocking(rig.finish, done(claim))
    async with listening(rig, topic.queue("mail")) as heard:
        await blocking(steps[how])
        await eventually(lambda: topic.queue("mail") in heard)


@promises("Listener", "An open ear for hints.")
@promises("Listener.watch", "Begin to hear of these topics.")
@promises("Listener.unwatch", "Hear no more of these topics.")
async def test_only_watched_topics_are_heard_of(rig):
    async with listening(rig, topic.queue("a")) as first_heard, listening(rig) as all_heard:
        async with rig.store.wakeups(all_heard.append) as listener:
            listener.watch([topic.queue("a"), topic.queue("b")])
            await rig.store.enqueue([new_job(queue="b")])
            await eventually(lambda: topic.queue("b") in all_heard)
            listener.unwatch([topic.queue("b")])
            all_heard.clear()
            await rig.store.enqueue([new_job(queue="b")])
            await rig.store.enqueue([new_job(queue="a")])
            await eventually(lambda: topic.queue("a") in all_heard and topic.queue("a") in first_heard)
            assert topic.queue("b") not in all_heard
        assert topic.queue("b") not in first_heard


async def test_one_who_has_left_hears_nothing(rig):
    heard: list[str] = []
    async with rig.store.wakeups(heard.append) as listener:
        listener.watch([topic.queue("default")])
    heard.clear()
    async with listening(rig, topic.queue("default")) as others:
        others.clear()
        await rig.store.enqueue([new_job()])
        await eventually(lambda: others)
    assert heard == []


@promises("Listener.is_hearing", "Whether hints arrive at present.")
async def test_a_listener_hears_while_the_store_is_there(rig):
    async with rig.store.wakeups(lambda _: None) as listener:
        assert listener.is_hearing


@promises("wakeups", "However many listen, they share one connection.")
async def test_a_hundred_listeners_hold_no_more_open_than_one_does(rig):
    def held():
        return psutil.Process().num_fds(), threading.active_count()

    async with listening(rig, topic.queue("first")), AsyncExitStack() as stack:
        for_one = held()
        ears = [await stack.enter_async_context(listening(rig, topic.queue(f"q{place}"))) for place in range(100)]
        # Something that a test before has left may be closed meanwhile.
        assert all(now <= before for now, before in zip(held(), for_one, strict=True))
        await rig.store.enqueue([new_job(queue=f"q{place}") for place in range(100)])
        await eventually(lambda: [set(heard) for heard in ears] == [{topic.queue(f"q{n}")} for n in range(100)])


@promises("wakeups", "A lost hint costs at most a poll.")
async def test_what_no_hint_told_of_is_found_by_looking(rig):
    async with listening(rig):
        job_id = await blocking(rig.add)
        claimed = await blocking(rig.claim)
    assert [claim.id for claim in claimed.claims] == [job_id]
