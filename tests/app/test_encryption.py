import asyncio
from base64 import b64encode
from datetime import timedelta

import pytest

from drumline import Drumline, Unreadable
from drumline.model.query import JobFilter
from drumline.model.sealed import Resealing
from drumline.policy.waiting import why_waiting
from drumline.sealing import generate_key
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio

KEY, OTHER = generate_key(), generate_key()
SECRET = "s3cr3t-of-ada"


def make_drum(monkeypatch, key, *older):
    """A process with these keys."""
    monkeypatch.delenv("DRUMLINE_ENCRYPTION__KEY", raising=False)
    monkeypatch.delenv("DRUMLINE_ENCRYPTION__OLDER_KEYS", raising=False)
    if key is not None:
        monkeypatch.setenv("DRUMLINE_ENCRYPTION__KEY", key)
    if older:
        monkeypatch.setenv("DRUMLINE_ENCRYPTION__OLDER_KEYS", ", ".join(older))
    drum = Drumline("sqlite:///jobs.db")

    @drum.task
    async def echo(word: str) -> str:
        return word

    @drum.task(executor="thread")
    def shout(word: str) -> str:
        return word.upper()

    assert drum.settings is not None
    return drum


async def run_until_tried(drum, job_id):
    """Have a worker until it has had the job in its hands."""
    stop = asyncio.Event()
    working = asyncio.create_task(drum.run(until=stop))
    store = drum.store_as_it_is()
    await eventually(lambda: store.jobs(JobFilter(ids=(job_id,))).run().items[0].attempts)
    stop.set()
    await working


async def test_a_job_runs_and_its_file_holds_no_argument_and_no_result(monkeypatch, folder):
    async with make_drum(monkeypatch, KEY) as drum:
        job = await drum.enqueue("echo", word=SECRET)
        await drum.enqueue("shout", word=SECRET)
        await drum.run(drain=True)
        assert await job.wait() == SECRET
        assert SECRET.encode() in (await job.refresh()).info.args
    kept = b"".join(file.read_bytes() for file in folder.iterdir())
    assert b"echo" in kept
    assert SECRET.encode() not in kept
    assert SECRET.upper().encode() not in kept


async def test_an_older_key_still_opens(monkeypatch):
    async with make_drum(monkeypatch, KEY) as drum:
        job_id = (await drum.enqueue("echo", word=SECRET)).id
    async with make_drum(monkeypatch, OTHER, KEY) as drum:
        await drum.run(drain=True)
        assert await (await drum.jobs.get(job_id)).wait() == SECRET


@pytest.mark.parametrize("key", [OTHER, None], ids=["another key", "no key"])
async def test_a_worker_without_the_key_leaves_the_job_and_spends_no_attempt(monkeypatch, key):
    async with make_drum(monkeypatch, KEY) as drum:
        job_id = (await drum.enqueue("echo", word=SECRET)).id
    async with make_drum(monkeypatch, key) as drum:
        await run_until_tried(drum, job_id)
        job = await drum.jobs.read(job_id)
        assert (job.state, job.attempt) == ("delayed", 0)
        reason = why_waiting(job, [], {}, job.due_at - timedelta(seconds=10))
        assert "its arguments are encrypted with key" in reason
        assert "not in the key ring of this process" in reason
    async with make_drum(monkeypatch, KEY) as drum:
        await drum.jobs.reschedule(job_id, delay=0)
        await drum.run(drain=True)
        assert await (await drum.jobs.get(job_id)).wait() == SECRET


async def test_a_spoiled_body_ends_its_job_with_a_clear_error(monkeypatch):
    async with make_drum(monkeypatch, KEY) as drum:
        ids = [(await drum.enqueue("echo", word=word)).id for word in ("first", "second")]
        inner = (await drum.store()).inner
        first, second = (await inner.jobs(JobFilter(ids=tuple(ids)))).items
        await inner.reseal([Resealing(job=second.id, before=second.args, after=first.args)])
        await drum.run(drain=True)
        assert (await drum.jobs.read(ids[0])).state == "done"
        job = await drum.jobs.read(ids[1])
        assert job.state == "dead"
        assert job.last_error.startswith("BodySpoiled: its arguments are encrypted with key ")
        assert "no longer what was written" in job.last_error


async def test_a_result_without_its_key_says_so(monkeypatch):
    async with make_drum(monkeypatch, KEY) as drum:
        job_id = (await drum.enqueue("echo", word=SECRET)).id
        await drum.run(drain=True)
    async with make_drum(monkeypatch, OTHER) as drum:
        with pytest.raises(Unreadable, match="its result is encrypted with key"):
            await (await drum.jobs.get(job_id)).wait()


async def test_a_schedule_with_arguments_fires_and_is_triggered_and_its_file_holds_none(monkeypatch, folder):
    async with make_drum(monkeypatch, KEY) as drum:
        await drum.schedules.register("echo", every="1d", name="nightly", args={"word": SECRET}, run_on_startup=True)
        triggered = await drum.schedules.trigger("nightly")
        await drum.run(drain=True)
        assert await (await drum.jobs.get(triggered.id)).wait() == SECRET
        results = [job.result async for job in drum.jobs.find(schedule="nightly")]
        version = (await (await drum.store()).schedules())[0].version
    async with make_drum(monkeypatch, KEY) as drum:
        await drum.schedules.register("echo", every="1d", name="nightly", args={"word": SECRET}, run_on_startup=True)
        assert (await (await drum.store()).schedules())[0].version == version
    assert set(results) == {SECRET}
    kept = b"".join(file.read_bytes() for file in folder.iterdir())
    assert b"nightly" in kept
    assert SECRET.encode() not in kept
    assert b64encode(b'{"word":"' + SECRET.encode()) not in kept
