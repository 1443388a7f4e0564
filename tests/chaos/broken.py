"""Workers whose store is broken on purpose, each in a way that real queues have been: a chaos run has to see it."""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from drumline import Drumline
from drumline.chaos.worker import run
from drumline.clock import SystemClock, fresh_id
from drumline.model.claim import ClaimRef
from drumline.model.outcome import Outcome
from drumline.model.query import JobFilter
from drumline.model.replica import Beat, ReplicaInfo
from drumline.model.schedule import Fired, FiredAnswer, Firing
from drumline.stores.base import Op, Store

CHOICE = "DRUMLINE_TEST_BROKEN"


class Broken:
    """Hands everything to the store, but for what is broken."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _fences(self, outcomes: Sequence[Outcome]) -> dict[str, int]:
        """Of the jobs that run, the fence under which they do."""
        found = self._inner.jobs(JobFilter(ids=tuple(outcome.claim.id for outcome in outcomes))).run().items
        return {job.id: job.fence for job in found if job.lease_until is not None}


class WithoutFence(Broken):
    """Whoever says that a job is done is believed, and nobody is told that a claim was taken over."""

    def finish(self, outcomes: Sequence[Outcome]) -> Op[list[bool]]:
        def run() -> list[bool]:
            fences = self._fences(outcomes)
            return self._inner.finish([_refence(one, fences.get(one.claim.id)) for one in outcomes]).run()

        return _op(run)

    def beat(self, info: ReplicaInfo, held: Sequence[ClaimRef]) -> Op[Beat]:
        return _op(lambda: msgspec.structs.replace(self._inner.beat(info, held).run(), lost=()))


class FinishById(Broken):
    """A job is ended by its id, under whatever claim it runs; the attempt's line tells what the finisher believes."""

    def finish(self, outcomes: Sequence[Outcome]) -> Op[list[bool]]:
        def run() -> list[bool]:
            fences = self._fences(outcomes)
            self._inner.finish([_reclaim(one, fences.get(one.claim.id)) for one in outcomes]).run()
            return [True] * len(outcomes)

        return _op(run)


class TickWithoutLedger(Broken):
    """A tick makes its job, whether or not the ledger has it already."""

    def fire(self, firings: Sequence[Firing], **named: Any) -> Op[list[Fired]]:
        def run() -> list[Fired]:
            answers = self._inner.fire(firings, **named).run()
            again = [
                msgspec.structs.replace(firing.job, id=fresh_id())
                for firing, fired in zip(firings, answers, strict=True)
                if fired.answer in (FiredAnswer.DUPLICATE, FiredAnswer.STALE) and firing.job is not None
            ]
            if again:
                self._inner.enqueue(again).run()
            return answers

        return _op(run)


BROKEN: dict[str, Callable[[Store], Any]] = {
    "no fence": WithoutFence,
    "finish by id": FinishById,
    "tick without ledger": TickWithoutLedger,
}


def _refence(outcome: Outcome, fence: int | None) -> Outcome:
    if fence is None:
        return outcome
    attempt = msgspec.structs.replace(outcome.attempt, fence=fence)
    return msgspec.structs.replace(_reclaim(outcome, fence), attempt=attempt)


def _reclaim(outcome: Outcome, fence: int | None) -> Outcome:
    if fence is None:
        return outcome
    return msgspec.structs.replace(outcome, claim=msgspec.structs.replace(outcome.claim, fence=fence))


def _op(run: Callable[[], Any]) -> Op[Any]:
    async def wait() -> Any:
        return await asyncio.to_thread(run)

    return Op(run, wait)


def break_store(drum: Drumline) -> AbstractContextManager[object]:
    store: Store = BROKEN[os.environ[CHOICE]](drum.store_as_it_is())
    return drum.standing_in(store, SystemClock())


if __name__ == "__main__":
    run(break_store)
