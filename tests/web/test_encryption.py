import pytest
import pytest_asyncio

from drumline.sealing import generate_key
from tests.web.browser import Browser, bearer
from tests.web.shop import AUTH, TOKENS, make_shop, serve, work_off

pytestmark = pytest.mark.asyncio

PAGES = ("/admin/jobs/jobs", "/admin/jobs/jobs/{id}", "/admin/jobs/api/jobs/{id}", "/admin/jobs/api/jobs")


@pytest_asyncio.fixture
async def job_id(monkeypatch):
    """A job that was done by a process with a key."""
    monkeypatch.setenv("DRUMLINE_ENCRYPTION__KEY", generate_key())
    async with make_shop("sqlite:///jobs.db") as drum:
        job = await drum.enqueue("send_mail", user_id=4711, subject="Greetings")
        await work_off(drum)
        return job.id


async def read(job_id, paths=PAGES):
    async with make_shop("sqlite:///jobs.db") as drum:
        admin = Browser(serve(drum, AUTH, role=None)).known_as(bearer(TOKENS["admin"]))
        return [await admin.get(path.format(id=job_id)) for path in paths]


async def test_pages_with_the_key_show_what_is_stored(job_id):
    for answer in await read(job_id):
        assert answer.status == 200
        assert "4711" in answer.text


async def test_pages_without_the_key_say_that_it_is_encrypted(job_id, monkeypatch):
    monkeypatch.delenv("DRUMLINE_ENCRYPTION__KEY")
    answers = await read(job_id)
    for answer in answers:
        assert answer.status == 200
        assert "4711" not in answer.text
        assert "encrypted" in answer.text
        assert "drumline:sealed" not in answer.text
    assert (answers[2].json["args"], answers[2].json["result"]) == ("encrypted", "encrypted")
