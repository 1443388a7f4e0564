"""What is kept of sealed jobs, on every store."""

from base64 import b64encode

import msgspec
import pytest

from drumline.model.job import Failure
from drumline.model.query import CommandKind, JobFilter
from drumline.model.sealed import Resealing, is_spoiled
from drumline.sealing import KeyRing, generate_key
from drumline.stores.sealed import SealedStore
from tests.support.build import dead, done, new_job, new_schedule, retry, tick_at, unique

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
