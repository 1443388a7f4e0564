from collections import Counter
from datetime import timedelta

import pytest

from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.job import JobState, Source
from drumline.model.query import CommandKind, PauseKind
from drumline.policy.queues import account, divide, weighted_shares
from tests.support.build import (
    OTHER_REPLICA,
    REPLICA,
    dead,
    done,
    new_job,
    new_schedule,
    numbered_id,
    options,
    release,
    retry,
    tick_at,
)
from tests.support.promises import promises


def micros(instant):
    return int(instant.timestamp()) * 1_000_000 + instant.microsecond


@promises("claim", "Take up to `limit` due jobs, for this replica only.")
def test_claim_takes_no_more_than_its_limit_of_due_jobs(rig):
    due = {rig.add() for _ in range(5)}
    rig.add(delay=60)
    first, second = rig.take(3), rig.take(10)
    assert (len(first), len(second)) == (3, 2)
    assert {claim.id for claim in first + second} == due
    assert rig.take(0) == []


def test_a_claim_belongs_to_the_replica_that_asked(rig):
    rig.add()
    claim = rig.take_one(replica=OTHER_REPLICA)
    assert claim.replica == OTHER_REPLICA
    assert (rig.job(claim.id).replica, rig.job(claim.id).state) == (OTHER_REPLICA, JobState.RUNNING)


def test_a_claim_carries_all_that_its_runner_needs(rig):
    rig.declare(new_schedule(meta={}))
    firing = tick_at(rig.now(), args=b"[1]", queue="q", priority=3, lease=7, tags=("t",), meta={"m": [1]}, key="k")
    rig.fire(firing)
    rig.advance(2)
    claim = rig.take_one()
    assert firing.job is not None
    assert (claim.id, claim.task, claim.queue, claim.attempt) == (firing.job.id, "job", "q", 1)
    assert (claim.args, claim.options) == (b"[1]", options(queue="q", priority=3, lease=7))
    assert (claim.tags, claim.meta, claim.key) == (("t",), {"m": [1]}, "k")
    assert (claim.source, claim.schedule, claim.tick) == (Source.SCHEDULED, "tock", rig.later(-2))
    assert (claim.created_at, claim.due_at) == (rig.later(-2), rig.later(-2))
    assert (claim.claimed_at, claim.lease_until, claim.cancelling) == (rig.now(), rig.later(7), False)


@promises("claim", "Queues are emptied in the given order, each giving at most its share")
def test_queues_are_emptied_in_the_given_order(rig):
    for queue in ("a", "b", "c"):
        for priority in (0, 9):
            rig.add(queue=queue, priority=priority)
    claims = rig.take(5, queues=[Share("c", 9), Share("a", 9), Share("b", 9)])
    assert [claim.queue for claim in claims] == ["c", "c", "a", "a", "b"]


@promises("claim", "each giving at most its share")
def test_a_queue_gives_at_most_its_share(rig):
    for queue in ("a", "b"):
        for _ in range(4):
            rig.add(queue=queue)
    claims = rig.take(5, queues=[Share("a", 2), Share("b", 9)])
    assert [claim.queue for claim in claims] == ["a", "a", "b", "b", "b"]
    assert rig.take(9, queues=[Share("a", 0), Share("b", 0)]) == []


def test_a_queue_that_is_not_named_gives_nothing(rig):
    rig.add(queue="a")
    assert rig.take(9, queues=[Share("b", 9)]) == []
    assert rig.take(9, queues=[]) == []


@promises("claim", "within a queue: higher priority first, then earlier due time, then lower id")
def test_within_a_queue_priority_then_due_time_then_id_decide(rig):
    start = rig.now()
    wanted = [
        new_job(id=numbered_id(9), priority=100),
        new_job(id=numbered_id(8), priority=1, start=start + timedelta(milliseconds=1)),
        new_job(id=numbered_id(2), priority=1, start=start + timedelta(milliseconds=2)),
        new_job(id=numbered_id(3), priority=1, start=start + timedelta(milliseconds=2)),
        new_job(id=numbered_id(7), priority=0),
        new_job(id=numbered_id(1), priority=0, start=start + timedelta(seconds=5)),
        new_job(id=numbered_id(6), priority=-100),
    ]
    rig.enqueue(*reversed(wanted))
    rig.advance(10)
    one_by_one = [rig.take_one().id for _ in range(3)]
    assert one_by_one + [claim.id for claim in rig.take(9)] == [job.id for job in wanted]


