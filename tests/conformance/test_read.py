from datetime import timedelta
from typing import Any

import pytest

from drumline.model.job import ENDED, WAITING, Failure, JobState, Source
from drumline.model.query import CommandKind, JobFilter
from drumline.model.replica import ReplicaState
from tests.support.build import (
    OTHER_REPLICA,
    REPLICA,
    cancelled,
    dead,
    done,
    new_job,
    new_schedule,
    numbered_id,
    retry,
    tick_at,
)
from tests.support.promises import promises


@promises("jobs", "Jobs, newest first by the stored time of creation, then id")
def test_jobs_are_told_newest_first(rig):
    oldest = rig.add()
    rig.advance(1)
    same = [rig.add(id=numbered_id(number)) for number in (2, 3, 1)]
    rig.advance(1)
    newest = rig.add()
    found = rig.ids()
    assert (found[0], found[-1], set(found[1:-1])) == (newest, oldest, set(same))
    assert found[1:-1] in (sorted(same), sorted(same, reverse=True))


@promises("jobs", "`next` of a page is `after` of the following")
@pytest.mark.parametrize("limit", [1, 7, 50])
def test_pages_visit_every_job_once_while_jobs_come_and_end(rig, limit):
    wanted = set()
    for _ in range(12):
        wanted |= {rig.add() for _ in range(5)}
        rig.advance(0.5)
    seen = []
    after = None
    for _ in range(1000):
        page = rig.store.jobs(JobFilter(), after=after, limit=limit).run()
        assert len(page.items) <= limit
        seen += [job.id for job in page.items]
        rig.advance(0.01)
        rig.add("later")
        rig.finish(*(done(claim) for claim in rig.take(2)))
        after = page.next
        if after is None:
            break
    assert after is None
    assert len(seen) == len(set(seen))
    assert wanted <= set(seen)


@promises("jobs", "By ids: exactly those that exist, in the order asked for, on one page.")
def test_jobs_by_ids_come_in_the_order_asked_for_on_one_page(rig):
    ids = [rig.add() for _ in range(120)]
    asked = [numbered_id(1), *reversed(ids), numbered_id(2)]
    page = rig.store.jobs(JobFilter(ids=tuple(asked))).run()
    assert ([job.id for job in page.items], page.next) == (ids[::-1], None)


@promises("jobs", "No ids, no jobs.")
def test_no_job_is_found_by_an_empty_list_of_ids(rig):
    rig.add()
    page = rig.store.jobs(JobFilter(ids=())).run()
    assert (page.items, page.next) == ([], None)


def make_one_of_each(rig):
    """One job in each state; the ids by state."""
    made = {JobState.DONE: rig.end(done), JobState.DEAD: rig.end(dead), JobState.CANCELLED: rig.end(cancelled)}
    made[JobState.RUNNING] = rig.start().id
    made[JobState.CANCELLING] = rig.start().id
    rig.command(CommandKind.CANCEL, made[JobState.CANCELLING])
    made[JobState.READY] = rig.add()
    made[JobState.DELAYED] = rig.add(delay=60)
    return made


def test_jobs_are_found_by_state(rig):
    made = make_one_of_each(rig)
    for state in set(JobState) - {JobState.RUNNING}:
        assert rig.ids(states=frozenset({state})) == [made[state]]
    assert set(rig.ids(states=ENDED)) == {made[state] for state in ENDED}
    assert set(rig.ids(states=WAITING)) == {made[state] for state in WAITING}


def test_running_includes_jobs_that_are_being_cancelled(rig):
    made = make_one_of_each(rig)
    found = rig.ids(states=frozenset({JobState.RUNNING}))
    assert set(found) == {made[JobState.RUNNING], made[JobState.CANCELLING]}


def test_a_job_that_came_due_is_found_as_ready_without_a_claim(rig):
    job_id = rig.add(delay=60)
    rig.advance(60)
    assert rig.ids(states=frozenset({JobState.READY})) == [job_id]
    assert rig.ids(states=frozenset({JobState.DELAYED})) == []


def test_jobs_are_found_by_each_field_and_by_all_together(rig):
    rig.declare(new_schedule())
    given: dict[str, Any] = {
        "queue": "q",
        "tags": ("a%b", "c"),
        "key": "k_1",
        "origin": "GET /a%",
        "meta": {"row": 7, "at": None},
    }
    (fired,) = rig.fire(tick_at(rig.now(), "tock", task="ticked", **given))
    rig.add("other", queue="p", tags=("axb",), key="kx1", origin="GET /ab", meta={"row": 8, "at": None})
    rig.add(schedule=None)
    wanted = [fired.job_id]
    fields = {
        "task": "ticked",
        "queue": "q",
        "tag": "a%b",
        "key": "k_1",
        "schedule": "tock",
        "source": Source.SCHEDULED,
        "origin": "GET /a%",
        "meta": {"row": 7},
    }
    for field, value in fields.items():
        assert rig.ids(**{field: value}) == wanted, field
    assert rig.ids(**fields) == wanted
    assert rig.ids(**{**fields, "tag": "axb"}) == []
    assert rig.ids(tag="a") == []


