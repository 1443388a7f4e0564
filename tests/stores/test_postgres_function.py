"""Enqueue by SQL alone: for other languages, and for triggers."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from drumline.model.claim import Share
from drumline.model.job import JobState
from drumline.model.options import JobOptions
from drumline.model.query import JobFilter
from drumline.stores.base import topic
from drumline.stores.postgres import PostgresStore
from tests.support.build import REPLICA, done, new_job
from tests.support.postgres import new_address
from tests.support.waiting import eventually


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    url, _, namespace = new_address().partition(" ")
    made = PostgresStore(url, namespace=namespace)
    made.migrate().run()
    yield made
    made.close().run()


@pytest.fixture
def own(store: PostgresStore) -> Iterator[psycopg.Connection]:
    url = store.place.url
    with psycopg.connect(url, options=f"-c search_path={store.place.namespace}") as connection:
        yield connection


def call(own: psycopg.Connection, words: str, *params: Any) -> str:
    row = own.execute(f"select enqueue({words})::text", params).fetchone()
    assert row is not None
    job_id: str = row[0]
    return job_id


def test_a_job_made_by_sql_is_like_any_other(store, own):
    given = json.dumps({"user_id": 42})
    job_id = call(own, "'mail.send', %s, queue => 'mail', priority => 5, max_attempts => 3", given)
    assert store.jobs(JobFilter()).run().items == []
    own.commit()
    (job,) = store.jobs(JobFilter()).run().items
    assert (job.id, job.task, job.queue, job.state, job.origin) == (job_id, "mail.send", "mail", JobState.READY, "sql")
    assert (json.loads(job.args), job.options) == (
        {"user_id": 42},
        JobOptions(queue="mail", priority=5, max_attempts=3),
    )
    (claim,) = store.claim(REPLICA, [Share("mail", 1)], 1, ["mail.send"], "t").run().claims
    assert store.finish([done(claim)]).run() == [True]
    assert [(count.queue, count.done, count.ready) for count in store.counts().run()] == [("mail", 1, 0)]


def test_a_delayed_one_waits_and_one_that_is_rolled_back_never_was(store, own):
    call(own, "'job', delay => '1 hour'")
    own.commit()
    call(own, "'job'")
    own.rollback()
    (job,) = store.jobs(JobFilter()).run().items
    assert (job.state, (job.due_at - job.created_at).total_seconds()) == (JobState.DELAYED, 3600)
    assert [(count.ready, count.delayed) for count in store.counts().run()] == [(0, 1)]


def test_a_key_that_is_held_answers_with_its_holder(store, own):
    first = call(own, "'job', key => 'k'")
    assert call(own, "'job', key => 'k'") == first
    own.commit()
    (answer,) = store.enqueue([new_job(key="k")]).run()
    assert (answer.id, answer.created) == (first, False)


def test_ids_are_in_the_order_of_their_making(own):
    ids = [call(own, "'job'") for _ in range(50)]
    assert len(set(ids)) == 50
    assert sorted(ids, key=lambda job_id: job_id[:13]) == ids


@pytest.mark.parametrize(
    "words",
    [
        "'no such name!'",
        "'job', '[1]'",
        "'job', priority => 101",
        "'job', queue => '@private'",
        "'job', max_attempts => 0",
    ],
)
def test_what_no_job_can_have_is_refused(store, own, words):
    with pytest.raises(psycopg.errors.RaiseException):
        call(own, words)


@pytest.mark.asyncio
async def test_workers_hear_of_it_at_the_commit_unless_it_is_turned_off(store, own):
    heard: list[str] = []
    async with store.wakeups(heard.append) as ear:
        ear.watch([topic.queue("default"), topic.queue("quiet")])
        call(own, "'job', queue => 'quiet', hint => false")
        call(own, "'job'")
        own.commit()
        await eventually(lambda: topic.queue("default") in heard)
    assert topic.queue("quiet") not in heard
