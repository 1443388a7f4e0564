import pytest

from drumline.model.query import PauseKind
from drumline.model.sealed import Resealing
from tests.support.build import dead, done, new_job, new_schedule, retry, tick_at, unique
from tests.support.promises import promises

CLEAR = b'{"n":1}'
SEALED = b'"drumline:sealed:1:k:j:AAAA"'


def reseal(rig, *resealings):
    return rig.store.reseal(resealings).run()


def of_job(job_id, before=CLEAR, after=SEALED):
    return Resealing(job=job_id, before=before, after=after)


@promises("reseal", "Write arguments in another form where they still stand as they were read, and say where.")
def test_arguments_are_written_anew_where_they_stand_as_they_were_read(rig):
    first, second = rig.add(args=CLEAR), rig.add(args=b'{"n":2}', tags=("t",), meta={"m": 1}, delay=60)
    other = rig.job(second)
    assert reseal(rig, of_job(first), of_job(second), of_job("no id"), of_job(new_job().id)) == [True, *[False] * 3]
    assert rig.job(first).args == SEALED
    assert rig.job(second) == other


@promises("reseal", "Nothing else of a job changes, whatever its state,")
@pytest.mark.parametrize("size", [1, 300, 70_000])
def test_nothing_else_of_a_job_changes(rig, size):
    after = b'"%s"' % (b"x" * size)
    waiting = rig.add(args=CLEAR, tags=("a",), meta={"m": [1]}, key="k", delay=60, queue="q", priority=3)
    ended = [rig.end(how, args=CLEAR, tags=("a",)) for how in (done, dead)]
    for job_id in (waiting, *ended):
        before = rig.job(job_id)
        assert reseal(rig, of_job(job_id, after=after)) == [True]
        assert rig.job(job_id) == type(before)(**{**_fields(before), "args": after})
        assert reseal(rig, of_job(job_id, before=after, after=CLEAR)) == [True]
        assert rig.job(job_id) == before


@promises("reseal", "and a live claim stays good.")
def test_a_live_claim_stays_good(rig):
    claim = rig.start(args=CLEAR)
    assert reseal(rig, of_job(claim.id)) == [True]
    assert rig.finish(retry(claim)) == [True]
    rig.advance(3600)
    assert rig.take_one().args == SEALED


def test_arguments_that_were_replaced_meanwhile_are_not_undone(rig):
    job_id = rig.add(args=CLEAR, key="k")
    rig.enqueue(new_job(args=b'{"n":2}', key=unique("k", on_conflict="replace")))
    assert reseal(rig, of_job(job_id)) == [False]
    assert rig.job(job_id).args == b'{"n":2}'


@promises("reseal", "A schedule gets a new version, and goes on as it was.")
def test_a_schedule_gets_a_new_version_and_goes_on_as_it_was(rig):
    rig.declare(new_schedule(args=CLEAR, meta={"m": 1}))
    rig.advance(60)
    rig.fire(tick_at(rig.now()))
    rig.pause(PauseKind.SCHEDULE, "tock")
    before = rig.schedule()
    rows = rig.ticks()
    rig.advance(5)
    one = Resealing(schedule="tock", before=CLEAR, after=SEALED)
    assert reseal(rig, one, Resealing(schedule="none", before=CLEAR, after=SEALED)) == [True, False]
    after = rig.schedule()
    assert after.version > before.version
    schedule = type(before.schedule)(**{**_fields(before.schedule), "args": SEALED})
    assert after == type(before)(**{**_fields(before), "schedule": schedule, "version": after.version})
    assert rig.ticks() == rows
    assert reseal(rig, Resealing(schedule="tock", before=b"{}", after=CLEAR)) == [False]


@promises("reseal", "A repeat after a lost reply answers True.")
def test_a_repeat_answers_true_and_changes_nothing(rig):
    rig.declare(new_schedule(args=CLEAR))
    job_id = rig.add(args=CLEAR)
    asked = (of_job(job_id), Resealing(schedule="tock", before=CLEAR, after=SEALED))
    assert reseal(rig, *asked) == [True, True]
    version = rig.schedule().version
    assert reseal(rig, *asked) == [True, True]
    assert rig.schedule().version == version


def _fields(struct):
    return {name: getattr(struct, name) for name in struct.__struct_fields__}