@promises("claim", "The share of ANY_QUEUE takes from every queue but private ones, as if they were one,")
def test_any_queue_takes_from_all_public_queues_as_if_they_were_one(rig):
    low = rig.add(queue="a", priority=1)
    high = rig.add(queue="z", priority=9)
    middle = rig.add(queue="m", priority=5)
    rig.add(queue="@r1:1", priority=100)
    claims = rig.take(9, queues=[Share(ANY_QUEUE, 9)])
    assert [claim.id for claim in claims] == [high, middle, low]
    assert [claim.queue for claim in rig.take(9, queues=[Share("@r1:1", 9)])] == ["@r1:1"]


def test_any_queue_takes_in_order_over_queues_made_at_different_times(rig):
    first = rig.add(queue="b")
    rig.advance(1)
    second = rig.add(queue="a")
    assert [claim.id for claim in rig.take(9)] == [first, second]


def test_any_queue_gives_at_most_its_share_in_all(rig):
    for queue in ("a", "b", "c"):
        rig.add(queue=queue)
    assert len(rig.take(9, queues=[Share(ANY_QUEUE, 2)])) == 2


def test_any_queue_may_follow_a_queue_by_name(rig):
    rig.add(queue="a", priority=9)
    named = rig.add(queue="b")
    claims = rig.take(9, queues=[Share("b", 1), Share(ANY_QUEUE, 1)])
    assert [claim.queue for claim in claims] == ["b", "a"]
    assert claims[0].id == named


@promises("claim", "as if they were one, and not from those that it leaves out.")
def test_any_queue_takes_nothing_from_queues_that_it_leaves_out(rig):
    for queue in ("a", "b", "c", "@r1:1"):
        rig.add(queue=queue)
    claims = rig.take(9, queues=[Share(ANY_QUEUE, 9, ("a", "c"))])
    assert [claim.queue for claim in claims] == ["b"]
    assert [claim.queue for claim in rig.take(9)] == ["a", "c"]


@promises("claim", "A queue may have several shares.")
def test_a_queue_with_several_shares_gives_each_of_them(rig):
    for queue in ("a", "b"):
        for _ in range(4):
            rig.add(queue=queue)
    claims = rig.take(6, queues=[Share("a", 2), Share("b", 1), Share("a", 9), Share("b", 9)])
    assert [claim.queue for claim in claims] == ["a", "a", "b", "a", "a", "b"]
    assert len({claim.id for claim in claims}) == 6


def test_weighted_shares_are_served_by_their_weights_call_by_call(rig):
    weights = {"a": 4, "b": 2, ANY_QUEUE: 1}
    served: dict[str, float] = {}
    taken: Counter[str] = Counter()
    for queue, number in (("a", 45), ("b", 25), ("x", 15)):
        rig.enqueue(*(new_job(queue=queue) for _ in range(number)))
    for limit in (1, 7, 20, 3, 32, 7):
        parts = divide(weights, served, limit, {})
        given = [claim.queue for claim in rig.take(limit, queues=weighted_shares(weights, served, parts, {}))]
        assert len(given) == limit
        served = account(weights, served, parts, {}, given)
        taken.update(given)
    assert taken == {"a": 40, "b": 20, "x": 10}


def test_any_queue_may_be_asked_again_with_more_left_out(rig):
    for queue in ("a", "b"):
        for _ in range(3):
            rig.add(queue=queue)
    claims = rig.take(9, queues=[Share(ANY_QUEUE, 1), Share(ANY_QUEUE, 9, ("a",))])
    assert [claim.queue for claim in claims] == ["a", "b", "b", "b"]


