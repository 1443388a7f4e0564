"""The shop's past: what two replicas would have left in the store in the weeks, and the busy hour, before the demo.

It is written through the store protocol, with a clock that is moved by hand from one instant to the next. Nothing in it
is left to chance: what varies does so by a number that is spread evenly.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from drumline.clock import ManualClock, fresh_id
from drumline.demo.app import encode_video
from drumline.model.claim import ANY_QUEUE, Claim, Share
from drumline.model.job import Attempt, Failure, JobState, NewJob
from drumline.model.outcome import Outcome
from drumline.model.query import By, Command, CommandKind, JobFilter, PauseKind
from drumline.model.schedule import Decision, Schedule
from drumline.policy.due import Ruling
from drumline.policy.firing import tick_firings
from drumline.policy.rule import times
from drumline.stores.open import open_store

if TYPE_CHECKING:
    from drumline.app import Drumline

__all__ = ["write_past"]

REPLICAS = ("web-1:past", "web-2:past")
TICKS = 60
STEP = timedelta(seconds=10)
# What is tried again within this time is tried before the next order comes.
SOON = timedelta(seconds=4)
# How long an attempt of each task takes, in milliseconds, about.
RUNS = {
    "take_order": 60,
    "charge_card": 230,
    "send_mail": 110,
    "remind": 60,
    "resize_photo": 320,
    "tell_partner": 120,
    "count_stock": 110,
    "close_the_till": 1050,
    "sync_inventory": 830,
    "morning_report": 2100,
    "expire_carts": 310,
}
TIMEOUT = Failure(
    "PaymentTimeout",
    "no answer for order {} within 10 s",
    'Traceback (most recent call last):\n  File "shop/payments.py", line 41, in charge_card\n'
    "    reply = await gateway.charge(order, amount)\nshop.payments.PaymentTimeout: no answer for order {} within 10 s",
)


class Moment(NamedTuple):
    """What happened, and when."""

    at: datetime
    do: Callable[[], Awaitable[None]]


async def write_past(drum: Drumline, now: datetime) -> None:
    """Write it into the file that is the shop's store, up to now."""
    past = _Past(drum, now)
    await past.write()


