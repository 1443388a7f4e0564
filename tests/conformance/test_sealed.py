"""What is kept of sealed jobs, on every store."""

import asyncio
from base64 import b64encode

import msgspec
import pytest

from drumline.clock import fresh_id
from drumline.engine.rekey import rekey
from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.job import Failure
from drumline.model.query import CommandKind, JobFilter
from drumline.model.sealed import Resealing, is_spoiled
from drumline.sealing import KeyRing, generate_key
from drumline.stores.sealed import SealedStore
from tests.support.build import REPLICA, TASK, dead, done, new_job, new_schedule, retry, tick_at, unique
from tests.support.waiting import run_together

SECRET = "s3cr3t-of-ada"
ARGS = b'{"word":"%s"}' % SECRET.encode()
OLD, NEW = generate_key(), generate_key()


@pytest.fixture
def sealed(rig):
    """A rig whose store is sealed; `plain` is the store behind it."""
    rig.plain, rig.store = rig.store, SealedStore(rig.store, KeyRing(OLD))
    return rig


def stored(rig, job_id):
    """The job as the store holds it."""
    return rig.plain.jobs(JobFilter(ids=(job_id,))).run().items[0]


def test_no_secret_is_in_the_store(sealed):
    sealed.declare(new_schedule(args=ARGS))
    sealed.advance(60)
    sealed.fire(tick_at(sealed.now(), args=ARGS))
    sealed.add(args=ARGS, delay=60)
    sealed.end(lambda claim: done(claim, result=b'"%s"' % SECRET.encode()), task="other", args=ARGS)
    boom = Failure("KeyError", f"'{SECRET}'", f"Traceback: {SECRET}")
    sealed.end(lambda claim: dead(claim, error=boom), task="third", args=ARGS)
    if sealed.maker.age is None:
        kept = repr([msgspec.to_builtins(job) for job in sealed.plain.jobs(JobFilter()).run().items])
    else:
        kept = repr(sealed.maker.age(sealed.address)())
    assert "KeyError" in kept
    for form in (SECRET, b64encode(SECRET.encode()).decode(), SECRET.encode().hex()):
        assert form not in kept


def test_what_was_sealed_comes_out_in_clear(sealed):
    claim = sealed.start(args=ARGS)
    assert claim.args == ARGS
    assert sealed.finish(done(claim, result=b'"%s"' % SECRET.encode())) == [True]
    job = sealed.job(claim.id)
    assert (job.args, job.result) == (ARGS, b'"%s"' % SECRET.encode())
    assert ARGS not in stored(sealed, claim.id).args


def test_a_retry_and_a_revival_keep_what_can_be_opened(sealed):
    claim = sealed.start(args=ARGS)
    assert sealed.finish(retry(claim)) == [True]
    sealed.advance(3600)
    again = sealed.take_one()
    assert again.args == ARGS
    assert sealed.finish(dead(again)) == [True]
    sealed.command(CommandKind.RETRY, claim.id)
    assert sealed.take_one().args == ARGS


def test_a_job_that_is_replaced_opens_under_the_id_that_stands(sealed):
    job_id = sealed.add(args=b'{"n":1}', key="k", delay=60)
    (answer,) = sealed.enqueue(new_job(args=ARGS, key=unique("k", on_conflict="replace")))
    assert (answer.id, answer.replaced) == (job_id, True)
    assert sealed.take_one().args == ARGS


def test_a_schedule_declared_again_has_not_changed(sealed):
    assert sealed.declare(new_schedule(args=ARGS)) == [True]
    assert sealed.declare(new_schedule(args=ARGS)) == [False]
    assert sealed.schedule().schedule.args == ARGS


def test_a_scheduler_without_the_key_fires_jobs_that_a_worker_with_it_can_read(sealed):
    sealed.declare(new_schedule(args=ARGS))
    sealed.advance(60)
    (status,) = sealed.plain.schedules(["tock"]).run()
    sealed.plain.fire([tick_at(sealed.now(), args=status.schedule.args)], by="r1:1").run()
    assert sealed.take_one().args == ARGS


def test_a_body_that_was_moved_to_another_job_does_not_open(sealed):
    first, second = sealed.add(args=ARGS), sealed.add(args=b'{"n":2}')
    taken, place = stored(sealed, first).args, stored(sealed, second).args
    assert sealed.plain.reseal([Resealing(job=second, before=place, after=taken)]).run() == [True]
    assert is_spoiled(sealed.job(second).args)
    assert sealed.job(first).args == ARGS


def test_without_the_key_a_body_comes_out_sealed(sealed):
    job_id = sealed.add(args=ARGS)
    sealed.store = SealedStore(sealed.plain, KeyRing(NEW))
    assert sealed.take_one().args == stored(sealed, job_id).args


def test_keys_are_rotated_while_jobs_are_claimed_finished_and_replaced(sealed):
    many = 120
    sealed.enqueue(*(new_job(args=b'{"n":%d}' % number) for number in range(many)))
    sealed.enqueue(new_job("other", args=b'{"n":0}', key="k", delay=3600))
    ring = KeyRing(NEW, [OLD])
    seen: list[bytes] = []

    def work():
        store = SealedStore(sealed.another(), ring)
        while len(seen) < many:
            claims = store.claim(REPLICA, [Share(ANY_QUEUE, 7)], 7, [TASK], fresh_id()).run().claims
            seen.extend(claim.args for claim in claims)
            assert all(store.finish([done(claim) for claim in claims]).run())

    def replace():
        # Of a process that has not heard of the new key yet.
        store = SealedStore(sealed.another(), KeyRing(OLD))
        for number in range(1, 30):
            key = unique("k", on_conflict="replace")
            (answer,) = store.enqueue([new_job("other", args=b'{"n":%d}' % number, key=key, delay=3600)]).run()
            assert answer.replaced

    def rotate():
        store = SealedStore(sealed.another(), ring)
        for _ in range(3):
            assert asyncio.run(rekey(store)).left <= 1

    plain = sealed.plain
    sealed.store = plain
    run_together(work, replace, rotate)
    assert sorted(seen) == sorted(b'{"n":%d}' % number for number in range(many))
    (waiting,) = SealedStore(plain, ring).jobs(JobFilter(task="other")).run().items
    assert waiting.args == b'{"n":29}'
    asyncio.run(rekey(SealedStore(sealed.another(), ring)))
    (waiting,) = SealedStore(plain, KeyRing(NEW)).jobs(JobFilter(task="other")).run().items
    assert waiting.args == b'{"n":29}'
