from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from drumline import BadOption, Drumline, JobState, KeyTaken
from drumline.clock import ManualClock
from drumline.events import JobEnqueued

pytestmark = pytest.mark.asyncio


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def drum(clock):
    return Drumline("memory://", clock=clock)


@pytest.fixture
def greet(drum):
    @drum.task(tags=["own"])
    async def greet(name: str = "you") -> str:
        return f"hello {name}"

    return greet


async def stored(job):
    return (await job.refresh()).info


async def test_enqueue_gives_an_id_and_a_state(greet):
    job = await greet.enqueue(name="Ada")
    assert UUID(job.id).version == 7
    assert (job.state, job.created, job.replaced) == (JobState.READY, True, False)
    assert (await stored(job)).args == b'{"name":"Ada"}'


async def test_arguments_may_be_given_by_position(greet):
    assert (await stored(await greet.enqueue("Ada"))).args == b'{"name":"Ada"}'


async def test_by_name_gives_the_same(drum, greet):
    assert (await stored(await drum.enqueue("greet", name="Ada"))).args == b'{"name":"Ada"}'


async def test_blocking_code_enqueues_with_enqueue_sync(greet):
    job = greet.enqueue_sync(name="Ada")
    assert (await stored(job)).args == b'{"name":"Ada"}'


async def test_using_changes_the_options_of_the_calls_made_through_it_and_not_the_task(greet):
    given = {
        "queue": "mail",
        "priority": 5,
        "max_attempts": 2,
        "backoff": [1, 2],
        "timeout": "10s",
        "lease": "1m",
        "retention": "1h",
        "tags": ["more"],
        "meta": {"a": 1},
        "origin": "test",
    }
    job = await stored(await greet.using(**given).enqueue())
    assert (job.queue, job.priority, job.max_attempts, job.tags) == ("mail", 5, 2, ("own", "more"))
    assert (job.options.timeout, job.options.lease) == (timedelta(seconds=10), timedelta(minutes=1))
    assert (job.meta, job.origin) == ({"a": 1}, "test")
    plain = await stored(await greet.enqueue())
    assert (plain.queue, plain.tags, plain.meta) == ("default", ("own",), {})


async def test_using_adds_to_what_was_chosen_before(greet):
    job = await stored(await greet.using(queue="mail", delay=5).using(priority=3, delay=10).enqueue())
    assert (job.queue, job.priority, job.due_at - job.created_at) == ("mail", 3, timedelta(seconds=10))


async def test_delay_makes_a_job_delayed(greet, clock):
    job = await greet.using(delay="24h").enqueue()
    assert job.state is JobState.DELAYED
    assert (await stored(job)).due_at == clock.now() + timedelta(hours=24)


async def test_at_takes_an_instant_of_any_zone(greet, clock):
    there = (clock.now() + timedelta(hours=1)).astimezone(timezone(timedelta(hours=5)))
    assert (await stored(await greet.using(at=there).enqueue())).due_at == clock.now() + timedelta(hours=1)
    assert (await stored(await greet.using(at=there.isoformat()).enqueue())).state is JobState.DELAYED


async def test_a_past_time_is_now(greet):
    assert (await greet.using(at=datetime(2000, 1, 1, tzinfo=UTC)).enqueue()).state is JobState.READY


async def test_a_naive_time_is_refused(greet):
    with pytest.raises(BadOption, match="task greet: at must be an instant with a time zone"):
        greet.using(at=datetime(2026, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"priority": 101}, "task greet: priority must be a whole number from -100 to 100, got 101"),
        ({"delay": -1}, "task greet: delay must be"),
        ({"delay": 1, "at": "2026-01-01T00:00:00Z"}, "task greet: at must be left out where delay is given"),
        ({"queue": "no spaces"}, "task greet: queue must be"),
        ({"id": "seven"}, "task greet: id must be a UUID"),
        ({"on_conflict": "skip"}, "task greet: on_conflict must be left out where no key is given"),
        ({"countdown": 3}, "task greet: option must be given as delay="),
    ],
)
async def test_a_bad_option_is_refused_at_the_call(greet, options, complaint):
    with pytest.raises(BadOption) as refused:
        greet.using(**options)
    assert str(refused.value).startswith(complaint)


async def test_the_same_id_is_the_same_job(greet):
    chosen = "01890000-0000-7000-8000-000000000001"
    first, second = await greet.using(id=chosen).enqueue(), await greet.using(id=UUID(chosen)).enqueue()
    assert (first.id, second.id, first.created, second.created) == (chosen, chosen, True, False)


async def test_a_key_in_use_gives_the_job_that_holds_it(greet):
    first, second = await greet.using(key="a").enqueue("Ada"), await greet.using(key="a").enqueue("Bob")
    assert (second.id, second.created, second.replaced) == (first.id, False, False)
    assert (await stored(second)).args == b'{"name":"Ada"}'


async def test_replace_changes_the_waiting_job_that_holds_the_key(greet, clock):
    first = await greet.using(key="a", delay=10).enqueue("Ada")
    second = await greet.using(key="a", delay=99, on_conflict="replace").enqueue("Bob")
    assert (second.id, second.created, second.replaced) == (first.id, False, True)
    job = await stored(second)
    assert (job.args, job.due_at) == (b'{"name":"Bob"}', clock.now() + timedelta(seconds=99))


