"""Waiting for jobs that another process runs."""

import asyncio
import threading

import psutil
import pytest

from drumline import Drumline, client
from tests.end_to_end.band import play
from tests.end_to_end.fleet import fleet
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

JOBS = 60


@pytest.fixture
def band(tmp_path, home):
    with fleet(tmp_path, home) as running:
        yield running


def held():
    """What this process has open, and how many threads."""
    return psutil.Process().num_fds(), threading.active_count()


class Looks:
    """Counts the waiters that have looked for their jobs."""

    def __init__(self, monkeypatch):
        self.count = 0
        look = client.Jobs._ended_of  # noqa: SLF001

        async def counted(jobs, store, ids):
            found = await look(jobs, store, ids)
            self.count += 1
            return found

        monkeypatch.setattr(client.Jobs, "_ended_of", counted)
        # Nobody finds out by looking again: only a hint can tell.
        monkeypatch.setattr(client, "LOOK_EVERY", 3600)


async def collect(found):
    return [job.id async for job in found]


async def test_a_hundred_waiters_share_one_connection_and_are_told_when_their_jobs_end(band, monkeypatch):
    looks = Looks(monkeypatch)
    async with Drumline(band.home.url, namespace=band.home.namespace) as drum:
        calls = [play.call(beat) for beat in range(JOBS)]
        jobs = await drum.enqueue_many(calls)
        first = asyncio.create_task(jobs[0].wait())
        await eventually(lambda: looks.count == 1)
        for_one = held()
        each = [asyncio.create_task(job.wait()) for job in jobs[1:]]
        together = [asyncio.create_task(drum.jobs.wait(jobs)) for _ in range(20)]
        in_turn = [asyncio.create_task(collect(drum.jobs.as_ended(jobs))) for _ in range(20)]
        await eventually(lambda: looks.count == 100)
        # Those who look may do so side by side; those who listen share one connection.
        assert all(now - before <= band.home.side_by_side for now, before in zip(held(), for_one, strict=True))
        band.start("--drain")
        async with asyncio.timeout(60):
            assert await asyncio.gather(first, *each) == list(range(JOBS))
            for ended in await asyncio.gather(*together):
                assert [job.id for job in ended] == [job.id for job in jobs]
            for ids in await asyncio.gather(*in_turn):
                assert sorted(ids) == sorted(job.id for job in jobs)
