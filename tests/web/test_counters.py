"""Counters of /metrics never fall, whatever becomes of the jobs, and say what the store says."""

from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from drumline import Context
from drumline.model.query import JobFilter
from tests.web.shop import work_off

pytestmark = pytest.mark.asyncio


class Scrapes:
    """What one scrape after the other tells."""

    def __init__(self, admin):
        self._admin = admin
        self.last: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}

    async def look(self):
        """Scrape, and fail if a counter, or a bucket or sum of a histogram, has fallen or is gone."""
        text = (await self._admin.get("/actuator/metrics")).text
        now = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            if family.type in ("counter", "histogram")
            for sample in family.samples
            if not sample.name.endswith("_created")
        }
        fallen = {place: (value, now.get(place)) for place, value in self.last.items() if now.get(place, -1) < value}
        assert not fallen
        self.last = now

    def total(self, name, **labels):
        wanted = labels.items()
        return sum(value for (one, found), value in self.last.items() if one == name and wanted <= dict(found).items())


@pytest.fixture
def scrapes(admin):
    return Scrapes(admin)


def add_tasks(drum):
    @drum.task(max_attempts=3, backoff="1ms", retention="1s")
    async def stumble(ctx: Context) -> None:
        if ctx.attempt < 3:
            raise ValueError("not yet")


async def test_counters_never_fall_and_agree_with_the_store(drum, scrapes):
    add_tasks(drum)
    await scrapes.look()
    for _ in range(3):
        await drum.enqueue("stumble")
        await drum.enqueue("fail")
        await drum.enqueue("send_mail", user_id=1)
        await scrapes.look()
        await work_off(drum)
        await scrapes.look()
    store = await drum.store()
    jobs = (await store.jobs(JobFilter(), limit=100)).items
    ends = Counter((job.task, attempt.ended) for job in jobs for attempt in job.attempts)
    assert ends == {("stumble", "failed"): 6, ("stumble", "done"): 3, ("fail", "failed"): 3, ("send_mail", "done"): 3}
    for (task, ended), number in ends.items():
        assert scrapes.total("drumline_attempts_total", task=task, ended=ended) == number
    assert scrapes.total("drumline_retries_total") == 6
    assert scrapes.total("drumline_dead_total") == (await drum.counts()).total.dead == 3
    for row in await store.counts():
        labels = {"queue": row.queue, "task": row.task}
        assert scrapes.total("drumline_jobs_done_total", **labels) == row.total_done
        assert scrapes.total("drumline_attempts_failed_total", **labels) == row.total_failures
        assert scrapes.total("drumline_run_seconds_count", **labels) == row.total_done + row.total_failures


async def test_counters_do_not_fall_when_jobs_are_retried_discarded_or_forgotten(drum, scrapes):
    await drum.enqueue("fail")
    await drum.enqueue("send_mail", user_id=1)
    await work_off(drum)
    await scrapes.look()
    await drum.jobs.retry(state="dead")
    await scrapes.look()
    await work_off(drum)
    await scrapes.look()
    await drum.jobs.discard(state=["dead", "done"])
    await scrapes.look()
    assert (await drum.counts()).total.dead == 0
    assert scrapes.total("drumline_jobs_done_total", task="send_mail") == 1
    assert scrapes.total("drumline_attempts_failed_total", task="fail") == 2
    assert scrapes.total("drumline_dead_total") == 2