@promises("claim", "No job is in two live claims.")
def test_a_claimed_job_is_not_given_again(rig):
    claim = rig.start()
    rig.advance(3600)
    assert rig.take(9, replica=OTHER_REPLICA) == []
    assert rig.job(claim.id).fence == claim.fence


@promises("claim", "Due delayed jobs are promoted first.")
def test_a_delayed_job_that_came_due_takes_its_place_by_priority(rig):
    ready = rig.add()
    delayed = rig.add(delay=10, priority=5)
    rig.advance(10)
    assert [claim.id for claim in rig.take(9)] == [delayed, ready]


@promises("claim", "Paused queues give nothing.")
@pytest.mark.parametrize("queues", [[Share("a", 9), Share("b", 9)], [Share(ANY_QUEUE, 9)]], ids=["by name", "any"])
def test_a_paused_queue_gives_nothing(rig, queues):
    rig.add(queue="a", priority=9)
    other = rig.add(queue="b")
    rig.pause(PauseKind.QUEUE, "a")
    assert [claim.id for claim in rig.take(9, queues=queues)] == [other]
    rig.resume(PauseKind.QUEUE, "a")
    assert [claim.queue for claim in rig.take(9, queues=queues)] == ["a"]


@promises("claim", "Only jobs of the named tasks are taken, and others in front of them cost nothing.")
def test_jobs_of_other_tasks_are_left_alone_and_cost_nothing(rig):
    rig.enqueue(*(new_job("unknown", priority=9) for _ in range(500)))
    mine = [rig.add("mine"), rig.add("mine.too")]
    claims = rig.take(2, queues=[Share("default", 2)], tasks=["mine", "mine.too"])
    assert [claim.id for claim in claims] == mine
    assert rig.take(9, tasks=["nobody"]) == []
    assert rig.take(9, tasks=[]) == []
    assert rig.count(task="unknown").ready == 500
    assert {job.attempt for job in rig.jobs(task="unknown")} == {0}


@promises("claim", "Each claim starts an attempt")
def test_each_claim_starts_an_attempt(rig):
    claim = rig.start()
    assert (claim.attempt, rig.job(claim.id).attempt) == (1, 1)
    rig.finish(retry(claim))
    claim = rig.take_one()
    assert (claim.attempt, rig.job(claim.id).attempt) == (2, 2)
    rig.finish(release(claim))
    assert rig.job(claim.id).attempt == 1
    assert rig.take_one().attempt == 2


@promises("claim", "holds for the job's own lease")
def test_a_claim_holds_for_the_jobs_own_lease(rig):
    rig.add(lease=5)
    rig.add(lease=500)
    claims = rig.take(2)
    assert sorted(claim.lease_until for claim in claims) == [rig.later(5), rig.later(500)]
    assert {rig.job(claim.id).lease_until for claim in claims} == {rig.later(5), rig.later(500)}
    rig.advance(6)
    assert [claim.options for claim in rig.expired()] == [options(lease=5)]


@promises(
    "claim",
    "and its fence is greater than every one before",
    "the greater of the last fence + 1 and the store's clock in microseconds",
)
def test_the_fence_is_the_clock_in_microseconds_or_one_more_than_the_last(rig):
    rig.advance(1.234)
    claim = rig.start()
    assert claim.fence == rig.job(claim.id).fence == micros(rig.now())
    rig.finish(release(claim))
    same_instant = rig.take_one()
    assert same_instant.fence == claim.fence + 1
    rig.finish(retry(same_instant, delay=60))
    rig.advance(60)
    assert rig.take_one().fence == micros(rig.now())


@pytest.mark.parametrize("lose", ["release", "retry", "command"])
def test_the_fence_grows_also_when_the_clock_goes_back(rig, lose):
    first = rig.start()
    rig.set_back(3600)
    if lose == "command":
        rig.finish(dead(first))
        rig.command(CommandKind.RETRY, first.id)
    else:
        rig.finish(release(first, start=rig.now()) if lose == "release" else retry(first))
    second = rig.take_one()
    assert (second.id, second.fence) == (first.id, first.fence + 1)


