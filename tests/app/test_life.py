"""Opening, closing, and use from more than one event loop and thread."""

import asyncio
import threading
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from drumline import BadOption, BadSettings, Context, Drumline, StoreUnreachable, opening
from drumline.stores.memory import MemoryStore
from tests.support.waiting import run_together
from tests.support.wire import Wire


def declare(drum):
    @drum.task
    async def greet(ctx: Context, name: str) -> str:
        return f"hello {name}"

    return greet


async def run_one(drum, greet, name):
    job = await greet.enqueue(name)
    return await job.wait(timeout="20s")


def test_without_a_url_the_store_is_a_file_in_the_working_folder(folder):
    drum = Drumline()
    greet = declare(drum)

    async def enqueue():
        async with drum:
            await greet.enqueue("Ada")

    asyncio.run(enqueue())
    assert (folder / "drumline.db").exists()


@asynccontextmanager
async def open_nothing():
    yield None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"url": "nonsense"}, "store URL 'nonsense': expected postgresql://user@host/database, redis://"),
        ({"url": "mysql://u:secret@h/d"}, "store URL 'mysql://u:***@h/d': expected postgresql://"),
        ({"url": "sqlite://jobs.db"}, "store URL 'sqlite://jobs.db': expected postgresql://"),
        ({"url": "redis://[half"}, "store URL 'redis://[half': expected postgresql://"),
        ({"url": Path("jobs.db")}, "store URL must be a text: expected postgresql://"),
        (
            {"namespace": "bad name"},
            "Drumline: namespace must be 1 to 41 letters, digits or any of _ . : -, not a digit",
        ),
        ({"namespace": 7}, "Drumline: namespace must be 1 to 41 letters"),
        ({"imports": "json"}, "Drumline: imports must be a list of names of modules, got 'json'"),
        ({"imports": [asyncio]}, "Drumline: imports must be a list of names of modules, got [<module"),
        ({"lifespan": 5}, "Drumline: lifespan must be a function that gives an async context manager, got 5"),
        ({"lifespan": open_nothing()}, "Drumline: lifespan must be a function that gives an async context manager"),
    ],
)
def test_what_a_drumline_cannot_be_made_of_is_refused_at_once(given, says):
    with pytest.raises((BadOption, BadSettings)) as refused:
        Drumline(**given)
    assert str(refused.value).startswith(says)


def test_declaring_and_making_calls_touches_no_store(folder):
    greet = declare(Drumline("sqlite:///jobs.db"))
    greet.call("Ada")
    assert list(folder.iterdir()) == []


def test_async_with_opens_and_closes_and_it_opens_again_when_used(any_drum):
    greet = declare(any_drum)

    async def use():
        async with any_drum as same:
            assert same is any_drum
            if any_drum.settings.store.url != "memory://":
                return (await greet.enqueue("Ada")).id
        return None

    kept = asyncio.run(use())
    if kept is not None:
        assert any_drum.sync.jobs.get(kept).info.args == b'{"name":"Ada"}'


def test_one_program_is_used_from_one_event_loop_after_another(any_drum):
    greet = declare(any_drum)

    async def once(name):
        job = await greet.enqueue(name)
        await any_drum.run(drain=True)
        return await job.wait(timeout="20s")

    assert [asyncio.run(once(name)) for name in ("Ada", "Bob")] == ["hello Ada", "hello Bob"]


@pytest.mark.asyncio
async def test_one_program_is_used_from_two_event_loops_and_from_threads_at_once(any_drum):
    greet = declare(any_drum)
    # Ready before all use it at once; what happens otherwise is a test of its own.
    await any_drum.store()
    run = asyncio.create_task(any_drum.run())

    def in_another_loop():
        return asyncio.run(run_one(any_drum, greet, "loop"))

    def blocking():
        return any_drum.sync.wait(greet.enqueue_sync("thread"), timeout="20s")

    answers, here = await asyncio.gather(
        asyncio.to_thread(run_together, in_another_loop, blocking, blocking), run_one(any_drum, greet, "here")
    )
    assert [*answers, here] == ["hello loop", "hello thread", "hello thread", "hello here"]
    run.cancel()
    await asyncio.wait([run])


@pytest.mark.asyncio
async def test_what_the_lifespan_yields_is_the_state_of_every_job():
    @asynccontextmanager
    async def open_state():
        yield {"db": "ours"}

    drum = Drumline("memory://", lifespan=open_state)

    @drum.task
    async def use(ctx: Context) -> str:
        return str(ctx.state["db"])

    job = await use.enqueue()
    await drum.run(drain=True)
    assert await job.wait() == "ours"


@pytest.mark.asyncio
async def test_only_the_named_queues_are_served(drum):
    greet = declare(drum)
    mine, other = await greet.using(queue="mine").enqueue("a"), await greet.enqueue("b")
    await drum.run(queues=["mine"], concurrency=1, drain=True)
    assert ((await mine.refresh()).state, (await other.refresh()).state) == ("done", "ready")


@pytest.mark.asyncio
async def test_the_role_may_be_given_by_its_name(drum):
    @drum.task
    async def look() -> list[str]:
        return [replica.info.role.value for replica in await drum.workers()]

    job = await look.enqueue()
    await drum.run(role="worker", drain=True)
    assert await job.wait() == ["worker"]


@pytest.mark.asyncio
async def test_a_role_that_does_not_exist_is_refused_by_name(drum):
    with pytest.raises(BadOption, match='role must be "combined" or "worker" or "scheduler" or "web", got \'boss\''):
        await drum.run(role="boss")


def wired(monkeypatch):
    wire = Wire(MemoryStore())
    monkeypatch.setattr("drumline.opening.open_store", lambda *_, **__: wire)
    return wire


@pytest.mark.asyncio
async def test_a_store_that_could_not_be_made_ready_is_tried_again(drum, monkeypatch):
    wire, greet = wired(monkeypatch), declare(drum)
    wire.fail("migrate", times=2)
    with pytest.raises(StoreUnreachable):
        await greet.enqueue("Ada")
    with pytest.raises(StoreUnreachable):
        greet.enqueue_sync("Ada")
    assert (await greet.enqueue("Ada")).created
    greet.enqueue_sync("Ada")
    assert len(wire.asked("migrate")) == 3


@pytest.mark.asyncio
async def test_nobody_uses_the_store_before_it_is_ready(drum, monkeypatch):
    wire, greet = wired(monkeypatch), declare(drum)
    hold = wire.hold("migrate")
    enqueues = [asyncio.create_task(greet.enqueue(str(number))) for number in range(2)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert wire.asked("enqueue") == []
    hold.let_go()
    assert [job.created for job in await asyncio.gather(*enqueues)] == [True, True]


@pytest.mark.asyncio
async def test_a_program_that_may_not_migrate_does_not(monkeypatch):
    monkeypatch.setenv("DRUMLINE_STORE__AUTO_MIGRATE", "false")
    wire, drum = wired(monkeypatch), Drumline("memory://")
    await declare(drum).enqueue("Ada")
    assert wire.asked("migrate") == []


def test_threads_that_come_at_once_open_one_store(folder, monkeypatch):
    entered = threading.Barrier(2)
    made: list[object] = []

    def open_slowly(url, **given):
        # The other one gets as far as it can, unless it waits for this one.
        with suppress(threading.BrokenBarrierError):
            entered.wait(1)
        made.append(MemoryStore())
        return made[-1]

    monkeypatch.setattr(opening, "open_store", open_slowly)
    greet = declare(Drumline("memory://"))
    run_together(*[lambda: greet.enqueue_sync("Ada")] * 2)
    assert len(made) == 1
