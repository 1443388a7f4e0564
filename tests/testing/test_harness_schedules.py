"""Schedules under the harness: hours of them in a moment, outages, and what is done about those."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from drumline import Drumline, current, testing
from drumline.model.schedule import Decision

pytestmark = pytest.mark.asyncio

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
# Of these fifty, each fires so often in a day.
RULES = {"30m": 48, "1h": 24, "20m": 72, "15m": 96, "40m": 36, "45m": 32, "24m": 60, "18m": 80, "12m": 120, "36m": 40}


@pytest.fixture
def drum():
    return Drumline("sqlite:///never.db")


def after(seconds):
    return NOON + timedelta(seconds=seconds)


async def rows_of(drum, name, *decisions):
    """The ledger's rows of these decisions, the oldest first."""
    rows = [row async for row in drum.schedules.ticks(name) if row.decision in decisions]
    return sorted(rows, key=lambda row: row.instant)


def declare(drum, misfire="latest"):
    """Declare a schedule of every 10 s."""

    @drum.schedule(every="10s", misfire=misfire)
    async def tock() -> None: ...


async def suffer_outage(harness):
    """Let the fleet be away for five ticks, and come back 7 s after the fifth; what runs then."""
    await harness.run_until_idle()
    harness.clock.advance(57)
    return await harness.run_until_idle()


@pytest.mark.parametrize(("misfire", "fired"), [("skip", []), ("latest", [50]), ("all", [10, 20, 30, 40, 50])])
async def test_ticks_that_were_missed_follow_the_policy_and_the_ledger_tells_why(drum, misfire, fired):
    declare(drum, misfire)
    async with testing.harness(drum, now=NOON) as harness:
        jobs = await suffer_outage(harness)
        assert [job.info.tick for job in jobs] == [after(second) for second in fired]
        rows = await rows_of(drum, "tock", Decision.FIRED, Decision.MISSED)
        assert [row.instant for row in rows] == [after(second) for second in (10, 20, 30, 40, 50)]
        assert [row.instant for row in rows if row.job_id] == [after(second) for second in fired]
        lates = ["47s", "37s", "27s", "17s", "7s"]
        assert [row.reason.partition(" late; ")[0] for row in rows] == lates
        assert all(f"misfire={misfire}" in row.reason for row in rows)


@pytest.mark.parametrize(("misfire", "left"), [("skip", 5), ("latest", 4), ("all", 0)])
async def test_a_backfill_after_an_outage_fires_what_was_skipped_and_nothing_twice(drum, misfire, left):
    declare(drum, misfire)
    async with testing.harness(drum, now=NOON) as harness:
        await suffer_outage(harness)
        assert len(await drum.schedules.backfill("tock", after(1), after(57))) == left
        assert await drum.schedules.backfill("tock", after(1), after(57)) == []
        await harness.run_until_idle()
        assert Counter(job.info.tick for job in harness.jobs) == dict.fromkeys(map(after, (10, 20, 30, 40, 50)), 1)
        assert len(await rows_of(drum, "tock", Decision.FIRED)) == 5
        assert await rows_of(drum, "tock", Decision.MISSED) == []


async def test_a_backfill_while_the_fleet_is_away_leaves_nothing_to_do_when_it_is_back(drum):
    declare(drum)
    async with testing.harness(drum, now=NOON) as harness:
        await harness.run_until_idle()
        harness.clock.advance(57)
        assert len(await drum.schedules.backfill("tock", after(1), after(57))) == 5
        assert len(await harness.run_until_idle()) == 5
        assert [job.info.tick for job in await harness.advance("10s")] == [after(60)]
        assert len(harness.jobs) == 6


async def test_a_day_of_fifty_schedules_fires_each_tick_once_at_its_instant(drum):
    expected = {}
    for place in range(5):
        for every, times in RULES.items():

            async def play() -> None: ...

            name = f"every-{every}-{place}"
            drum.schedule(every=every, name=name)(drum.task(name=name)(play))
            expected[name] = times
    async with testing.harness(drum, now=NOON) as harness:
        ended = await harness.advance(DAY)
        assert Counter(job.info.schedule for job in ended) == expected
        assert {job.state for job in ended} == {"done"}
        assert len(ended) == len({(job.info.schedule, job.info.tick) for job in ended}) == 3_040
        rows = [row async for row in drum.schedules.ticks() if row.decision is Decision.FIRED]
        assert len(rows) == 3_040
        assert all(row.recorded_at == row.instant and row.outcome == "done" for row in rows)


async def test_the_mapping_tells_what_has_run_and_what_comes(drum):
    @drum.schedule(every="10s", max_attempts=1)
    async def tock() -> None:
        if current().tick == after(20):
            raise ValueError("at twenty")

    async with testing.harness(drum, now=NOON) as harness:
        await harness.advance("35s")
        view = (await drum.schedules.refresh())["tock"]
        assert (view.total_runs, view.total_failures, view.status) == (3, 1, "idle")
        assert view.next_run_at == after(40)
        assert (view.last_tick, view.last_fired_at) == (f"tock:{int(after(30).timestamp()) // 10}", after(30))
        assert view.current_leader == "harness"
        assert (len(drum.schedules), "tock" in drum.schedules, drum.schedules.get("tick")) == (1, True, None)
        await drum.schedules.pause("tock")
        assert (drum.schedules["tock"].paused, drum.schedules["tock"].next_run_at) == (True, None)
