"""What a store makes of a server that is away, comes back, or is not what it should be."""

import asyncio
import os
import resource
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest

from drumline.errors import BadSettings, SchemaMismatch, StoreUnreachable, StoreUnusable
from drumline.model.claim import Share
from drumline.model.job import Enqueued, JobState
from drumline.model.query import JobFilter, Keep
from drumline.stores.base import topic
from drumline.stores.open import open_store
from drumline.stores.postgres import PostgresStore, session
from tests.support.build import BY, REPLICA, done, new_job, new_schedule, note, tick_at, unique
from tests.support.postgres import Server, new_server, shared_url
from tests.support.waiting import eventually

READ_ONLY = "default_transaction_read_only=on"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of these tests' own, for they stop and kill it."""
    with new_server() as running:
        yield running


@pytest.fixture
def store(server: Server) -> Iterator[PostgresStore]:
    made = PostgresStore(server.url)
    made.migrate().run()
    yield made
    made.close().run()


def terminate_all(server: Server) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where pid <> pg_backend_pid() and backend_type = 'client backend'"
        )


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_restart_between_two_steps_is_not_noticed(server, store, how):
    (answer,) = store.enqueue([new_job()]).run()
    getattr(server, how)()
    server.start()
    (claim, *_) = store.claim(REPLICA, [Share("*", 100)], 100, ["job"], how).run().claims[-1:]
    assert claim.id == answer.id
    assert store.finish([done(claim)]).run() == [True]


@pytest.mark.asyncio
async def test_who_falls_asleep_inside_a_step_does_not_keep_its_job_from_the_fleet(server, store, monkeypatch):
    store.enqueue([new_job()]).run()
    (claim, *_) = store.claim(REPLICA, [Share("*", 100)], 100, ["job"], "asleep").run().claims[-1:]
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("update drumline.job set lease = 1 where id = %s::uuid", [claim.id])
    asleep, woken = threading.Event(), threading.Event()

    def sleep_once(place: str) -> None:
        if place == "store.before_commit" and not asleep.is_set():
            asleep.set()
            assert woken.wait(30)

    begin = session._BEGIN.replace("session_timeout = '10s'", "session_timeout = '200ms'")  # noqa: SLF001
    assert "200ms" in begin
    monkeypatch.setattr(session, "_BEGIN", begin)
    monkeypatch.setattr(session, "failpoint", sleep_once)
    with ThreadPoolExecutor(1) as sleeper:
        said = sleeper.submit(lambda: store.report([note(claim, progress=0.5)]).run())
        try:
            assert asleep.wait(30)
            await eventually(lambda: claim.ref in [lost.ref for lost in store.expired(100).run()])
        finally:
            woken.set()
        # It begins its step anew, and the claim is still its own.
        assert said.result(30) == [True]


def test_a_due_job_that_somebody_has_locked_is_not_asked_for_without_a_pause(server, store):
    job = new_job(delay=0.001)
    store.enqueue([job]).run()
    with psycopg.connect(server.url) as connection:
        connection.execute("select id from drumline.job for update")
        connection.execute("select pg_sleep(0.01)")
        claimed = store.claim(REPLICA, [Share("*", 1)], 1, ["job"], "one").run()
        assert claimed.claims == []
        assert claimed.next_due is not None
        assert claimed.next_due > claimed.now
    claimed = store.claim(REPLICA, [Share("*", 1)], 1, ["job"], "two").run()
    assert [claim.id for claim in claimed.claims] == [job.id]


