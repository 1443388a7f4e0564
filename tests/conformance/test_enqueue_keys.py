from collections.abc import Callable
from typing import Any

import pytest

from drumline.errors import KeyTaken
from drumline.model.claim import Claim
from drumline.model.job import Enqueued, JobState
from drumline.model.outcome import Outcome
from drumline.model.query import CommandKind
from tests.support.build import cancelled, dead, done, new_job, options, release, retry, unique
from tests.support.promises import promises

WINDOWS = ["unfinished", "pending", 3600]
CONFLICTS = ["skip", "replace", "raise"]


def put_in_state(rig, state, window):
    """A job that has the key `k`, in the state."""
    holder = new_job(key=unique("k", window), delay=60 if state == "delayed" else None)
    rig.enqueue(holder)
    if state in ("running", "cancelling", "done", "dead", "cancelled", "retrying", "released"):
        claim = rig.take_one()
    if state == "cancelling":
        rig.command(CommandKind.CANCEL, holder.id)
    ends: dict[str, Callable[[Claim], Outcome]] = {
        "done": done,
        "dead": dead,
        "cancelled": cancelled,
        "released": release,
    }
    if state in ends:
        rig.finish(ends[state](claim))
    if state == "retrying":
        rig.finish(retry(claim, delay=60))
    return holder.id


WAITING = ["ready", "delayed"]
STARTED = ["running", "cancelling"]
AGAIN = ["retrying", "released"]
ENDED = ["done", "dead", "cancelled"]
HELD = [
    *(("unfinished", state) for state in [*WAITING, *STARTED, *AGAIN]),
    *(("pending", state) for state in WAITING),
    *((3600, state) for state in [*WAITING, *STARTED, *AGAIN, *ENDED]),
]
FREE = [
    *(("unfinished", state) for state in ENDED),
    *(("pending", state) for state in [*STARTED, *ENDED]),
]


@promises("enqueue", "A job whose unique key is held by another answers with the holder")
@pytest.mark.parametrize(("window", "state"), HELD)
def test_a_held_key_answers_with_its_holder(rig, window, state):
    holder = put_in_state(rig, state, window)
    before = rig.job(holder)
    (answer,) = rig.enqueue(new_job(key="k", args=b"[2]"))
    assert answer == Enqueued(holder, before.state, created=False)
    assert rig.jobs() == [before]


@promises("finish", "the unique key of an ended job is free again (unless its window is a time)")
@pytest.mark.parametrize(("window", "state"), FREE)
@pytest.mark.parametrize("on_conflict", CONFLICTS)
def test_a_key_is_free_once_its_window_is_over(rig, window, state, on_conflict):
    put_in_state(rig, state, window)
    (answer,) = rig.enqueue(new_job(key=unique("k", window, on_conflict)))
    assert (answer.created, answer.replaced) == (True, False)


@pytest.mark.parametrize("state", [*WAITING, *STARTED, *ENDED])
def test_a_window_of_time_counts_from_enqueue_whatever_became_of_the_job(rig, state):
    holder = put_in_state(rig, state, 3600)
    rig.advance(3599)
    assert [answer.id for answer in rig.enqueue(new_job(key="k"))] == [holder]
    rig.advance(2)
    assert [answer.created for answer in rig.enqueue(new_job(key="k"))] == [True]


@promises(
    "enqueue",
    "under `replace` a *waiting* holder takes over its arguments, start, options, tags and meta and keeps its own id",
)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("state", WAITING)
def test_replace_changes_a_waiting_holder_under_its_own_id(rig, window, state):
    holder = put_in_state(rig, state, window)
    created_at = rig.now()
    rig.advance(10)
    key = unique("k", window, "replace")
    given: dict[str, Any] = {"queue": "other", "priority": 5, "lease": 9, "retention": 77}
    wanted = new_job(key=key, args=b"[2]", delay=120, tags=("t",), meta={"m": 1}, **given)
    assert rig.enqueue(wanted) == [Enqueued(holder, JobState.DELAYED, created=False, replaced=True)]
    (job,) = rig.jobs()
    assert (job.id, job.created_at, job.key) == (holder, created_at, "k")
    assert (job.args, job.due_at, job.options) == (b"[2]", rig.later(120), options(**given))
    assert (job.queue, job.priority, job.tags, job.meta) == ("other", 5, ("t",), {"m": 1})
    assert (rig.count("default").ready, rig.count("default").delayed, rig.count("other").delayed) == (0, 0, 1)
    rig.advance(120)
    assert rig.take_one().args == b"[2]"


def test_replace_can_bring_a_delayed_job_forward(rig):
    holder = put_in_state(rig, "delayed", "unfinished")
    assert rig.enqueue(new_job(key=unique("k", on_conflict="replace"))) == [
        Enqueued(holder, JobState.READY, created=False, replaced=True)
    ]
    assert rig.take_one().id == holder


@pytest.mark.parametrize("state", AGAIN)
def test_replace_changes_a_job_that_waits_for_its_next_attempt(rig, state):
    holder = put_in_state(rig, state, "unfinished")
    before = rig.job(holder)
    (answer,) = rig.enqueue(new_job(key=unique("k", on_conflict="replace"), args=b"[2]"))
    assert (answer.id, answer.replaced) == (holder, True)
    job = rig.job(holder)
    assert (job.args, job.attempts, job.fence) == (b"[2]", before.attempts, before.fence)


