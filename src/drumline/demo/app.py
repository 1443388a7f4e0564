"""A small shop: what its background work looks like as tasks.

It opens the store that DRUMLINE_DEMO_STORE names. A second worker joins from another terminal by

    DRUMLINE_DEMO_STORE=sqlite:////tmp/…/shop.db drumline worker drumline.demo.app:drum
"""

from __future__ import annotations

import asyncio
import os

from drumline import Context, Drumline, GiveUp, current
from drumline.clock import pause

__all__ = ["drum", "open_shop"]

ITEMS = ("snare drum", "pair of sticks", "bass drum", "cymbal", "practice pad")

drum = Drumline(os.environ.get("DRUMLINE_DEMO_STORE", "sqlite:///drumline-demo.db"))


class PaymentTimeout(Exception):
    """The payment provider did not answer in time."""


@drum.task(queue="orders", priority=10)
async def take_order(order: int, item: str) -> str:
    """An order makes further jobs: nobody waits for the card or the mail."""
    await asyncio.sleep(0.05)
    await charge_card.enqueue(order, 10 + order % 90)
    await send_mail.enqueue(f"customer{order}@example.com", f"Thank you for the {item}")
    # The key: however often the order is touched, it is reminded of once.
    await remind.using(delay="6s", key=f"remind-{order}").enqueue(order)
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
    """Waits for a few seconds before it is due: it survives a restart."""
    await asyncio.sleep(0.05)
    current().log("how did you like it?", order=order)


@drum.task(queue="photos")
def resize_photo(item: str, width: int) -> str:
    """A plain function: it runs in a thread, and may block."""
    pause(0.3)
    return f"{item.replace(' ', '-')}-{width}.jpg"


@drum.task(queue="reports", timeout="30s")
async def build_report(ctx: Context, number: int) -> dict[str, int]:
    """Long work that says how far it is."""
    steps = 12
    for step in range(steps):
        await ctx.progress(step / steps, f"page {step + 1} of {steps}")
        ctx.log("page written", page=step + 1)
        await asyncio.sleep(0.4)
    return {"report": number, "pages": steps}


@drum.task(queue="partners", max_attempts=3, backoff="300ms", give_up_on=PermissionError)
async def tell_partner(order: int) -> None:
    """Goes wrong for good now and then: the job is dead, and waits for somebody to look at it."""
    await asyncio.sleep(0.1)
    if order % 2:
        raise GiveUp(f"the partner has closed the account of order {order}")
    raise ConnectionError("partner.example refused the connection")


@drum.schedule(every="2s")
async def count_stock(ctx: Context) -> None:
    """Every two seconds, once in the whole fleet."""
    await asyncio.sleep(0.1)
    ctx.log("counted", tick=str(ctx.tick))


@drum.schedule(cron="*/5 * * * * *", timezone="Europe/Berlin", overlap="skip")
async def close_the_till() -> None:
    """At every fifth second; while one still runs, the next is skipped, and the ledger says so."""
    await asyncio.sleep(1)


@drum.schedule(every="10s", coordination="per_replica", run_on_startup=True)
async def warm_cache() -> None:
    """In every replica for itself, also when it starts."""
    await asyncio.sleep(0.05)


async def open_shop() -> None:
    """Customers come, one after the other, until this is cancelled."""
    order = 0
    while True:
        order += 1
        item = ITEMS[order % len(ITEMS)]
        await take_order.enqueue(order, item)
        if order % 4 == 0:
            await drum.enqueue_many([resize_photo.call(item, width) for width in (320, 640, 1280)])
        if order % 10 == 1:
            # While one is being made, a second call makes no second job.
            await build_report.using(key="report").enqueue(order)
        if order % 12 == 5:
            await tell_partner.enqueue(order // 12)
        await asyncio.sleep(0.3)
