"""What a worker's janitor forgets, on a file: not only hidden, but gone."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from drumline import Context, Drumline, GiveUp
from drumline.clock import ManualClock
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio


def rows_that_name(job_id: str) -> int:
    """In how many rows of any table the job's id stands."""
    found = 0
    with closing(sqlite3.connect(Path("jobs.db"))) as connection:
        tables = connection.execute("select name from sqlite_master where type = 'table'").fetchall()
        for (table,) in tables:
            columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
            named = " or ".join(f'"{column}" = :id' for column in columns)
            ((count,),) = connection.execute(f'select count(*) from "{table}" where {named}', {"id": job_id})
            found += count
    return found


@pytest.mark.parametrize("ended", ["done", "dead", "cancelled"])
async def test_an_ended_job_whose_retention_is_over_is_really_gone(ended):
    clock = ManualClock()
    drum = Drumline("sqlite:///jobs.db", clock=clock)

    @drum.task(max_attempts=1, tags=["old"])
    async def work(ctx: Context) -> str:
        ctx.log("soon forgotten")
        if ended == "dead":
            raise GiveUp("no use")
        return "soon forgotten"

    short, long = work.using(retention="2m", key="short"), work.using(retention="1d", delay="30d", key="long")
    forgotten, kept = await short.enqueue(), await long.enqueue()
    if ended == "cancelled":
        await forgotten.cancel()
    running = asyncio.create_task(drum.run())
    await drum.jobs.wait([forgotten], timeout="1m")
    assert (await forgotten.refresh()).state == ended
    assert rows_that_name(forgotten.id) > 0
    # Only the short one's time is over, and a sweep comes every minute.
    moved = clock.now()

    def is_gone():
        clock.advance(5)
        return rows_that_name(forgotten.id) == 0

    await eventually(is_gone)
    assert (clock.now() - moved).total_seconds() >= 120
    assert rows_that_name(kept.id) > 0
    assert [job.id async for job in drum.jobs.find()] == [kept.id]
    assert (await drum.counts()).unfinished == 1
    running.cancel()
    await asyncio.wait([running])
    await drum.close()
