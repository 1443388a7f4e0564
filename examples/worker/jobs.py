"""A program that is nothing but background work: two queues and a schedule.

drumline run jobs:drum                          works and fires until stopped
drumline enqueue send_mail '{"to": "ada@example.com"}' --app jobs:drum
"""

import asyncio

from drumline import Context, Drumline

# Where the store is, the environment says: DRUMLINE_STORE__URL.
drum = Drumline()


@drum.task(queue="mail", max_attempts=6, backoff="1s", timeout="30s")
async def send_mail(ctx: Context, to: str) -> str:
    # Every attempt of one job has the same id, so a mail provider that takes one can tell a repeat from a second mail.
    ctx.log("sent", to=to, message_id=ctx.job_id)
    await asyncio.sleep(0.01)
    return f"sent to {to}"


@drum.task
def add(a: int, b: int) -> int:
    return a + b


@drum.schedule(every="1s", overlap="skip")
async def count_the_till(ctx: Context) -> None:
    ctx.log("counted", tick=str(ctx.tick))
