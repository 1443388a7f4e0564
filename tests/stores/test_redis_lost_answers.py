"""An answer that is lost: the call was executed, and is made again."""

import inspect
from collections import Counter
from collections.abc import Iterator

import pytest

from drumline.clock import ManualClock, fresh_id
from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.job import JobState
from drumline.model.query import JobFilter
from drumline.stores.base import Store
from drumline.stores.redis import RedisStore
from drumline.stores.redis.scripts import SCRIPTS
from tests.conformance.test_colours import drive, play
from tests.support import valkey
from tests.support.build import done, new_job
from tests.support.makers import Maker
from tests.support.proxy import Proxy, new_proxy
from tests.support.rig import Rig
from tests.support.twins import see
from tests.support.waiting import run_together


@pytest.fixture(scope="module")
def server() -> Iterator[valkey.Valkey]:
    with valkey.new_server("--save", "", "--appendonly", "no") as made:
        yield made


@pytest.fixture
def proxy(server: valkey.Valkey) -> Iterator[Proxy]:
    with new_proxy(server.port) as made:
        yield made


def play_all(url: str) -> dict[str, object]:
    """Every operation of the protocol, one after the other, at the same instants; what can be seen in the end."""

    def open_store(address: str, clock: ManualClock) -> Store:
        store = valkey.open_store(address)
        valkey.follow(address, clock.now())
        return store

    maker = Maker("redis", open_store, follow=valkey.follow)
    rig = Rig(maker, f"{url} t{fresh_id()}", ManualClock())
    try:
        drive(play(rig), lambda op: op.run())
        return see(rig.store, rig.now())
    finally:
        rig.close()


OPERATIONS = sorted(name for name, value in vars(Store).items() if inspect.isfunction(value) and name[0] != "_")
# Asked of no server, or by plain commands that only read; a claim that stands by is one of `claim`.
WITHOUT_SCRIPT = {"close", "wakeups", "pending", "inspect", "stand_by"}
# By ids, jobs are found by a script of their own.
BY_SCRIPT = sorted({*OPERATIONS, "find", "hint"} - WITHOUT_SCRIPT)


def test_every_script_is_one_whose_answer_is_lost_here():
    assert sorted(SCRIPTS) == BY_SCRIPT


@pytest.mark.parametrize("script", sorted(set(BY_SCRIPT) - {"find", "hint"}))
def test_a_lost_answer_changes_nothing(server, proxy, script):
    proxy.lose_answer_of(script)
    assert play_all(proxy.url) == play_all(server.url)
    assert proxy.lost == 1


def test_all_answers_may_be_lost_once(server, proxy):
    proxy.lose_every(2)
    assert play_all(proxy.url) == play_all(server.url)
    assert proxy.lost > 20


def test_under_load_no_job_is_doubled_lost_or_finished_twice(server, proxy):
    proxy.lose_every(7)
    namespace = f"t{fresh_id()}"
    enqueued: list[str] = []
    finished: Counter[str] = Counter()

    def produce() -> None:
        store = RedisStore(proxy.url, namespace=namespace)
        for _ in range(40):
            jobs = [new_job() for _ in range(5)]
            enqueued.extend(answer.id for answer in store.enqueue(jobs).run())
        store.close().run()

    def work(replica: str) -> None:
        store = RedisStore(proxy.url, namespace=namespace)
        idle = 0
        while idle < 20:
            claims = store.claim(replica, [Share(ANY_QUEUE, 7)], 7, ["job"], fresh_id()).run().claims
            idle = 0 if claims else idle + 1
            answers = store.finish([done(claim) for claim in claims]).run() if claims else []
            finished.update(claim.id for claim, is_applied in zip(claims, answers, strict=True) if is_applied)
        store.close().run()

    store = RedisStore(server.url, namespace=namespace)
    store.migrate().run()
    run_together(produce, produce, lambda: work("r1:1"), lambda: work("r2:1"))
    rest = store.claim("r3:1", [Share(ANY_QUEUE, 1000)], 1000, ["job"], fresh_id()).run().claims
    store.finish([done(claim) for claim in rest]).run()
    finished.update(claim.id for claim in rest)
    assert sorted(finished.elements()) == sorted(enqueued)
    assert len(enqueued) == 400
    (count,) = store.counts().run()
    assert (count.done, count.total_done, count.running, count.ready) == (400, 400, 0, 0)
    attempts = [job.attempts for job in store.jobs(JobFilter(ids=tuple(enqueued))).run().items]
    assert {len(lines) for lines in attempts} == {1}
    assert {job.state for job in store.jobs(JobFilter(), limit=10).run().items} == {JobState.DONE}
    assert proxy.lost > 5
    store.close().run()
