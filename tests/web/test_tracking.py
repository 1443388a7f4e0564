import pytest

from drumline import Context, Drumline
from drumline.errors import BadSettings
from drumline.model.token import make_token
from tests.web.browser import Browser
from tests.web.shop import AUTH, make_shop, serve, work_off

pytestmark = pytest.mark.asyncio
HTML = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture
def visitor(drum) -> Browser:
    return Browser(serve(drum, AUTH, owner=lambda request: request.headers.get("x-user")))


async def test_a_token_tells_status_progress_and_result_to_anybody_who_has_it(drum, visitor):
    job = await drum.enqueue("send_mail", user_id=7)
    shown = (await visitor.get(f"/track/{job.tracking_token}")).json
    assert shown == {"status": "ready", "progress": None, "message": "", "result": None, "error": None}
    await work_off(drum)
    shown = (await visitor.get(f"/track/{job.tracking_token}")).json
    assert (shown["status"], shown["progress"], shown["result"]) == ("done", 1.0, "sent Welcome to 7")


async def test_only_the_error_that_is_meant_for_users_is_told(drum, visitor):
    @drum.task(max_attempts=1)
    async def charge(ctx: Context) -> None:
        await ctx.progress(0.5, "asking your bank")
        ctx.user_error("Your bank did not answer.")
        raise ValueError("internal: db-7 refused")

    job = await charge.enqueue()
    await work_off(drum)
    answer = await visitor.get(f"/track/{job.tracking_token}")
    assert answer.json["error"] == "Your bank did not answer."
    assert (answer.json["status"], answer.json["progress"], answer.json["message"]) == ("dead", 0.5, "asking your bank")
    assert "db-7" not in answer.text


async def test_a_wrong_token_is_404_with_the_same_words_as_a_missing_job(drum, visitor):
    job = await drum.enqueue("send_mail", user_id=7)
    good = job.tracking_token
    nobody = make_token(drum.secret, "00000000-0000-7000-8000-000000000000")
    foreign = make_token(b"another fleet", job.id)
    answers = [
        await visitor.get(f"/track/{token}")
        for token in (job.id, good[:-2], good + "A", good[:-1] + "é", "x", foreign, nobody, good.swapcase())
    ]
    assert {(answer.status, answer.text) for answer in answers} == {(404, '{"error":"there is no such job"}')}


async def test_a_job_with_an_owner_is_shown_to_that_owner_only(drum, visitor):
    job = await drum.find_task("send_mail").using(meta={"owner": 42}).enqueue(user_id=7)
    url = f"/track/{job.tracking_token}"
    assert (await visitor.get(url, x_user="42")).status == 200
    assert [(await visitor.get(url, x_user="43")).status, (await visitor.get(url)).status] == [404, 404]
    assert (await Browser(serve(drum, AUTH)).get(url, x_user="42")).status == 404


async def test_the_fragment_asks_again_until_the_job_has_ended(drum, visitor):
    job = await drum.enqueue("send_mail", user_id=7)
    url = f"/track/{job.tracking_token}"
    answer = await visitor.known_as(HTML).get(url)
    assert answer.headers["content-type"].startswith("text/html")
    assert (f'hx-get="{url}"' in answer.text, answer.headers["refresh"]) == (True, "2")
    await work_off(drum)
    answer = await visitor.get(url, hx_request="true")
    assert ("hx-get" in answer.text, "refresh" in answer.headers) == (False, False)
    assert '<progress max="1" value="1.000">' in answer.text


async def test_what_a_task_says_is_escaped_in_the_fragment(drum, visitor):
    @drum.task(max_attempts=1)
    async def shout(ctx: Context) -> None:
        ctx.user_error("<script>alert(1)</script>")
        raise ValueError

    job = await shout.enqueue()
    await work_off(drum)
    answer = await visitor.known_as(HTML).get(f"/track/{job.tracking_token}")
    assert ("<script>" in answer.text, "&lt;script&gt;" in answer.text) == (False, True)


async def test_every_process_on_one_file_makes_the_same_token(folder):
    job = await make_shop("sqlite:///shop.db").enqueue("send_mail", user_id=7)
    again = await make_shop("sqlite:///shop.db").jobs.get(job.id)
    assert again.tracking_token == job.tracking_token
    assert (folder / "shop.db-secret").stat().st_mode & 0o777 == 0o600
    other = make_shop("sqlite:///other.db")
    assert make_token(other.secret, job.id) != job.tracking_token


async def test_the_setting_makes_the_same_token_everywhere(monkeypatch):
    monkeypatch.setenv("DRUMLINE_WEB__SECRET", "0123456789abcdef")
    assert Drumline("memory://").secret == Drumline("sqlite:///x.db").secret


async def test_a_store_without_a_password_needs_the_setting():
    assert Drumline("redis://:hunter2@db/0").secret == Drumline("redis://:hunter2@other/0").secret
    with pytest.raises(BadSettings, match=r"web\.secret"):
        _ = Drumline("redis://db/0").secret