@pytest.mark.parametrize(
    ("asked", "is_found"),
    [
        ({"a": 1}, True),
        ({"a": 1, "b": "x", "c": None, "d": True, "e": -(2**63)}, True),
        ({"a": True}, False),
        ({"a": "1"}, False),
        ({"d": 1}, False),
        ({"a": None}, False),
        ({"a": 1, "b": "y"}, False),
        ({"f": "deep"}, False),
        ({"g": None}, False),
        ({"a%": 1}, False),
    ],
)
def test_jobs_are_found_by_metadata_of_the_same_name_and_value(rig, asked, is_found):
    meta = {"a": 1, "b": "x", "c": None, "d": True, "e": -(2**63), "f": {"g": "deep"}}
    ended, waiting = rig.end(done, meta=meta), rig.add(meta=meta)
    rig.add()
    assert rig.ids(meta=asked) == ([waiting, ended] if is_found else [])


def test_jobs_are_found_by_when_they_were_created(rig):
    ids = []
    for _ in range(3):
        rig.advance(10)
        ids.append(rig.add())
    assert rig.ids(created_from=rig.later(-5)) == [ids[2]]
    assert rig.ids(created_to=rig.later(-15)) == [ids[0]]
    assert rig.ids(created_from=rig.later(-15), created_to=rig.later(-5)) == [ids[1]]


def test_jobs_are_found_by_a_text_of_their_last_error(rig):
    found = rig.end(lambda claim: dead(claim, error=Failure("OSError", "disk 100% full")))
    rig.end(lambda claim: dead(claim, error=Failure("OSError", "disk 1000 full")))
    rig.end(done)
    assert rig.ids(error="100% full") == [found]
    assert rig.ids(error="no such text") == []
    assert len(rig.ids(error="OSError")) == 2


def test_filters_hold_over_many_pages(rig):
    rig.enqueue(*(new_job("a" if number % 10 == 0 else "b", tags=("t",)) for number in range(500)))
    assert len(rig.jobs(task="a", tag="t", limit=7)) == 50


@promises("series", "The minutes from `start` (included) to `end` (not), by minute, queue and task.")
def test_the_series_tells_minutes_by_minute_queue_and_task(rig):
    start = rig.now()
    for _ in range(3):
        for queue, task in (("b", "x"), ("a", "y"), ("a", "x")):
            rig.end(done, task, queue=queue)
        rig.advance(60)
    points = rig.store.series(start, start + timedelta(minutes=2)).run()
    assert [(point.minute, point.queue, point.task) for point in points] == [
        (start + timedelta(minutes=minute), queue, task)
        for minute in (0, 1)
        for queue, task in (("a", "x"), ("a", "y"), ("b", "x"))
    ]
    assert {point.done for point in points} == {1}
    later = rig.store.series(start + timedelta(minutes=2), start + timedelta(minutes=9)).run()
    assert {point.minute for point in later} == {start + timedelta(minutes=2)}


@promises("workers", "The replicas that are known, with what each runs now.")
def test_replicas_are_told_with_what_they_run_now(rig):
    rig.beat(REPLICA)
    rig.beat(OTHER_REPLICA)
    rig.enqueue(new_job(), new_job(), new_job())
    mine = rig.take(2)
    (other,) = rig.take(9, replica=OTHER_REPLICA)
    workers = rig.workers()
    assert set(workers) == {REPLICA, OTHER_REPLICA}
    assert set(workers[REPLICA].running) == {claim.id for claim in mine}
    assert workers[OTHER_REPLICA].running == (other.id,)
    rig.finish(done(mine[0]), retry(mine[1]))
    assert rig.workers()[REPLICA].running == ()


@promises("workers", "One silent for three of its beats is lost.")
def test_a_replica_that_is_silent_for_three_of_its_beats_is_lost(rig):
    rig.beat(REPLICA, beat_every=timedelta(seconds=10))
    rig.beat(OTHER_REPLICA, beat_every=timedelta(seconds=100))
    rig.advance(29)
    assert {replica.state for replica in rig.workers().values()} == {ReplicaState.RUNNING}
    rig.advance(2)
    states = {name: replica.state for name, replica in rig.workers().items()}
    assert states == {REPLICA: ReplicaState.LOST, OTHER_REPLICA: ReplicaState.RUNNING}
    rig.beat(REPLICA)
    assert rig.workers()[REPLICA].state is ReplicaState.RUNNING


def test_of_two_live_replicas_of_one_name_the_younger_is_shown_with_a_number(rig):
    rig.beat("web:1", name="web")
    rig.advance(1)
    rig.beat("web:2", name="web")
    assert {name: replica.shown for name, replica in rig.workers().items()} == {"web:1": "web", "web:2": "web#2"}
    rig.advance(20)
    rig.beat("web:2", name="web")
    rig.advance(20)
    assert rig.workers()["web:2"].shown == "web"


@promises("audit", "Who did what, newest first.")
def test_the_audit_is_told_newest_first(rig):
    names = []
    for number in range(120):
        rig.advance(1)
        rig.command(CommandKind.CANCEL, rig.add(), command_id=f"c{number}")
        names.append(f"c{number}")
    assert [row.id for row in rig.audit()] == names[::-1]
    page = rig.store.audit(limit=7).run()
    assert ([row.id for row in page.items], page.next is not None) == (names[:-8:-1], True)


def test_audit_rows_of_one_instant_are_each_told_once(rig):
    for number in range(70):
        rig.command(CommandKind.CANCEL, numbered_id(number), command_id=f"c{number}")
    assert sorted(row.id for row in rig.audit()) == sorted(f"c{number}" for number in range(70))
