"""A canary in arguments, errors, log lines, results and addresses is seen in nothing that is answered or logged."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from drumline import Context, Drumline, Secret
from drumline.model.token import make_token
from drumline.web.dashboard.entries import DASHBOARD
from tests.support.waiting import eventually
from tests.web.browser import Answer, Browser, bearer, living
from tests.web.shop import AUTH, TOKENS, make_shop, serve, work_off

pytestmark = pytest.mark.asyncio
CANARY = "canary-3f9c1d"
API = "/admin/jobs/api"
PAGES = (
    *(f"{API}/{path}" for path in ("jobs", "jobs?state=dead", "schedules", "schedules/nightly", "audit", "workers")),
    *(f"{API}/{path}" for path in ("counts", "series", "queues", "tasks", "schedules/nightly/ticks", "openapi.json")),
    *(f"/actuator/{path}" for path in ("jobs", "tasks", "metrics", "info")),
    # The dashboard, and whatever is added to it.
    *(f"/admin/jobs{entry.path}" for entry in DASHBOARD if entry.method == "GET" and "{" not in entry.path),
    "/admin/jobs/schedules/nightly",
)


@pytest.fixture(autouse=True)
def everything_is_logged(caplog):
    caplog.set_level(logging.DEBUG)


def add_bank(drum: Drumline) -> None:
    @drum.task(max_attempts=1)
    async def call_bank(ctx: Context, account: Annotated[str, Secret], deep: dict[str, Any]) -> str:
        ctx.log(f"calling for {account}", api_key=account)
        await ctx.progress(0.5, f"for {account}")
        ctx.user_error(f"no answer for {account}")
        if deep.get("fail"):
            raise ValueError(f"no answer for {account} from https://ann:{account}@bank/?x=1")
        return account


async def ask_with_canary(admin: Browser) -> list[Answer]:
    """Say the canary wherever something can be said."""
    given = {"account": CANARY, "deep": {"password": CANARY}}
    options = {"meta": {"token": CANARY}, "tags": [CANARY], "key": f"of {CANARY}", "on_conflict": "raise"}
    schedule = {"task": "call_bank", "every": "1h", "name": "nightly", "args": given}
    return [
        await admin.post(f"{API}/jobs", {"task": "call_bank", "args": given, "options": options}),
        await admin.post(
            f"{API}/jobs",
            {"task": "call_bank", "args": {**given, "deep": {"fail": True}}, "options": {**options, "key": CANARY}},
        ),
        await admin.post(f"{API}/jobs", {"task": "call_bank", "args": given, "options": options}),
        await admin.post(f"{API}/jobs", {"task": "call_bank", "args": {"account": [CANARY], "deep": 5}}),
        await admin.post(f"{API}/schedules", schedule),
        await admin.post(f"{API}/schedules/nightly/trigger", {"reason": f"password={CANARY}"}),
        await admin.get(f"{API}/jobs?password={CANARY}"),
        await admin.get(f"{API}/jobs?created_from={CANARY}"),
        await admin.get(f"{API}/jobs/{CANARY}"),
        await admin.get(f"/track/{CANARY}"),
        await admin.get(f"/actuator/nothing?token={CANARY}"),
        await admin.get("/actuator/jobs", authorization=f"Bearer {CANARY}"),
    ]


def text_of_log(caplog: pytest.LogCaptureFixture) -> str:
    """What a handler would write, tracebacks too, of our own loggers."""
    formatter = logging.Formatter()
    return "\n".join(formatter.format(record) for record in caplog.records if record.name.startswith("drumline"))


async def test_a_canary_is_seen_nowhere(drum, caplog):
    add_bank(drum)
    app = serve(drum, AUTH, role=None)
    admin = Browser(app).known_as(bearer(TOKENS["admin"]))
    async with living(app):
        seen = await ask_with_canary(admin)
        assert [answer.status for answer in seen] == [201, 201, 409, 422, 201, 201, 422, 422, 404, 404, 404, 401]
        await work_off(drum)
        for made in seen[:2]:
            seen.append(await admin.get(f"{API}/jobs/{made.json['id']}"))
            assert (seen[-1].status, seen[-1].json["args"]["account"]) == (200, "***")
            seen.append(await admin.get(f"/admin/jobs/jobs/{made.json['id']}"))
            assert (seen[-1].status, "call_bank" in seen[-1].text) == (200, True)
            token = (await drum.jobs.get(made.json["id"])).tracking_token
            seen += [await admin.get(f"/track/{token}"), await admin.get(f"/track/{token}", accept="text/html")]
        pages = [await admin.get(path) for path in PAGES]
        # A page that asks whether something shall be done has to be told what.
        assert {answer.status for answer in pages} == {200, 422}
        async with admin.open(f"{API}/events") as stream:
            await eventually(lambda: "event: reset" in stream.text)
        assert [answer.text for answer in (*seen, *pages, stream) if CANARY in answer.text] == []
        assert CANARY not in str([answer.headers for answer in (*seen, *pages)])
    (failed,) = (await admin.get(f"{API}/jobs?state=dead")).json["jobs"]
    assert failed["last_error"] == "ValueError: no answer for *** from https://***@bank/?x=1"
    assert ("call_bank" in text_of_log(caplog), CANARY in text_of_log(caplog)) == (True, False)


@dataclass
class Card:
    number: Annotated[str, Secret]
    day: int


async def test_a_marked_field_of_a_model_is_seen_nowhere(drum):
    @drum.task(max_attempts=1)
    async def charge(ctx: Context, cards: list[Card]) -> None:
        ctx.log(f"charging {cards[0].number}")
        raise ValueError(f"{cards[0].number} is refused")

    job = await charge.enqueue([Card(CANARY, day=5)])
    await work_off(drum)
    admin = Browser(serve(drum, AUTH, role=None)).known_as(bearer(TOKENS["admin"]))
    shown = await admin.get(f"{API}/jobs/{job.id}")
    page = await admin.get(f"/admin/jobs/jobs/{job.id}")
    assert shown.json["args"] == {"cards": [{"number": "***", "day": 5}]}
    assert (CANARY in shown.text, CANARY in page.text) == (False, False)
    assert (await job.refresh()).info.attempts[-1].error.message == "*** is refused"


async def test_a_canary_that_no_argument_names_is_seen_nowhere(drum):
    @drum.task(max_attempts=1)
    async def ask_bank() -> None:
        raise ValueError(f"refused by https://ann:{CANARY}@bank/ with api_key={CANARY}")

    await ask_bank.enqueue()
    await work_off(drum)
    await drum.schedules.pause("tidy", f"password={CANARY}")
    await drum.schedules.resume("tidy")
    await drum.schedules.pause("tidy", f"password={CANARY}")
    await drum.queues.pause("mail", reason=f"password={CANARY}")
    admin = Browser(serve(drum, AUTH, role=None)).known_as(bearer(TOKENS["admin"]))
    paths = (*PAGES, "/admin/jobs/schedules/tidy", f"{API}/schedules/tidy", f"{API}/schedules/tidy/ticks")
    pages = {path: (await admin.get(path)).text for path in paths}
    assert [path for path, text in pages.items() if CANARY in text] == []
    assert "refused by https://***@bank/ with api_key=***" in pages["/admin/jobs/"]
    assert all("password=***" in pages[path] for path in ("/admin/jobs/queues", f"{API}/schedules/tidy/ticks"))


@pytest.mark.parametrize(
    "url", [f"postgresql://ann:{CANARY}@127.0.0.1:1/shop?connect_timeout=1", f"redis://ann:{CANARY}@127.0.0.1:1/0"]
)
async def test_the_password_of_a_store_that_is_out_of_reach_is_told_to_nobody(url, caplog):
    drum = make_shop(url)
    admin = Browser(serve(drum, AUTH, role=None)).known_as(bearer(TOKENS["admin"]))
    token = make_token(drum.secret, "00000000-0000-7000-8000-000000000000")
    answers = await asyncio.gather(
        *(admin.get(path) for path in (f"{API}/jobs", "/actuator/metrics", "/actuator/ready", f"/track/{token}")),
        admin.post(f"{API}/jobs", {"task": "send_mail", "args": {"user_id": 7}}),
    )
    assert [answer.status for answer in answers] == [503] * 5
    assert CANARY not in "".join(answer.text for answer in answers)
    assert ("GET /admin/jobs/api/jobs" in text_of_log(caplog), CANARY in text_of_log(caplog)) == (True, False)
    assert ("GET /track/{token}: " in text_of_log(caplog), token in text_of_log(caplog)) == (True, False)
    await drum.close()
