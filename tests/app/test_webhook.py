import json

import pytest

from drumline import Drumline
from drumline.clock import SystemClock
from drumline.webhook.signing import check_signature
from tests.webhook.receiver import receiving

pytestmark = pytest.mark.asyncio

SECRET = "a secret of sixteen"


async def test_a_dead_letter_reaches_the_webhook_of_the_settings(monkeypatch):
    with receiving() as receiver:
        monkeypatch.setenv("DRUMLINE_WEBHOOK__URL", receiver.url)
        monkeypatch.setenv("DRUMLINE_WEBHOOK__SECRET", SECRET)
        monkeypatch.setenv("DRUMLINE_WEBHOOK__ALLOW_PRIVATE", "true")
        drum = Drumline("memory://")

        @drum.task(max_attempts=1)
        async def fail(password: str) -> None:
            raise ValueError(f"wrong: {password}")

        job = await fail.enqueue(password="hunter22")
        await drum.run(drain=True)
        (delivery,) = receiver.deliveries
    told = json.loads(delivery.body)
    assert (told["event"], told["data"]["job_id"]) == ("JobDied", job.id)
    assert told["data"]["error"] == "ValueError: wrong: ***"
    assert check_signature(SECRET, delivery.headers["Drumline-Signature"], delivery.body, now=SystemClock().now())


async def test_without_a_url_there_is_no_webhook():
    drum = Drumline("memory://")

    @drum.task
    async def ring() -> None: ...

    await ring.enqueue()
    await drum.run(drain=True)
    assert not drum.events
