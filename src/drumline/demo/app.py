"""A small shop: what its background work looks like as tasks.

It opens the store that DRUMLINE_DEMO_STORE names. A second worker joins from another terminal by

    DRUMLINE_DEMO_STORE=sqlite:////tmp/…/shop.db drumline worker drumline.demo.app:drum
"""

from __future__ import annotations

import asyncio
import os

from drumline import Context, Drumline, GiveUp, current
from drumline.clock import pause

__all__ = ["drum", "encode_video", "keep_shop", "open_shop"]

ITEMS = ("snare drum", "pair of sticks", "bass drum", "cymbal", "practice pad")

drum = Drumline(os.environ.get("DRUMLINE_DEMO_STORE", "sqlite:///drumline-demo.db"))


class PaymentTimeout(Exception):
    """The payment provider did not answer in time."""


@drum.task(queue="orders", priority=10)
async def take_order(order: int, item: str) -> str:
    """An order makes further jobs: nobody waits for the card or the mail."""
    await asyncio.sleep(0.05)
    await charge_card.using(tags=["vip"] if order % 7 == 0 else []).enqueue(order, 10 + order % 90)
    await send_mail.enqueue(f"customer{order}@example.com", f"Thank you for the {item}")
    # The key: however often the order is touched, it is reminded of once.
    await remind.using(delay="45s", key=f"remind-{order}").enqueue(order)
    return f"order {order}: one {item}"


@drum.task(queue="payments", max_attempts=5, backoff="400ms")
async def charge_card(ctx: Context, order: int, amount: int) -> int:
    """A flaky call: every third one does not answer at first, and is tried again."""
    await asyncio.sleep(0.2)
    if order % 3 == 0 and ctx.attempt <= 1 + order % 2:
        raise PaymentTimeout(f"no answer for order {order} within 200 ms")
    ctx.log("charged", order=order, amount=amount)
    return amount


@drum.task(queue="mail")
async def send_mail(to: str, subject: str) -> None:
    current().log("sent", to=to, subject=subject)
    await asyncio.sleep(0.1)


@drum.task(queue="mail")
async def remind(order: int) -> None:
    """Waits for a while before it is due: it survives a restart."""
    await asyncio.sleep(0.05)
    current().log("how did you like it?", order=order)


@drum.task(queue="photos")
def resize_photo(item: str, width: int) -> str:
    """A plain function: it runs in a thread, and may block."""
    pause(0.3)
    return f"{item.replace(' ', '-')}-{width}.jpg"


@drum.task(queue="reports", timeout="2m", priority=5)
async def build_report(ctx: Context, number: int, api_key: str) -> dict[str, int]:
    """Long work that says how far it is. The key is not shown anywhere: its name says that it is a secret."""
    rows, step = 50_000, 2_000
    ctx.log("starting export", report=number, api_key=api_key)
    for done in range(step, rows + step, step):
        await asyncio.sleep(0.9)
        await ctx.progress(done / rows, f"Rows {done:,} of {rows:,}")
        if done % 10_000 == 0:
            ctx.log(f"{done:,} rows", rate=f"{step / 0.9:.0f}/s")
        if done == 14_000:
            ctx.log("slow page, reading it once more", level="warning", page=7)
    return {"report": number, "rows": rows}


@drum.task(queue="partners", max_attempts=3, backoff="300ms", give_up_on=PermissionError)
async def tell_partner(order: int) -> None:
    """Goes wrong for good now and then: the job is dead, and waits for somebody to look at it."""
    await asyncio.sleep(0.1)
    if order % 2:
        raise GiveUp(f"the partner has closed the account of order {order}")
    raise ConnectionError("partner.example refused the connection")


# A task whose code lives in another program: jobs for it wait until a worker that knows it comes.
encode_video = drum.stub("encode_video", queue="video")


@drum.schedule(every="10s")
async def count_stock(ctx: Context) -> None:
    """Every ten seconds, once in the whole fleet."""
    await asyncio.sleep(0.1)
    ctx.log("counted", tick=str(ctx.tick))


@drum.schedule(cron="*/5 * * * * *", timezone="Europe/Berlin", overlap="skip")
async def close_the_till(ctx: Context) -> None:
    """At every fifth second; while one still runs, the next is skipped, and the ledger says so."""
    assert ctx.tick is not None
    await asyncio.sleep(6 if ctx.tick.second == 30 else 1)


@drum.schedule(every="5m", max_attempts=1)
async def sync_inventory() -> None:
    await asyncio.sleep(0.8)


@drum.schedule(cron="0 9 * * *", timezone="America/New_York")
async def morning_report() -> None:
    """At nine in New York, whatever the clocks do there."""
    await asyncio.sleep(2)


@drum.schedule(every="1h")
async def expire_carts() -> None:
    await asyncio.sleep(0.3)


@drum.schedule(every="1m", coordination="per_replica", run_on_startup=True)
async def warm_cache() -> None:
    """In every replica for itself, also when it starts."""
    await asyncio.sleep(0.05)


async def open_shop() -> None:
    """Customers come, one after the other, until this is cancelled."""
    order = 10_000
    while True:
        order += 1
        item = ITEMS[order % len(ITEMS)]
        await take_order.using(origin="POST /orders").enqueue(order, item)
        if order % 4 == 0:
            await drum.enqueue_many([resize_photo.call(item, width) for width in (320, 640, 1280)])
        if order % 10 == 1:
            # While one is being made, a second call makes no second job.
            await build_report.using(key="report", origin="POST /reports").enqueue(order, "sk-1234567890")
        if order % 12 == 5:
            await tell_partner.enqueue(order // 12)
        await asyncio.sleep(0.9)


async def keep_shop() -> None:
    """Ann looks after it: now and then she gives a dead letter another chance, until this is cancelled."""
    client = drum.client(via="http", who="ann")
    while True:
        await asyncio.sleep(25)
        ids = [job.id async for job in client.jobs.find(task="tell_partner", state="dead", limit=1)]
        if ids:
            await client.jobs.retry(*ids, reason="the partner says that they are back")
