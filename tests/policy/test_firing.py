from datetime import UTC, datetime, timedelta
from uuid import UUID

from drumline.model.job import Source
from drumline.model.options import JobOptions
from drumline.model.schedule import Coordination, Decision, Rule, Schedule, ScheduleStatus
from drumline.policy.due import Ruling
from drumline.policy.firing import backfill_firing, orphan_firing, start_firing, tick_firings, trigger_firing

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
MARK = str(int(AT.timestamp() * 1000))
JOB = "01890000-0000-7000-8000-000000000000"


def schedule(**given):
    rule = Rule(every=timedelta(seconds=10), **({"jitter": given.pop("jitter")} if "jitter" in given else {}))
    options = JobOptions(queue="low", max_attempts=3)
    return Schedule(
        **{"name": "tock", "task": "f", "rule": rule, "options": options, "args": b"[1]", "tags": ("t",), **given}
    )


def status(**given):
    return ScheduleStatus(schedule=schedule(**given), version=7, declared_at=AT, begun_at=AT, last_tick=AT)


def job_of(firing):
    assert firing.job is not None
    return firing.job


def fire_one(ruling, replica="r1:1", **given):
    (firing,) = tick_firings(status(**given), (ruling,), replica)
    return firing


FIRED = Ruling(instant=AT, decision=Decision.FIRED, reason="on time")


def test_a_tick_that_fires_has_a_job_as_its_schedule_says():
    firing = fire_one(FIRED, meta={"m": 1})
    assert (firing.schedule, firing.mark, firing.instant, firing.version) == ("tock", MARK, AT, 7)
    assert (firing.replica, firing.reason, firing.decision) == ("", "on time", Decision.FIRED)
    job = job_of(firing)
    assert (job.task, job.args, job.options.queue, job.options.max_attempts) == ("f", b"[1]", "low", 3)
    assert (job.tags, job.meta, job.source, job.schedule) == (("t",), {"m": 1}, Source.SCHEDULED, "tock")
    assert (job.tick, job.start, job.origin) == (AT, None, "schedule tock")


def test_every_replica_works_out_the_same_job_id_and_every_tick_another():
    same = {job_of(fire_one(FIRED, replica)).id for replica in ("r1:1", "r2:1")}
    later = Ruling(instant=AT + timedelta(milliseconds=1), decision=Decision.FIRED, reason="")
    others = {job_of(fire_one(later)).id, job_of(fire_one(FIRED, name="tick")).id}
    assert len(same) == 1
    assert len(same | others) == 3
    (job_id,) = same
    assert (UUID(job_id).version, UUID(job_id).int >> 80) == (7, int(MARK))


def test_jitter_moves_the_job_and_not_the_tick():
    firing = fire_one(FIRED, jitter=timedelta(hours=1))
    assert firing.instant == job_of(firing).tick == AT
    assert AT < job_of(firing).start <= AT + timedelta(hours=1)


def test_a_missed_tick_has_no_job():
    missed = Ruling(instant=AT, decision=Decision.MISSED, reason="1m late")
    assert (fire_one(missed).job, fire_one(missed).decision, fire_one(missed).mark) == (None, Decision.MISSED, MARK)


def test_a_row_of_many_instants_has_a_mark_that_no_single_one_has():
    until = AT + timedelta(hours=1)
    shared = fire_one(Ruling(instant=AT, decision=Decision.MISSED, reason="", until=until, count=9))
    assert (shared.mark, shared.until, shared.count, shared.moves_on) == (f"{MARK}+", until, 9, True)


def test_a_replicas_own_tick_goes_into_its_private_queue():
    own = fire_one(FIRED, coordination=Coordination.PER_REPLICA)
    assert (own.replica, job_of(own).options.queue, job_of(own).options.max_attempts) == ("r1:1", "@r1:1", 3)
    other = fire_one(FIRED, "r2:1", coordination=Coordination.PER_REPLICA)
    assert job_of(other).id != job_of(own).id


def test_the_fleets_start_is_one_tick_for_all_and_a_replicas_start_its_own():
    fleet = [start_firing(schedule(), 3, AT, replica) for replica in ("r1:1", "r2:1")]
    assert {(firing.mark, firing.replica, job_of(firing).id) for firing in fleet} == {
        ("start:3", "", job_of(fleet[0]).id)
    }
    assert (fleet[0].moves_on, fleet[0].version) == (False, None)
    own = start_firing(schedule(coordination=Coordination.PER_REPLICA), 3, AT, "r1:1")
    assert (own.mark, own.replica, job_of(own).options.queue) == ("start:life", "r1:1", "@r1:1")


def test_a_trigger_is_a_job_of_its_own_for_no_tick():
    firing = trigger_firing(schedule(jitter=timedelta(hours=1)), AT, JOB)
    assert (firing.decision, firing.mark, firing.version) == (Decision.TRIGGER, JOB, None)
    job = job_of(firing)
    assert (job.id, job.source, job.tick, job.start, job.schedule) == (JOB, Source.MANUAL, None, None, "tock")


def test_a_backfill_is_the_tick_itself():
    assert backfill_firing(schedule(), AT).job == fire_one(FIRED).job
    assert (backfill_firing(schedule(), AT).mark, backfill_firing(schedule(), AT).moves_on) == (MARK, False)


def test_orphaning_is_told_once_for_a_version_from_the_last_tick_on():
    firing = orphan_firing(status())
    assert (firing.decision, firing.mark, firing.instant) == (Decision.ORPHANED, "orphaned:7", AT)
    assert (firing.job, firing.version, firing.count) == (None, 7, 0)