@promises("claim", "The same token gives the same claims again")
def test_the_same_token_gives_the_same_claims_again(rig):
    for _ in range(5):
        rig.add()
    first = rig.take(3, token="t1")
    rig.advance(1)
    assert sorted(rig.take(3, token="t1"), key=lambda claim: claim.id) == sorted(first, key=lambda claim: claim.id)
    assert rig.count().running == 3
    assert {rig.job(claim.id).attempt for claim in first} == {1}
    assert len(rig.take(9, token="t2")) == 2


def test_tokens_tell_claims_of_one_replica_apart(rig):
    rig.enqueue(new_job(), new_job())
    first, second = rig.take_one(token="t1"), rig.take_one(token="t2")
    assert first.id != second.id
    assert [claim.id for claim in rig.take(1, token="t1")] == [first.id]
    assert [claim.id for claim in rig.take(1, token="t2")] == [second.id]


@promises("claim", "as far as they are still held")
@pytest.mark.parametrize("ended", [done, dead, release, retry], ids=lambda ended: ended.__name__)
def test_the_same_token_gives_nothing_of_what_is_held_no_more(rig, ended):
    for _ in range(2):
        rig.add()
    first, second = rig.take(2, token="t1")
    rig.finish(ended(first))
    assert [claim.id for claim in rig.take(2, token="t1")] == [second.id]
    rig.finish(ended(second))
    assert rig.take(2, token="t1") == []


def test_the_same_token_does_not_give_what_another_took_since(rig):
    rig.add()
    claim = rig.take_one(token="t1")
    rig.finish(release(claim))
    later = rig.take_one(replica=OTHER_REPLICA, token="t2")
    assert rig.take(1, token="t1") == []
    assert rig.job(claim.id).fence == later.fence


@promises("claim", "a token is good for a minute")
def test_a_token_is_good_for_a_minute(rig):
    rig.add(lease=300)
    claim = rig.take_one(token="t1")
    rig.add()
    rig.advance(59)
    assert rig.take(1, token="t1") == [claim]


@promises("claim", "The answer tells when the next delayed job of any queue is due.")
def test_the_answer_tells_when_the_next_delayed_job_is_due(rig):
    assert rig.claim().next_due is None
    rig.add(queue="a", delay=60)
    rig.add("other", queue="b", delay=30)
    assert rig.claim(queues=[Share("a", 1)]).next_due == rig.later(30)
    rig.advance(30)
    assert rig.claim().next_due == rig.later(30)
    rig.advance(30)
    answer = rig.claim()
    assert (len(answer.claims), answer.next_due) == (1, None)


def test_a_waiting_retry_is_told_as_next_due_too(rig):
    rig.finish(retry(rig.start(), delay=9))
    assert rig.claim().next_due == rig.later(9)


def test_claiming_nothing_changes_nothing(rig):
    rig.add(delay=60)
    before = rig.jobs(), rig.counts()
    assert rig.take(9, replica=REPLICA) == []
    assert (rig.jobs(), rig.counts()) == before


@promises("claim", "It tells the `releases` of the last outcome.")
def test_a_claim_tells_how_often_in_a_row_the_job_was_left_to_others(rig):
    rig.add()
    for expected in (0, 1, 2):
        claim = rig.take_one()
        assert claim.releases == expected
        assert rig.finish(release(claim, releases=expected + 1)) == [True]
    claim = rig.take_one()
    assert (claim.releases, rig.finish(release(claim))) == (3, [True])
    claim = rig.take_one()
    assert (claim.releases, rig.finish(release(claim, releases=7))) == (0, [True])
    claim = rig.take_one()
    assert (claim.releases, rig.finish(retry(claim))) == (7, [True])
    rig.advance(3600)
    assert rig.take_one().releases == 0
    rig.advance(3600)
    assert [claim.releases for claim in rig.expired()] == [0]
