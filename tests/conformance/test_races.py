from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from drumline.model.claim import ANY_QUEUE, Claim, Share
from drumline.model.query import Command, CommandKind, PauseKind
from drumline.model.schedule import FiredAnswer
from drumline.stores.base import Store
from tests.support.build import (
    BY,
    REPLICA,
    cancelled,
    dead,
    done,
    new_job,
    new_schedule,
    note,
    release,
    replica_info,
    retry,
    tick_at,
    unique,
)
from tests.support.makers import racing
from tests.support.players import take_all
from tests.support.promises import promises
from tests.support.waiting import run_together

pytestmark = pytest.mark.parametrize("maker", racing(), ids=lambda maker: maker.name)

THREADS = 8

Team = Callable[[Callable[[Store, int], Any]], list[Any]]


@pytest.fixture(params=["one handle", "a handle each"])
def team(rig, request) -> Team:
    """Plays a part in eight threads at once, over one handle of the store or over a handle each."""

    def play(part):
        stores = [rig.store if request.param == "one handle" else rig.another() for _ in range(THREADS)]
        return run_together(
            *(lambda place=place, store=store: part(store, place) for place, store in enumerate(stores))
        )

    return play


@promises("claim", "No job is in two live claims.")
def test_eight_claimers_drain_two_thousand_jobs_each_exactly_once(rig, team):
    ids = [answer.id for answer in rig.enqueue(*(new_job() for _ in range(2000)))]
    claims = team(lambda store, place: take_all(store, f"r{place}:1"))
    taken = Counter(claim.id for part in claims for claim in part)
    assert (len(taken), set(taken.values())) == (2000, {1})
    assert set(taken) == set(ids)
    assert (rig.count().running, rig.count().ready) == (2000, 0)


def test_eight_workers_end_each_job_exactly_once(rig, team):
    rig.enqueue(*(new_job() for _ in range(800)))

    def work(store, place):
        ended = number = 0
        while claims := take_some(store, f"r{place}:1", number):
            ended += sum(store.finish([done(claim) for claim in claims]).run())
            number += 1
        return ended

    assert sum(team(work)) == 800
    count = rig.count()
    assert (count.done, count.total_done, count.running, count.ready) == (800, 800, 0, 0)
    assert sum(point.done for point in rig.series()) == 800


def take_some(store: Store, replica: str, number: int) -> list[Claim]:
    return store.claim(replica, [Share(ANY_QUEUE, 5)], 5, ["job"], f"{replica} {number}").run().claims


def test_of_many_finishers_of_one_claim_one_is_accepted(rig, team):
    rig.enqueue(*(new_job() for _ in range(200)))
    claims = rig.take(200)
    fates = [done, dead, cancelled, retry]

    def finish(store, place):
        order = Random(place).sample(claims, len(claims))
        fate = fates[place % len(fates)]
        accepted = []
        for start in range(0, 200, 20):
            batch = order[start : start + 20]
            answers = store.finish([fate(claim, by=f"finisher {place}") for claim in batch]).run()
            accepted += [claim.id for claim, answer in zip(batch, answers, strict=True) if answer]
        return accepted

    accepted = Counter(job_id for part in team(finish) for job_id in part)
    assert (len(accepted), set(accepted.values())) == (200, {1})
    assert {len(job.attempts) for job in rig.jobs()} == {1}
    count = rig.count()
    assert count.done + count.dead + count.cancelled + count.ready == 200


def test_one_outcome_repeated_by_many_is_applied_once(rig, team):
    rig.enqueue(*(new_job() for _ in range(100)))
    outcomes = [done(claim) for claim in rig.take(100)]
    answers = team(lambda store, place: store.finish(outcomes).run())
    assert answers == [[True] * 100] * THREADS
    assert (rig.count().total_done, {len(job.attempts) for job in rig.jobs()}) == (100, {1})


def test_many_enqueues_of_one_key_make_one_job(rig, team):
    def produce(store, place):
        return [store.enqueue([new_job(key=unique("one"))]).run()[0] for _ in range(25)]

    answers = [answer for part in team(produce) for answer in part]
    assert (len(answers), sum(answer.created for answer in answers)) == (200, 1)
    assert {answer.id for answer in answers} == set(rig.ids())


def test_many_enqueues_of_one_id_make_one_job(rig, team):
    job = new_job()
    answers = team(lambda store, place: [store.enqueue([job]).run()[0].created for _ in range(10)])
    assert sum(created for part in answers for created in part) == 1
    assert rig.count().ready == 1


@pytest.mark.parametrize("beats", [False, True], ids=["silent", "beating"])
def test_a_rescuer_and_a_late_worker_never_both_win(rig, team, beats):
    rig.enqueue(*(new_job(lease=5) for _ in range(200)))
    late = rig.take(200)
    rig.advance(600)

    def play(store, place):
        if place == 0:
            return [store.finish([done(claim)]).run()[0] for claim in late]
        if place == 1 and beats:
            for claim in late:
                store.beat(replica_info(REPLICA), [claim.ref]).run()
            return []
        rescued: list[bool] = []
        while claims := store.expired(20).run():
            rescued += store.finish([dead(claim, by=f"rescuer {place}", ended="lost") for claim in claims]).run()
        return rescued

    assert sum(answer for part in team(play) for answer in part) == 200
    count = rig.count()
    assert (count.done + count.dead, count.running) == (200, 0)
    assert (count.total_done, count.total_failures) == (count.done, count.dead)
    assert {len(job.attempts) for job in rig.jobs()} == {1}