async def test_raise_refuses_and_makes_nothing(drum, greet):
    first = await greet.using(key="a").enqueue()
    with pytest.raises(KeyTaken) as taken:
        await greet.using(key="a", on_conflict="raise").enqueue()
    assert (taken.value.job_id, taken.value.key) == (first.id, "a")
    assert (await drum.counts()).unfinished == 1


async def test_many_calls_are_made_in_one_step_in_their_order(drum, greet):
    jobs = await drum.enqueue_many(greet.using(queue="bulk").call(name=str(number)) for number in range(1000))
    assert [job.created for job in jobs] == [True] * 1000
    assert (await drum.counts()).by_queue["bulk"].ready == 1000
    assert (await stored(jobs[7])).args == b'{"name":"7"}'


@pytest.mark.parametrize("url", ["memory://", "sqlite:///jobs.db"])
@pytest.mark.parametrize("way", ["async", "blocking"])
async def test_the_jobs_of_a_batch_run_in_its_order_whenever_its_calls_were_made(url, way, folder):
    ran = []
    async with Drumline(url) as drum:

        @drum.task
        async def note(number: int) -> None:
            ran.append(number)

        calls = [note.call(number) for number in range(20)][::-1]
        jobs = await drum.enqueue_many(calls) if way == "async" else drum.enqueue_many_sync(calls)
        await drum.run(drain=True, concurrency=1)
        assert ran == list(range(20))[::-1]
        assert [(await stored(job)).args for job in jobs] == [b'{"number":%d}' % number for number in ran]


async def test_a_batch_is_known_by_its_last_ids_when_it_is_sent_again_in_whatever_company(drum, greet):
    first, second, third = (greet.call(name) for name in ("Ada", "Bob", "Cleo"))
    jobs = await drum.enqueue_many([second, first])
    assert jobs[0].id < jobs[1].id
    again = await drum.enqueue_many([third, first, second, first])
    assert [job.created for job in again] == [True, False, False, False]
    assert [job.id for job in again[1:]] == [jobs[1].id, jobs[0].id, jobs[1].id]
    assert (await stored(again[0])).args == b'{"name":"Cleo"}'


async def test_a_call_that_is_twice_in_a_batch_is_one_job(drum, greet):
    first, second = greet.call("Ada"), greet.call("Bob")
    jobs = await drum.enqueue_many([second, first, second])
    assert [job.created for job in jobs] == [True, True, False]
    assert [(await stored(job)).args for job in jobs] == [b'{"name":"Bob"}', b'{"name":"Ada"}', b'{"name":"Bob"}']


async def test_ids_that_the_caller_gave_stay_where_they_are(drum, greet):
    given = [str(UUID(int=number)) for number in (9, 8)]
    early, late = greet.call(), greet.call()
    calls = [greet.using(id=given[0]).call(), late, greet.using(id=given[1]).call(), early]
    fresh = sorted([early.job.id, late.job.id])
    jobs = await drum.enqueue_many(calls)
    assert [job.id for job in jobs] == [given[0], fresh[0], given[1], fresh[1]]


async def test_duplicates_among_many_are_told_one_by_one(drum, greet):
    jobs = await drum.enqueue_many([greet.using(key=key).call() for key in ("a", "b", "a")])
    assert [job.created for job in jobs] == [True, True, False]
    assert jobs[2].id == jobs[0].id


async def test_many_calls_are_all_or_none(drum, greet):
    await greet.using(key="a").enqueue()
    calls = [greet.call(), greet.using(key="a", on_conflict="raise").call()]
    with pytest.raises(KeyTaken):
        await drum.enqueue_many(calls)
    assert (await drum.counts()).unfinished == 1


async def test_what_is_no_call_is_refused_by_name(drum, greet):
    for given in (greet, "greet"):
        with pytest.raises(BadOption, match=r"enqueue_many: calls must be calls, as task.call\(…\) makes them, got"):
            await drum.enqueue_many([greet.call(), given])
        with pytest.raises(BadOption, match="enqueue_many: calls must be"):
            drum.enqueue_many_sync([given])
    assert (await drum.counts()).unfinished == 0


async def test_no_calls_at_all_make_no_jobs(drum):
    assert await drum.enqueue_many([]) == []
    assert drum.enqueue_many_sync([]) == []


async def test_one_batch_joins_one_transaction_only(drum, greet):
    calls = [greet.using(transaction=object()).call(), greet.using(transaction=object()).call()]
    with pytest.raises(BadOption, match="transaction must be the same for every call"):
        await drum.enqueue_many(calls)


async def test_arguments_may_come_as_json(greet, drum):
    (job,) = await drum.enqueue_many([greet.call_json('{"name": "Ada"}')])
    assert (await stored(job)).args == b'{"name":"Ada"}'


async def test_what_was_enqueued_is_told_to_subscribers(drum, greet):
    told: list[JobEnqueued] = []
    drum.events.subscribe(told.append)
    job = await greet.enqueue()
    assert told == [JobEnqueued(job.id, "greet", "default")]
