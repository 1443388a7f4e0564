"""A canary in arguments, errors, log lines, results and addresses is seen in nothing that is answered or logged."""

import logging
from typing import Annotated, Any

import pytest

from drumline import Context, Secret
from tests.web.browser import Browser, bearer
from tests.web.shop import AUTH, TOKENS, make_shop, serve, work_off

pytestmark = pytest.mark.asyncio
CANARY = "canary-3f9c1d"
API = "/admin/jobs/api"


async def test_a_canary_is_seen_nowhere(caplog):
    caplog.set_level(logging.DEBUG)
    drum = make_shop("sqlite:///shop.db")

    @drum.task(max_attempts=1)
    async def call_bank(ctx: Context, account: Annotated[str, Secret], deep: dict[str, Any]) -> str:
        ctx.log(f"calling for {account}", api_key=account)
        await ctx.progress(0.5, f"for {account}")
        if deep.get("fail"):
            raise ValueError(f"no answer for {account} from https://ann:{account}@bank/?x=1")
        return account

    admin = Browser(serve(drum, AUTH)).known_as(bearer(TOKENS["admin"]))
    seen = []
    for fail in (True, False):
        args = {"account": CANARY, "deep": {"password": CANARY, "fail": fail}}
        body = {"task": "call_bank", "args": args, "options": {"meta": {"token": CANARY}, "tags": [CANARY]}}
        seen.append(await admin.post(f"{API}/jobs", body))
    schedule = {"task": "call_bank", "every": "1h", "name": "nightly", "args": {"account": CANARY, "deep": {}}}
    seen.append(await admin.post(f"{API}/schedules", schedule))
    seen.append(await admin.post(f"{API}/jobs", {"task": "call_bank", "args": {"account": [CANARY], "deep": 5}}))
    caplog.clear()
    await work_off(drum)
    for made in seen[:2]:
        seen.append(await admin.get(f"{API}/jobs/{made.json['id']}"))
        assert seen[-1].json["args"]["account"] == "***"
    paths = ("jobs", "schedules", "schedules/nightly", "audit", "workers", "counts", "series", "queues", "tasks")
    seen += [await admin.get(f"{API}/{path}") for path in paths]
    seen += [await admin.get(f"/actuator/{path}") for path in ("jobs", "tasks", "metrics", "info")]
    assert {answer.status for answer in seen} == {200, 201, 422}
    assert [answer.text for answer in seen if CANARY in answer.text] == []
    failed = (await admin.get(f"{API}/jobs?state=dead")).json["jobs"][0]
    assert failed["last_error"] == "ValueError: no answer for *** from https://***@bank/?x=1"
    assert CANARY not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("drumline"))
    await drum.close()