def test_a_beat_loses_no_claim_while_its_job_speaks_and_is_asked_to_stop(rig, team):
    rig.enqueue(*(new_job() for _ in range(20)))
    claims = rig.take(20)

    def play(store, place):
        lost = []
        for number in range(20):
            if place < 2:
                lost += store.beat(replica_info(REPLICA), [claim.ref for claim in claims]).run().lost
            elif place < 5:
                assert all(store.report([note(claim, progress=number / 20) for claim in claims]).run())
            else:
                ids = tuple(claim.id for claim in Random(place * 100 + number).sample(claims, 3))
                store.command(Command(id=f"{place} {number}", kind=CommandKind.CANCEL, ids=ids, by=BY)).run()
        return lost

    assert [item for part in team(play) for item in part] == []
    assert all(rig.finish(*(done(claim) for claim in claims)))


def test_one_token_at_once_gives_one_set_of_claims(rig, team):
    rig.enqueue(*(new_job() for _ in range(100)))
    answers = team(lambda store, place: store.claim(REPLICA, [Share("default", 10)], 10, ["job"], "t1").run().claims)
    assert len({frozenset(claim.ref for claim in claims) for claims in answers}) == 1
    assert rig.count().running == 10


@promises("fire", "Record each tick at most once")
def test_twenty_ticks_fired_by_eight_at_once_fire_once_each(rig, team):
    rig.declare(new_schedule())
    instants = [rig.later(-60 * number) for number in range(19, -1, -1)]

    def fire(store, place):
        order = Random(place).sample(instants, len(instants))
        return [store.fire([tick_at(instant)], by=f"r{place}:1").run()[0].answer for instant in order]

    answers = Counter(answer for part in team(fire) for answer in part)
    assert answers == {FiredAnswer.FIRED: 20, FiredAnswer.DUPLICATE: 140}
    assert sorted(job.tick for job in rig.jobs()) == instants
    assert rig.schedule().last_tick == instants[-1]


def test_ticks_that_race_obey_overlap(rig, team):
    rig.declare(new_schedule(overlap="skip"))

    def fire(store, place):
        return store.fire([tick_at(rig.later(-60 * place))], by=f"r{place}:1").run()[0].answer

    assert Counter(team(fire)) == {FiredAnswer.FIRED: 1, FiredAnswer.OVERLAP: 7}
    assert len(rig.jobs()) == 1


def test_one_command_from_many_acts_once(rig, team):
    ids = tuple(rig.add() for _ in range(20))
    command = Command(id="c1", kind=CommandKind.CANCEL, ids=ids, by=BY)
    answers = team(lambda store, place: store.command(command).run())
    assert len({tuple(answer) for answer in answers}) == 1
    assert (len(rig.audit()), rig.count().cancelled) == (1, 20)


def test_one_pause_from_many_acts_once(rig, team):
    def pause(store, place):
        return store.pause(PauseKind.QUEUE, ["mail"], paused=True, by=BY, token="p1").run()

    team(pause)
    assert (len(rig.audit()), set(rig.store.paused(PauseKind.QUEUE).run())) == (1, {"mail"})


def test_of_a_retry_and_enqueues_at_once_one_gets_the_key(rig, team):
    ended = []
    for number in range(20):
        rig.enqueue(new_job(key=unique(f"k{number}")))
        (claim,) = take_some(rig.store, REPLICA, number)
        assert rig.finish(dead(claim)) == [True]
        ended.append(claim.id)

    def play(store, place):
        for number, job_id in enumerate(ended):
            if place % 2:
                store.command(Command(id=f"{place} {number}", kind=CommandKind.RETRY, ids=(job_id,), by=BY)).run()
            else:
                store.enqueue([new_job(key=unique(f"k{number}"))]).run()

    team(play)
    held = Counter(job.key for job in rig.jobs() if job.finished_at is None)
    assert (len(held), set(held.values())) == (20, {1})


def test_all_at_once_leaves_counts_that_agree_with_the_jobs(rig, team):
    rig.declare(new_schedule(overlap="queue_one"))

    def play(store, place):
        random = Random(place)
        for number in range(30):
            keys = [unique(f"k{random.randrange(5)}", on_conflict=random.choice(["skip", "replace"])), None]
            store.enqueue([new_job(key=random.choice(keys), queue=random.choice("ab")) for _ in range(3)]).run()
            store.fire([tick_at(rig.later(-60 * random.randrange(20)))], by=f"r{place}:1").run()
            claims = take_some(store, f"r{place}:1", number)
            store.beat(replica_info(f"r{place}:1"), [claim.ref for claim in claims]).run()
            fates: list[Any] = [done, dead, cancelled, retry, release]
            assert all(store.finish([random.choice(fates)(claim) for claim in claims]).run())
            ids = tuple(claim.id for claim in claims)
            kind = random.choice([CommandKind.RETRY, CommandKind.DISCARD, CommandKind.CANCEL])
            store.command(Command(id=f"{place} {number}", kind=kind, ids=ids, by=BY)).run()

    team(play)
    told = {
        (queue, task, state): getattr(count, state)
        for (queue, task), count in rig.counts().items()
        for state in ("ready", "delayed", "running", "done", "dead", "cancelled")
        if getattr(count, state)
    }
    assert told == Counter((job.queue, job.task, job.state.value) for job in rig.jobs())
    assert len(rig.audit()) == THREADS * 30
    held = Counter(job.key for job in rig.jobs() if job.key and job.finished_at is None)
    assert set(held.values()) <= {1}