@pytest.fixture
def many_files() -> Iterator[None]:
    """Descriptors that are opened from now on have numbers beyond a thousand."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    with ExitStack() as stack:
        for _ in range(1100):
            stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.asyncio
async def test_hints_are_heard_in_a_process_with_very_many_open_files(server, store, many_files):
    heard: list[str] = []
    other = PostgresStore(server.url)
    async with store.wakeups(heard.append) as listener:
        listener.watch([topic.queue("mail")])
        await other.enqueue([new_job(queue="mail")])
        await eventually(lambda: topic.queue("mail") in heard)
    await other.close()


def test_terminated_connections_are_replaced(server, store):
    for _ in range(3):
        store.enqueue([new_job()]).run()
        terminate_all(server)
    assert len(store.jobs(JobFilter(task="job")).run().items) >= 3


def test_while_the_server_is_away_every_step_says_so_and_then_all_is_well(server, store):
    job = new_job("away")
    server.stop()
    try:
        for step in (store.enqueue([job]), store.now(), store.counts(), store.enqueue([new_job(key="k")])):
            with pytest.raises(StoreUnreachable, match="out of reach"):
                step.run()
    finally:
        server.start()
    assert store.enqueue([job]).run()[0].created
    assert store.enqueue([job]).run()[0].created is False


def test_a_standby_is_away_until_it_is_the_primary(server, store):
    server.stop()
    server.start(READ_ONLY)
    try:
        with pytest.raises(StoreUnreachable, match="read-only"):
            store.enqueue([new_job()]).run()
        store.jobs(JobFilter()).run()
    finally:
        server.stop()
        server.start()
    assert store.enqueue([new_job()]).run()[0].created


def test_concurrent_callers_each_meet_the_error(server, store):
    async def enqueue_many() -> list[object]:
        calls = (store.enqueue([new_job()]) for _ in range(50))
        return list(await asyncio.gather(*calls, return_exceptions=True))

    server.stop()
    try:
        assert {type(answer) for answer in asyncio.run(enqueue_many())} == {StoreUnreachable}
    finally:
        server.start()
    assert all(isinstance(answer, list) for answer in asyncio.run(enqueue_many()))


def test_a_key_in_an_open_transaction_is_waited_for_and_holds_up_nobody_else(server, store):
    with psycopg.connect(server.url) as own:
        (held,) = store.enqueue([new_job(key=unique("held"))], tx=own).run()
        # Others are served meanwhile.
        assert store.enqueue([new_job()]).run()[0].created
        own.commit()
    (answer,) = store.enqueue([new_job(key=unique("held"))]).run()
    assert (answer.id, answer.created) == (held.id, False)


@pytest.mark.asyncio
async def test_a_listener_goes_deaf_and_hears_again_after_a_restart(server, store):
    heard: list[str] = []
    async with store.wakeups(heard.append) as ear:
        ear.watch([topic.queue("default"), topic.CHANGES])
        assert ear.is_hearing
        await asyncio.to_thread(server.stop)
        await eventually(lambda: not ear.is_hearing and topic.CHANGES in heard)
        # On this very thread: the server ends with the thread that started it.
        server.start()
        await eventually(lambda: ear.is_hearing)
        heard.clear()
        other = PostgresStore(server.url)
        await other.enqueue([new_job()])
        await eventually(lambda: topic.queue("default") in heard)
        await other.close()


@pytest.mark.asyncio
async def test_the_end_of_a_job_is_heard_of_in_another_process_that_waits_for_it(store, server):
    other = PostgresStore(server.url)
    ids = [answer.id for answer in await other.enqueue([new_job("ending") for _ in range(3)])]
    claimed = await other.claim(REPLICA, [Share("*", 3)], 3, ["ending"], ids[0])
    first, second, third = claimed.claims
    await other.finish([done(first)])
    heard: list[str] = []
    async with store.wakeups(heard.append) as ear:
        # One that has ended already, and one that will.
        ear.watch([topic.ended(first.id), topic.ended(second.id)])
        await eventually(lambda: topic.ended(first.id) in heard)
        await other.finish([done(second), done(third)])
        await eventually(lambda: topic.ended(second.id) in heard)
    assert topic.ended(third.id) not in heard
    await other.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [("nobody:pass-word@", "refuses"), ("drumline:pass-word@", "no such database|refuses")],
)
def test_a_server_that_refuses_is_told_from_one_that_is_away_and_no_password_is_shown(server, change, said):
    url = server.url.replace("drumline@", change).replace("/postgres", "/nothing")
    with pytest.raises(StoreUnusable, match=said) as raised:
        PostgresStore(url).now().run()
    assert "pass-word" not in str(raised.value)


def test_a_namespace_that_was_never_migrated_is_told(server):
    with pytest.raises(SchemaMismatch, match="drumline migrate"):
        PostgresStore(server.url, namespace="empty").enqueue([new_job()]).run()


@pytest.mark.parametrize("namespace", ['a"b', "", "1a", "a" * 42, "a;drop", "ä"])
def test_a_namespace_that_is_no_plain_name_is_refused(namespace):
    with pytest.raises(BadSettings, match="namespace"):
        PostgresStore("postgresql://localhost/x", namespace=namespace)


def test_two_namespaces_of_one_database_do_not_meet(server, store):
    other = PostgresStore(server.url, namespace="shop.two-b")
    other.migrate().run()
    other.enqueue([new_job("of the other".replace(" ", "_"))]).run()
    assert store.jobs(JobFilter(task="of_the_other")).run().items == []
    assert len(other.jobs(JobFilter()).run().items) == 1
    other.close().run()


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_both_schemes_open_a_postgres_store(scheme):
    url = shared_url().replace("postgresql:", f"{scheme}:")
    store = open_store(url, namespace="opened")
    assert store.kind == "postgres"
    store.migrate().run()
    assert store.counts().run() == []
    store.close().run()


SLOW_ENDING = """
create function drumline.wait_at_commit() returns trigger language plpgsql as
  'begin perform pg_advisory_xact_lock(7); return null; end';
create constraint trigger slow after insert on drumline.history
  deferrable initially deferred for each row execute function drumline.wait_at_commit();
"""


@pytest.mark.asyncio
async def test_an_enqueue_that_is_repeated_while_its_job_ends_makes_no_second_one(server, store):
    job = new_job()
    await store.enqueue([job])
    claims = (await store.claim(REPLICA, [Share("*", 100)], 100, ["job"], "repeated")).claims
    (claim,) = [claim for claim in claims if claim.id == job.id]
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(SLOW_ENDING)
        try:
            admin.execute("select pg_advisory_lock(7)")
            finishing = asyncio.ensure_future(store.finish([done(claim)]))
            await eventually(lambda: count_waiting(admin) == 1)
            repeating = asyncio.ensure_future(store.enqueue([job]))
            await eventually(lambda: count_waiting(admin) == 2)
            admin.execute("select pg_advisory_unlock(7)")
            assert await finishing == [True]
            assert await repeating == [Enqueued(job.id, JobState.DONE, created=False)]
        finally:
            admin.execute("select pg_advisory_unlock_all()")
            admin.execute("drop function drumline.wait_at_commit() cascade")
    assert [found.state for found in (await store.jobs(JobFilter(ids=(job.id,)))).items] == [JobState.DONE]


def count_waiting(admin: psycopg.Connection) -> int:
    ((number,),) = admin.execute("select count(*) from pg_stat_activity where wait_event_type = 'Lock'").fetchall()
    return int(number)


@pytest.mark.asyncio
async def test_a_purge_waits_for_no_schedule_of_which_nothing_is_to_be_forgotten(server, store):
    await store.declare([new_schedule("fresh")], by=BY)
    await store.fire([tick_at(await store.now(), "fresh")], by=REPLICA)
    with psycopg.connect(server.url) as connection:
        connection.execute("select name from drumline.schedule for update")
        await asyncio.wait_for(store.purge(Keep()), 5)
