"""Declaring schedules, and the verbs of `drum.schedules`."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from drumline import BadArgument, BadOption, Context, Drumline, DrumlineError, Rule, Schedule, UnknownSchedule, testing
from drumline.model.replica import Role
from drumline.model.schedule import Coordination, Decision, Misfire, Overlap
from tests.support.waiting import eventually

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
pytestmark = pytest.mark.asyncio


@pytest.fixture
def tock(drum):
    @drum.schedule(every="10s", queue="low", max_attempts=2)
    async def tock() -> str:
        return "tock"

    return tock


@pytest_asyncio.fixture
async def harness(drum, tock):
    async with testing.harness(drum, now=NOON) as opened:
        yield opened


def ticks_of(jobs):
    return [job.info.tick for job in jobs]


async def test_a_scheduled_function_is_a_task_too(drum, tock):
    assert await tock() == "tock"
    assert drum.tasks["tock"].options.queue == "low"
    job = await tock.enqueue()
    assert (await job.refresh()).info.source == "manual"


async def test_a_schedule_fires_at_its_instants_with_the_options_of_its_task(drum, harness):
    jobs = await harness.advance("35s")
    assert ticks_of(jobs) == [NOON + timedelta(seconds=second) for second in (10, 20, 30)]
    info = jobs[0].info
    assert (info.queue, info.max_attempts, info.source, info.schedule) == ("low", 2, "scheduled", "tock")
    assert info.origin == "schedule tock"


async def test_a_task_may_have_many_schedules_each_with_its_arguments_and_options(drum):
    @drum.task(queue="mail", tags=["t"])
    async def send(to: str, times: int = 1) -> None: ...

    drum.schedule(every="1m", name="hourly-ann", args={"to": "ann"}, priority=7, tags=["ann"])(send)
    drum.schedule(cron="@daily", name="daily-bob", args={"to": "bob", "times": 3}, meta={"why": "bob"})(send)
    ann, bob = (drum.schedules[name].definition for name in ("hourly-ann", "daily-bob"))
    assert (ann.task, ann.options.queue, ann.options.priority, ann.tags) == ("send", "mail", 7, ("t", "ann"))
    assert (bob.args, bob.meta, bob.options.priority) == (b'{"to":"bob","times":3}', {"why": "bob"}, 0)


async def test_the_context_knows_schedule_and_tick_in_the_schedules_zone(drum):
    seen = []

    @drum.schedule(cron="0 9 * * *", timezone="America/New_York")
    async def report(ctx: Context) -> None:
        seen.append((ctx.schedule, str(ctx.tick), ctx.source))

    async with testing.harness(drum, now=NOON) as harness:
        await harness.advance("4h")
        await (await drum.schedules.trigger("report")).refresh()
        await harness.run_until_idle()
    assert seen == [("report", "2026-03-01 09:00:00-05:00", "scheduled"), ("report", "None", "manual")]


async def test_a_bad_option_is_refused_where_it_is_declared(drum):
    with pytest.raises(BadOption, match="schedule f: every must be a duration of 1 ms or more, got 0"):

        @drum.schedule(every=0)
        async def f() -> None: ...

    assert (len(drum.schedules), "f" in drum.schedules) == (0, False)


async def test_nothing_remains_of_a_scheduled_function_that_was_refused(drum):
    with pytest.raises(BadOption, match="schedule f: option must be given as misfire_limit=, got 'limit'"):

        @drum.schedule(every=1, limit=3)
        async def f() -> None: ...

    with pytest.raises(BadOption, match="task g: executor"):

        @drum.schedule(every=1, executor="fork")
        async def g() -> None: ...

    assert (len(drum.schedules), len(drum.tasks)) == (0, 0)


async def test_a_refused_schedule_leaves_the_task_of_that_name_as_it_was(drum):
    for seconds in (10, 0):
        with suppress(BadOption):

            @drum.schedule(every=seconds, priority=seconds)
            async def f() -> None: ...

    assert (drum.tasks["f"].options.priority, drum.schedules["f"].schedule) == (10, "every 10s")


async def test_a_schedule_has_what_using_chose(drum, harness, tock):
    drum.schedule(every="1h", name="declared")(tock.using(queue="slow", priority=7))
    await drum.schedules.register(tock.using(queue="slow", priority=7), every="1h", name="registered", priority=3)
    declared, registered = (drum.schedules[name].definition.options for name in ("declared", "registered"))
    assert (declared.queue, declared.priority) == ("slow", 7)
    assert (registered.queue, registered.priority) == ("slow", 3)


async def test_what_using_chose_and_no_schedule_can_have_is_refused(drum, harness, tock):
    with pytest.raises(BadOption, match="schedule x: key must be left out of using"):
        drum.schedule(every="1h", name="x")(tock.using(key="k"))
    with pytest.raises(BadOption, match="schedule x: delay must be left out of using"):
        await drum.schedules.register(tock.using(delay="5m"), every="1h", name="x")
    assert "x" not in drum.schedules


async def test_arguments_that_do_not_fit_are_refused_where_they_are_declared(drum):
    with pytest.raises(BadArgument, match=r"schedule f: .*to"):

        @drum.schedule(every=1)
        async def f(to: str) -> None: ...


async def test_a_name_that_is_taken_is_refused_naming_both_places(drum, tock):
    with pytest.raises(BadOption, match=r"schedule tock: name must be unique, .*test_schedules.py:\d+ and .*name="):
        drum.schedule(every="1m")(tock)

    with pytest.raises(BadOption, match="schedule tock: name must be unique"):

        @drum.schedule(every=1, name="tock")
        async def other() -> None: ...


async def test_a_function_that_is_declared_again_replaces_its_schedule():
    drum = testing.app()
    for seconds in (1, 2):

        @drum.schedule(every=seconds)
        async def again() -> None: ...

    assert drum.schedules["again"].schedule == "every 2s"


async def test_a_zone_that_has_no_effect_is_warned_of(drum, caplog):
    @drum.schedule(every="1h", timezone="Europe/Berlin")
    async def f() -> None: ...

    assert "timezone has no effect" in caplog.text


async def test_a_zone_that_has_no_effect_is_warned_of_when_registered_too(drum, harness, tock, caplog):
    await drum.schedules.register(tock, every="1h", timezone="Europe/Berlin", name="x")
    await drum.schedules.register(tock, cron="@daily", timezone="Europe/Berlin", name="y")
    assert [record.getMessage() for record in caplog.records if "timezone" in record.getMessage()] == [
        "schedule x: timezone has no effect on every=, which counts real time"
    ]


async def test_the_mapping_knows_what_the_code_declares_before_anything_ran(drum, tock):
    drum.schedule(every=1, name="later", paused=True)(tock)
    assert (len(drum.schedules), list(drum.schedules), "tock" in drum.schedules) == (2, ["later", "tock"], True)
    assert drum.schedules.get("nobody") is None
    view = drum.schedules["tock"]
    assert (view.task, view.schedule, view.coordination, view.paused) == ("tock", "every 10s", "fleet", False)
    assert (view.last_tick, view.last_fired_at, view.current_leader, view.status) == (None, None, None, "idle")
    assert (view.total_runs, view.total_failures, view.orphaned) == (0, 0, False)
    assert view.next_run_at is not None
    assert (drum.schedules["later"].next_run_at, drum.schedules["later"].paused) == (None, True)
    with pytest.raises(KeyError):
        drum.schedules["nobody"]


async def test_the_mapping_follows_what_runs(drum, harness):
    await harness.advance("12s")
    view = drum.schedules["tock"]
    bucket = int(NOON.timestamp()) // 10 + 1
    assert (view.last_tick, view.last_fired_at) == (f"tock:{bucket}", NOON + timedelta(seconds=10))
    assert (view.next_run_at, view.current_leader) == (NOON + timedelta(seconds=20), "harness")
    await drum.schedules.refresh()
    assert (drum.schedules["tock"].total_runs, drum.schedules["tock"].status) == (1, "idle")


async def test_a_schedule_is_paused_and_resumed_from_then_on(drum, harness):
    assert await drum.schedules.pause("tock", reason="deploy") is True
    assert await drum.schedules.pause("tock") is False
    view = drum.schedules["tock"]
    assert (view.paused, view.paused_why, view.next_run_at) == (True, "deploy", None)
    assert view.paused_by is not None
    assert await harness.advance("1m") == []
    assert await drum.schedules.resume("tock") is True
    assert await drum.schedules.resume("tock") is False
    assert ticks_of(await harness.advance("10s")) == [NOON + timedelta(seconds=70)]
    rows = [row async for row in drum.schedules.ticks("tock")]
    assert [row.decision for row in rows] == [Decision.FIRED, Decision.PAUSED, Decision.CHANGED]


async def test_a_trigger_runs_now_with_the_schedules_own_arguments_also_while_paused(drum, harness):
    await drum.schedules.pause("tock")
    job = await drum.schedules.trigger("tock")
    (ended,) = await harness.run_until_idle()
    assert (ended.id, ended.info.source, ended.info.queue, ended.info.tick) == (job.id, "manual", "low", None)


async def test_a_trigger_that_overlap_forbids_is_refused(drum):
    @drum.schedule(every="1h", overlap="skip")
    async def slow() -> None: ...

    async with testing.harness(drum, now=NOON) as harness:
        await harness.run_until_idle()
        await drum.schedules.trigger("slow")
        with pytest.raises(DrumlineError, match="schedule slow: not run, for a job of it is unfinished and overlap is"):
            await drum.schedules.trigger("slow")


async def test_a_backfill_fires_what_was_not_and_nothing_twice(drum, harness):
    await harness.advance("25s")
    made = await drum.schedules.backfill("tock", NOON - timedelta(seconds=30), NOON + timedelta(hours=1))
    jobs = await harness.run_until_idle()
    assert sorted(ticks_of(jobs)) == [NOON - timedelta(seconds=10 * number) for number in (3, 2, 1, 0)]
    assert {job.id for job in made} == {job.id for job in jobs}
    again = await drum.schedules.backfill("tock", "2026-03-01T11:59:30Z", "2026-03-01T13:00:00Z")
    assert again == []


async def test_a_backfill_that_cannot_be_is_refused(drum, tock):
    async with testing.harness(drum, now=NOON) as harness:
        await harness.run_until_idle()
        with pytest.raises(BadOption, match="schedule tock: end must be not before start"):
            await drum.schedules.backfill("tock", NOON, NOON - timedelta(seconds=1))
        with pytest.raises(BadOption, match="at most 100,000 instants"):
            await drum.schedules.backfill("tock", NOON - timedelta(days=100), NOON)
        await drum.schedules.register(tock, name="own", every=1, coordination="per_replica")
        with pytest.raises(DrumlineError, match="belong to single replicas"):
            await drum.schedules.backfill("own", NOON, NOON)


async def test_a_schedule_is_registered_changed_and_unregistered_while_running(drum, harness, tock):
    view = await drum.schedules.register(tock, every="60s", name="slow", queue="slow", misfire="all", overlap="skip")
    assert (view.schedule, view.definition.options.queue) == ("every 1m", "slow")
    assert (view.definition.misfire, view.definition.overlap) == (Misfire.ALL, Overlap.SKIP)
    jobs = [job for job in await harness.advance("60s") if job.info.schedule == "slow"]
    assert ticks_of(jobs) == [NOON + timedelta(seconds=60)]
    await drum.schedules.register("tock", every="30s", name="slow")
    jobs = [job for job in await harness.advance("60s") if job.info.schedule == "slow"]
    assert ticks_of(jobs) == [NOON + timedelta(seconds=second) for second in (90, 120)]
    await drum.schedules.unregister("slow")
    assert "slow" not in drum.schedules
    assert [job for job in await harness.advance("60s") if job.info.schedule == "slow"] == []


async def test_a_schedule_value_can_be_registered(drum, harness):
    rule = Rule(every=timedelta(seconds=5))
    view = await drum.schedules.register(Schedule(name="five", task="tock", rule=rule))
    assert view.definition.in_code is False
    with pytest.raises(BadOption, match="schedule six: rule must be given"):
        await drum.schedules.register(Schedule(name="six", task="tock", rule=Rule()))
    with pytest.raises(BadOption, match="schedule five: options must be left out with a Schedule value"):
        await drum.schedules.register(Schedule(name="five", task="tock", rule=rule), every=1)


async def test_what_cannot_be_registered_or_unregistered_is_refused(drum, harness, tock):
    with pytest.raises(BadOption, match="register: name must be free, but the code declares"):
        await drum.schedules.register(tock, every=1)
    with pytest.raises(DrumlineError, match="schedule tock is declared in code: remove it there, or pause it"):
        await drum.schedules.unregister("tock")
    with pytest.raises(BadOption, match="register: task must be a task, its registered name, or a Schedule value"):
        await drum.schedules.register(lambda: None, every=1, name="x")


async def test_a_schedule_of_the_code_that_no_replica_ever_ran_cannot_be_acted_upon(drum, tock):
    with pytest.raises(UnknownSchedule, match="schedule 'tock' is declared in code, but no replica has run it yet"):
        await drum.schedules.pause("tock")
    with pytest.raises(BadOption, match="register: name must be free, but the code declares"):
        await drum.schedules.register(tock, every=1)


@pytest.mark.parametrize("verb", ["pause", "resume", "trigger", "unregister"])
async def test_an_unknown_schedule_is_named_with_the_one_that_was_meant(drum, harness, verb):
    await harness.run_until_idle()
    with pytest.raises(UnknownSchedule, match="schedule 'tok' is not known; did you mean 'tock'"):
        await getattr(drum.schedules, verb)("tok")


async def test_every_verb_is_there_for_code_that_is_not_async(drum, tock):
    def play():
        schedules = drum.sync.schedules
        schedules.register(tock, every="1m", name="other")
        schedules.pause("other", reason="why not")
        schedules.resume("other")
        job = schedules.trigger("other")
        assert schedules.backfill("other", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z") != []
        assert [row.decision for row in schedules.ticks("other")].count(Decision.FIRED) == 2
        assert "other" in schedules.refresh()
        schedules.unregister("other")
        return job

    assert (await asyncio.to_thread(play)).created


async def test_jobs_of_a_tick_run_in_a_real_worker_and_its_schedules_stop_with_it(drum):
    ran = []

    @drum.schedule(every="1h", run_on_startup=True)
    async def at_start() -> None:
        ran.append(1)

    run = asyncio.create_task(drum.run())
    await eventually(lambda: ran)
    run.cancel()
    await asyncio.wait([run])
    assert ran == [1]


async def test_a_scheduler_fires_and_runs_nothing(drum):
    @drum.schedule(every="1h", run_on_startup=True)
    async def at_start() -> None:
        raise AssertionError("a scheduler runs no jobs")

    run = asyncio.create_task(drum.run(role=Role.SCHEDULER))
    while not (await drum.counts()).ready:
        await asyncio.sleep(0)
    run.cancel()
    await asyncio.wait([run])
    assert (await drum.counts()).ready == 1


async def test_in_process_every_schedule_belongs_to_each_replica(monkeypatch):
    monkeypatch.setenv("DRUMLINE_SCHEDULER__BACKEND", "in_process")
    drum = Drumline("memory://")

    @drum.schedule(every="10s")
    async def f() -> None: ...

    assert drum.schedules["f"].coordination is Coordination.PER_REPLICA
    async with testing.harness(drum, now=NOON) as harness:
        jobs = await harness.advance("20s")
    assert len(jobs) == 2
    assert all(job.info.queue.startswith("@harness:") for job in jobs)


async def test_a_fleet_schedule_without_time_limit_has_that_of_the_settings(monkeypatch):
    monkeypatch.setenv("DRUMLINE_SCHEDULER__LEASE_TTL_SECS", "90")
    drum = Drumline("memory://")

    @drum.task
    async def f() -> None: ...

    drum.schedule(every=1, name="a")(f)
    drum.schedule(every=1, name="b", timeout=5)(f)
    drum.schedule(every=1, name="c", coordination="per_replica")(f)
    limits = [drum.schedules[name].definition.options.timeout for name in "abc"]
    assert limits == [timedelta(seconds=90), timedelta(seconds=5), None]


async def test_a_schedule_that_is_declared_while_a_worker_runs_is_fired_and_run(drum):
    runs = []
    run = asyncio.create_task(drum.run())
    await eventually(lambda: any(worker.has_begun for worker in drum.running_here))

    @drum.schedule(every="200ms")
    async def late() -> None:
        runs.append(drum.schedules["late"].last_tick)

    # A beat comes every ten seconds, and a poll too.
    await eventually(lambda: len(runs) >= 2, deadline=5)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_who_reads_while_it_runs_sees_what_another_process_did(tmp_path):
    here, there = (Drumline(f"sqlite:///{tmp_path}/jobs.db") for _ in range(2))
    for drum in (here, there):

        @drum.schedule(every="1h")
        async def hourly() -> None: ...

    over = asyncio.Event()
    running = asyncio.ensure_future(here.run(role="worker", until=over))
    await eventually(lambda: here.schedules["hourly"].is_stored)
    await there.schedules.trigger("hourly")
    # By a beat it would be seen after ten seconds.
    await eventually(lambda: here.schedules["hourly"].total_runs == 1, 8)
    over.set()
    await running
    await here.close()
    await there.close()
