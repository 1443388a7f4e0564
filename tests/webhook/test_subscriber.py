"""The webhook against a real HTTP server."""

import json
import logging
import socket
import threading
import time
from datetime import UTC, datetime

import pytest

from drumline.clock import ManualClock
from drumline.events import JobDied, JobEnqueued, QueueUnserved
from drumline.webhook.signing import check_signature
from drumline.webhook.subscriber import MOST_WAITING, Webhook
from tests.support.waiting import eventually
from tests.webhook.receiver import receiving

pytestmark = pytest.mark.asyncio

SECRET = "a secret of sixteen"
DIED = JobDied("dead:1:7", "1", "send", "mail", 5, "ValueError: boom")
UNSERVED = QueueUnserved("u", "mail", datetime(2026, 5, 5, tzinfo=UTC), "no worker is alive")


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def receiver():
    with receiving() as made:
        yield made


@pytest.fixture
def hook(clock):
    """Make a webhook, closed at the end."""
    made = []

    def hook(url, **options):
        given = {"allow_private": True, "timeout": 5.0, "waits": (0.01, 0.01), **options}
        webhook = Webhook(url, SECRET, clock=clock, source="worker-1", **given)
        made.append(webhook)
        return webhook

    yield hook
    for webhook in made:
        webhook.close(0)


async def test_an_alert_arrives_signed(hook, receiver, clock):
    hook(receiver.url).hear(DIED)
    await eventually(lambda: receiver.deliveries)
    (delivery,) = receiver.deliveries
    assert delivery.path == "/hook?token=of-the-path"
    assert check_signature(SECRET, delivery.headers["Drumline-Signature"], delivery.body, now=clock.now())
    assert (delivery.headers["Drumline-Event"], delivery.headers["Drumline-Delivery"]) == ("JobDied", DIED.id)
    told = json.loads(delivery.body)
    assert (told["id"], told["event"], told["source"]) == (DIED.id, "JobDied", "worker-1")
    assert told["data"] == {"job_id": "1", "task": "send", "queue": "mail", "attempt": 5, "error": "ValueError: boom"}


async def test_other_events_are_not_sent(hook, receiver):
    webhook = hook(receiver.url)
    webhook.hear(JobEnqueued("1", "send", "mail"))
    webhook.hear(UNSERVED)
    webhook.close()
    assert [delivery.headers["Drumline-Event"] for delivery in receiver.deliveries] == ["QueueUnserved"]


async def test_secrets_are_struck_out(hook, receiver):
    hook(receiver.url).hear(JobDied("d", "1", "send", "mail", 1, "ValueError: password=hunter22 at https://a:b@c/"))
    await eventually(lambda: receiver.deliveries)
    assert b"hunter22" not in receiver.deliveries[0].body
    assert b"a:b@" not in receiver.deliveries[0].body


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_server_in_trouble_is_tried_again_under_the_same_id(hook, receiver, status):
    receiver.answers = [status, status]
    webhook = hook(receiver.url)
    webhook.hear(DIED)
    await eventually(lambda: len(receiver.deliveries) == 3)
    webhook.close()
    assert len({delivery.headers["Drumline-Delivery"] for delivery in receiver.deliveries}) == 1
    assert len(receiver.deliveries) == 3


async def test_after_the_last_try_it_is_let_go_and_said(hook, receiver, caplog):
    receiver.answers = [500] * 3
    webhook = hook(receiver.url)
    webhook.hear(DIED)
    webhook.hear(UNSERVED)
    await eventually(lambda: len(receiver.deliveries) == 4)
    webhook.close()
    assert receiver.deliveries[-1].headers["Drumline-Event"] == "QueueUnserved"
    assert "alert dead:1:7 was let go: answered 500" in caplog.text
    assert "of-the-path" not in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("status", [400, 401, 404])
async def test_a_refusal_is_final(hook, receiver, status):
    receiver.answers = [status]
    webhook = hook(receiver.url)
    webhook.hear(DIED)
    webhook.close()
    assert len(receiver.deliveries) == 1


async def test_a_redirect_is_not_followed(hook, receiver):
    with receiving() as elsewhere:
        receiver.answers, receiver.location = [302], elsewhere.url
        webhook = hook(receiver.url)
        webhook.hear(DIED)
        webhook.close()
        assert elsewhere.deliveries == []
    assert len(receiver.deliveries) == 1


async def test_this_host_is_refused_unless_allowed(hook, receiver, caplog):
    webhook = hook(receiver.url, allow_private=False)
    webhook.hear(DIED)
    await eventually(lambda: "was let go" in caplog.text)
    assert "127.0.0.1 is at a private address" in caplog.text
    assert receiver.deliveries == []


async def test_the_connection_is_made_to_the_very_address_that_was_looked_at(hook, receiver, monkeypatch):
    """A name that is public when it is looked at, and this host the next moment, leads nowhere else."""
    asked = []

    def rebind(host, port, **_):
        asked.append(host)

        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", port))]

    connected = []

    def connect(place, timeout):
        connected.append(place)
        made = socket.socket()
        made.settimeout(timeout)
        made.connect(("127.0.0.1", place[1]))
        return made

    monkeypatch.setattr("drumline.webhook.address.socket.getaddrinfo", rebind)
    monkeypatch.setattr("drumline.webhook.sending.socket.create_connection", connect)
    hook(f"http://hooks.example.com:{receiver.port}/", allow_private=False).hear(DIED)
    await eventually(lambda: receiver.deliveries)
    assert connected == [("93.184.216.34", receiver.port)]
    assert receiver.deliveries[0].headers["Host"] == f"hooks.example.com:{receiver.port}"


async def test_a_server_that_drips_is_given_up_in_time(hook, caplog):
    is_over = threading.Event()

    def drip(handler):
        for letter in b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000:
            try:
                handler.wfile.write(bytes([letter]))
                handler.wfile.flush()
            except OSError:
                return
            is_over.wait(0.02)

    with receiving(drip) as dripping:
        hook(dripping.url, timeout=0.3, waits=()).hear(DIED)
        await eventually(lambda: "was let go" in caplog.text, deadline=5)
        is_over.set()


async def test_who_tells_never_waits_and_what_is_too_much_is_dropped_and_said(hook, receiver, caplog):
    caplog.set_level(logging.WARNING)
    receiver.gate.clear()
    webhook = hook(receiver.url)
    webhook.hear(DIED)
    await eventually(lambda: receiver.deliveries)
    begun = time.monotonic()
    for number in range(MOST_WAITING + 50):
        webhook.hear(JobDied(f"dead:{number}:1", str(number), "send", "mail", 1, None))
    assert time.monotonic() - begun < 5
    assert caplog.text.count("more are dropped") == 1


async def test_closing_sends_what_waits(hook, receiver):
    webhook = hook(receiver.url)
    for number in range(20):
        webhook.hear(JobDied(f"dead:{number}:1", str(number), "send", "mail", 1, None))
    webhook.close(20)
    assert len(receiver.deliveries) == 20