@pytest.mark.parametrize(
    ("window", "state"),
    [*(("unfinished", state) for state in STARTED), *((3600, state) for state in [*STARTED, *ENDED])],
)
def test_replace_leaves_a_holder_alone_that_waits_no_more(rig, window, state):
    holder = put_in_state(rig, state, window)
    before = rig.job(holder)
    (answer,) = rig.enqueue(new_job(key=unique("k", window, "replace"), args=b"[2]"))
    assert answer == Enqueued(holder, before.state, created=False, replaced=False)
    assert rig.jobs() == [before]


@promises("enqueue", "under `raise` nothing of the batch is made and KeyTaken is raised")
@pytest.mark.parametrize(("window", "state"), HELD)
def test_raise_makes_nothing_of_the_batch(rig, window, state):
    holder = put_in_state(rig, state, window)
    before = rig.jobs(), rig.counts()
    with pytest.raises(KeyTaken) as raised:
        rig.enqueue(new_job(), new_job(key="other"), new_job(key=unique("k", window, "raise")), new_job())
    assert (raised.value.task, raised.value.key, raised.value.job_id) == ("job", "k", holder)
    assert (rig.jobs(), rig.counts()) == before
    assert rig.enqueue(new_job(key="other"))[0].created


def test_raise_undoes_a_replacement_in_the_same_batch(rig):
    rig.add(key="a", args=b"[1]")
    rig.add(key="b")
    with pytest.raises(KeyTaken):
        rig.enqueue(
            new_job(key=unique("a", on_conflict="replace"), args=b"[2]", queue="other"),
            new_job(key=unique("b", on_conflict="raise")),
        )
    assert {job.args for job in rig.jobs(key="a")} == {b"[1]"}
    assert (rig.count().ready, rig.count("other").ready) == (2, 0)


@pytest.mark.parametrize("on_conflict", CONFLICTS)
def test_a_repeat_meets_its_own_job_and_not_its_key(rig, on_conflict):
    job = new_job(key=unique("k", on_conflict=on_conflict))
    rig.enqueue(job)
    assert rig.enqueue(job) == [Enqueued(job.id, JobState.READY, created=False, replaced=False)]


@promises("enqueue", "A key counts within its task.")
def test_a_key_counts_within_its_task(rig):
    first, second = rig.enqueue(new_job("one", key="k"), new_job("two", key="k"))
    assert first.created
    assert second.created
    assert {job.task for job in rig.jobs(key="k")} == {"one", "two"}


def test_a_key_counts_in_every_queue(rig):
    holder = rig.add(key="k", queue="a")
    assert [answer.id for answer in rig.enqueue(new_job(key="k", queue="b"))] == [holder]


@promises("enqueue", "Two jobs of one batch with one key: the first holds it.")
def test_of_two_jobs_of_a_batch_with_one_key_the_first_holds_it(rig):
    first, second = new_job(key="k", args=b"[1]"), new_job(key="k", args=b"[2]")
    assert rig.enqueue(first, second) == [
        Enqueued(first.id, JobState.READY),
        Enqueued(first.id, JobState.READY, created=False),
    ]
    assert [job.args for job in rig.jobs()] == [b"[1]"]


def test_the_second_of_a_batch_may_replace_the_first(rig):
    key = unique("k", on_conflict="replace")
    first, second = new_job(key=key, args=b"[1]"), new_job(key=key, args=b"[2]")
    answers = rig.enqueue(first, second)
    assert [(answer.id, answer.created, answer.replaced) for answer in answers] == [
        (first.id, True, False),
        (first.id, False, True),
    ]
    assert [job.args for job in rig.jobs()] == [b"[2]"]


def test_a_batch_whose_second_raises_over_the_first_makes_neither(rig):
    key = unique("k", on_conflict="raise")
    with pytest.raises(KeyTaken):
        rig.enqueue(new_job(key=key), new_job(key=key))
    assert rig.jobs() == []


def test_a_retry_waits_for_no_key_and_loses_none(rig):
    first = rig.start(key=unique("k", "pending"))
    second = rig.add(key=unique("k", "pending"))
    rig.finish(retry(first, delay=10))
    assert rig.state(first.id) is JobState.DELAYED
    (answer,) = rig.enqueue(new_job(key=unique("k", "pending")))
    assert (answer.id, answer.created) == (second, False)
    rig.advance(10)
    assert {claim.id for claim in rig.take(10)} == {first.id, second}


def test_a_retry_does_not_take_a_pending_key_back(rig):
    first = rig.start(key=unique("k", "pending"))
    rig.finish(retry(first, delay=10))
    (answer,) = rig.enqueue(new_job(key=unique("k", "pending")))
    assert answer.created


def test_a_key_of_512_characters_of_any_kind_works(rig):
    name = "ключ 🥁'\"%_" + "x" * 502
    holder = rig.add(key=name)
    assert [answer.id for answer in rig.enqueue(new_job(key=name))] == [holder]
    assert rig.enqueue(new_job(key=name[:-1]))[0].created
    assert rig.ids(key=name) == [holder]
