"""A server that dies while another takes over: under a sentinel, and in a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redis import Redis

from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.query import JobFilter
from drumline.stores.redis import RedisStore
from tests.support.build import done, new_job
from tests.support.cluster import new_cluster, new_watched
from tests.support.ports import free_port
from tests.support.valkey import Valkey

# A replica is put in its master's place after a second or two.
PATIENCE = 30.0


@contextmanager
def opened(url: str) -> Iterator[RedisStore]:
    store = RedisStore(url, namespace="t", patience=PATIENCE)
    try:
        store.migrate().run()
        yield store
    finally:
        store.close().run()


def wait_for_replica(master: Valkey) -> None:
    """Let the replica have what was acknowledged: a master may die before it has passed it on."""
    with Redis(port=master.port) as client:
        # A write of this connection's own, for which it can wait.
        client.publish("nobody", "")
        replicas: Any = client.execute_command("WAIT", 1, 5000)
        assert replicas == 1


def survive(store: RedisStore, master: Valkey) -> None:
    jobs = [new_job() for _ in range(20)]
    store.enqueue(jobs).run()
    claims = store.claim("r1:1", [Share(ANY_QUEUE, 5)], 5, ["job"], "t1").run().claims
    wait_for_replica(master)
    master.kill()
    assert store.finish([done(claim) for claim in claims]).run() == [True] * 5
    assert {job.id for job in store.jobs(JobFilter()).run().items} == {job.id for job in jobs}
    rest = store.claim("r1:1", [Share(ANY_QUEUE, 99)], 99, ["job"], "t2").run().claims
    assert len(rest) == 15
    (count,) = store.counts().run()
    assert (count.done, count.running) == (5, 15)


def test_work_goes_on_when_a_sentinel_replaces_the_master():
    with new_watched() as watched, opened(watched.url) as store:
        survive(store, watched.master)


def test_a_sentinel_that_is_away_does_not_hide_the_others():
    with new_watched() as watched:
        nobody = f"127.0.0.1:{free_port()},"
        with opened(watched.url.replace("127.0.0.1:", f"{nobody}127.0.0.1:", 1)) as store:
            assert store.enqueue([new_job()]).run()[0].created


def test_a_replica_confirms_an_enqueue():
    with new_watched() as watched:
        store = RedisStore(watched.url, namespace="t", confirm="replica")
        store.migrate().run()
        jobs = [new_job() for _ in range(3)]
        store.enqueue(jobs).run()
        # Nothing more is waited for: what was acknowledged is there already.
        with Redis(port=watched.replica.port) as client:
            assert client.zcard("{t}:created") == len(jobs)
        store.close().run()


def test_work_goes_on_when_a_cluster_loses_the_master_of_the_namespace():
    with new_cluster() as cluster, opened(cluster.url) as store:
        survive(store, cluster.master_of("t"))


def test_any_node_of_a_cluster_knows_where_the_namespace_is():
    with new_cluster() as cluster:
        for node in cluster.nodes:
            with opened(f"redis+cluster://127.0.0.1:{node.port}") as store:
                assert store.enqueue([new_job()]).run()[0].created
        with opened(cluster.url) as store:
            assert len(store.jobs(JobFilter()).run().items) == len(cluster.nodes)