class _Past:
    def __init__(self, drum: Drumline, now: datetime) -> None:
        self._drum = drum
        self._now = now
        self._clock = ManualClock(now - timedelta(days=70))
        self._store = open_store(drum.settings.store.url, clock=self._clock, synchronous="normal")
        # How many orders there were, and how often something varied.
        self._number = 0
        self._turns = 0
        # Until then the payment provider does not answer.
        self._outage = (now - timedelta(minutes=19), now - timedelta(minutes=15))

    async def write(self) -> None:
        await self._store.migrate()
        moments = [*self._ticks(), *self._hour(), *self._deeds()]
        for moment in sorted(moments, key=lambda moment: moment.at):
            self._clock.set(max(moment.at, self._clock.now()))
            await moment.do()
            await self._work_off()
        await self._store.close()

    def _ticks(self) -> Iterator[Moment]:
        """The last ticks of each schedule, from its declaration on."""
        for view in self._drum.schedules.values():
            schedule = view.definition
            if schedule.name == "warm_cache":
                continue
            instants = times(schedule.rule).newest(self._now - timedelta(days=65), self._now, TICKS)
            paused_from = self._now - timedelta(hours=8) if schedule.name == "expire_carts" else self._now
            yield Moment(instants[0] - timedelta(seconds=1), partial(self._declare, schedule))
            for place, instant in enumerate(instants):
                if instant < paused_from:
                    late = timedelta(seconds=7 if schedule.name == "sync_inventory" and place == 36 else 0.012)
                    yield Moment(
                        instant + late,
                        partial(self._fire, schedule, instant),
                    )

    def _hour(self) -> Iterator[Moment]:
        """The shop's jobs, every few seconds, in waves."""
        at = self._now - timedelta(hours=1)
        while at < self._now:
            yield Moment(at, self._sell)
            at += STEP

    def _deeds(self) -> Iterator[Moment]:
        """What people did."""
        ann, ops = By("ann", "http", "the partner says that they are back"), By("ops", "cli", "migration")
        yield Moment(self._now - timedelta(hours=8), lambda: self._pause("expire_carts", ops))
        for minutes in (52, 40, 33):
            yield Moment(self._now - timedelta(minutes=minutes), lambda: self._retry(ann))
        yield Moment(self._now - timedelta(minutes=4), self._order_videos)

    async def _declare(self, schedule: Schedule) -> None:
        await self._store.declare([schedule], by=By("web-1", "code"))

    async def _pause(self, name: str, by: By) -> None:
        await self._store.pause(PauseKind.SCHEDULE, [name], paused=True, by=by, token=fresh_id())

    async def _fire(self, schedule: Schedule, instant: datetime) -> None:
        (status,) = await self._store.schedules([schedule.name])
        ruling = Ruling(instant=instant, decision=Decision.FIRED, reason="on time")
        by = REPLICAS[int(self._spread() * 3) % 2]
        await self._store.fire(list(tick_firings(status, (ruling,), by)), by=by)

    async def _sell(self) -> None:
        """One step's worth of orders, with all that follows from them."""
        age = (self._now - self._clock.now()) / timedelta(hours=1)
        orders = 5 + round(6 * abs((age * 2.4 + 0.3) % 2 - 1)) + int(self._spread() * 4)
        jobs: list[NewJob] = []
        for _ in range(orders):
            self._number += 1
            jobs += self._order(self._number)
        await self._store.enqueue(jobs)

    def _order(self, order: int) -> Iterator[NewJob]:
        item = ("snare drum", "pair of sticks", "bass drum", "cymbal", "practice pad")[order % 5]
        yield self._job("take_order", {"order": order, "item": item})
        yield self._job("charge_card", {"order": order, "amount": 10 + order % 90}, ("vip",) if order % 7 == 0 else ())
        mail = {"to": f"customer{order}@example.com", "subject": f"Thank you for the {item}"}
        yield self._job("send_mail", mail)
        if order % 9 == 0:
            later = timedelta(hours=1 + 20 * self._spread())
            yield msgspec.structs.replace(self._job("remind", {"order": order}), start=later)
        if order % 4 == 0:
            yield self._job("resize_photo", {"item": item, "width": 640})
        if order % 300 == 5:
            yield self._job("tell_partner", {"order": order})

    async def _order_videos(self) -> None:
        names = (f"lesson-{number}.mp4" for number in (1, 2, 3))
        await self._store.enqueue([encode_video.call(name=name, height=1080).job for name in names])

    async def _retry(self, by: By) -> None:
        where = JobFilter(states=frozenset({JobState.DEAD}), task="tell_partner")
        found = (await self._store.jobs(where, limit=1)).items
        ids = tuple(job.id for job in found)
        await self._store.command(Command(id=fresh_id(), kind=CommandKind.RETRY, ids=ids, by=by))

    async def _work_off(self) -> None:
        """Claim and finish what is due, and what is to be tried again soon."""
        while soon := await self._claim():
            self._clock.set(soon)

    async def _claim(self) -> datetime | None:
        """After a short wait; and when the last of what failed is due again."""
        slow = 90 if self._is_outage() else 0
        self._clock.advance(timedelta(milliseconds=9 + round(30 * self._spread() ** 3) + slow))
        replica = REPLICAS[self._number % 2]
        claimed = await self._store.claim(replica, [Share(ANY_QUEUE, 200)], 200, list(RUNS), fresh_id())
        outcomes = [self._end(claim) for claim in claimed.claims]
        if outcomes:
            await self._store.finish(outcomes)
        waits = [outcome.start for outcome in outcomes if isinstance(outcome.start, timedelta)]
        return self._clock.now() + max(waits) if waits and max(waits) < SOON else None

    def _end(self, claim: Claim) -> Outcome:
        millis = RUNS[claim.task] * (0.55 + 0.9 * self._spread() ** 2)
        failure = self._failure(claim)
        if failure is None:
            return Outcome.done(claim, _attempt(claim, millis, "done"), b"null")
        attempt = _attempt(claim, millis, "failed", failure)
        if claim.attempt >= claim.options.max_attempts or failure.type == "GiveUp":
            return Outcome.dead(claim, attempt)
        return Outcome.retry(claim, attempt, timedelta(milliseconds=400 * 2**claim.attempt))

    def _failure(self, claim: Claim) -> Failure | None:
        order = msgspec.json.decode(claim.args).get("order", 0)
        match claim.task:
            case "charge_card" if self._is_outage() and order % 5 < 3 and (order % 17 == 0 or claim.attempt < 3):
                words = (TIMEOUT.message.replace("{}", str(order)), TIMEOUT.traceback.replace("{}", str(order)))
                return Failure(TIMEOUT.type, *words)
            case "charge_card" if order % 61 == 0 and claim.attempt == 1:
                return Failure("ConnectionResetError", "the gateway closed the connection", "")
            case "tell_partner" if order % 2:
                return Failure("GiveUp", f"the partner has closed the account of order {order}", "")
            case "tell_partner":
                return Failure("ConnectionError", "partner.example refused the connection", "")
            case "sync_inventory" if timedelta() <= self._outage[1] - self._clock.now() < timedelta(minutes=10):
                return Failure("PaymentTimeout", "the warehouse did not answer", "")
            case _:
                return None

    def _is_outage(self) -> bool:
        return self._outage[0] <= self._clock.now() <= self._outage[1]

    def _job(self, task: str, args: Mapping[str, object], tags: tuple[str, ...] = ()) -> NewJob:
        definition = self._drum.tasks[task]
        return NewJob(
            id=fresh_id(),
            task=task,
            args=msgspec.json.encode(args),
            options=definition.options,
            tags=tags,
            origin="POST /orders",
        )

    def _spread(self) -> float:
        """From 0 to 1, evenly, in no order that the eye would see."""
        self._turns += 1
        return (self._turns * 0.618034) % 1


def _attempt(claim: Claim, millis: float, ended: str, error: Failure | None = None) -> Attempt:
    ended_at = claim.claimed_at + timedelta(milliseconds=round(millis))
    return Attempt(claim.attempt, claim.fence, claim.replica, claim.replica, claim.claimed_at, ended_at, ended, error)
