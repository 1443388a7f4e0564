"""Stores that are broken on purpose, each in a way that real queues have been: the suite has to see it.

Each is the memory store behind a wrapper that spoils one operation, and only through the protocol itself.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from drumline.clock import ManualClock
from drumline.model.claim import ANY_QUEUE, Claim, Claimed, Share
from drumline.model.job import JobState
from drumline.model.options import PRIVATE
from drumline.model.outcome import Outcome
from drumline.model.query import JobFilter
from drumline.stores.base import Op, Store
from drumline.stores.memory import MemoryStore

# Long enough for every thread that is about to claim to have looked; no test waits for it to pass.
_GAP = 0.02


class _Wrapper:
    """Hands everything to the memory store."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class FinishWithoutFence(_Wrapper):
    """Completes a running job for whoever asks: the fence of the claim is not compared."""

    def finish(self, outcomes: Sequence[Outcome]) -> Op[list[bool]]:
        def run() -> list[bool]:
            return self._inner.finish([self._refenced(outcome) for outcome in outcomes]).run()

        return _op(run)

    def _refenced(self, outcome: Outcome) -> Outcome:
        found = self._inner.jobs(JobFilter(ids=(outcome.claim.id,))).run().items
        if not found or found[0].lease_until is None or found[0].fence == outcome.claim.fence:
            return outcome
        claim = msgspec.structs.replace(outcome.claim, fence=found[0].fence)
        attempt = msgspec.structs.replace(outcome.attempt, fence=found[0].fence)
        return msgspec.structs.replace(outcome, claim=claim, attempt=attempt)


class ClaimWithoutLock(_Wrapper):
    """Looks for jobs, and takes them a moment later: what another took in between is given out once more."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._given: dict[str, Claim] = {}
        self._lookers = 0
        self._counting = threading.Lock()

    def claim(self, replica: str, queues: Sequence[Share], limit: int, tasks: Sequence[str], token: str) -> Op[Claimed]:
        def run() -> Claimed:
            seen = self._look(queues, limit, tasks)
            self._yield_to_others()
            claimed = self._inner.claim(replica, queues, limit, tasks, token).run()
            taken = {claim.id for claim in claimed.claims}
            stolen = [self._given[job_id] for job_id in seen if job_id in self._given and job_id not in taken]
            self._given.update({claim.id: claim for claim in claimed.claims})
            return msgspec.structs.replace(claimed, claims=[*stolen, *claimed.claims][:limit])

        return _op(run)

    def _look(self, queues: Sequence[Share], limit: int, tasks: Sequence[str]) -> list[str]:
        """The jobs that this call would take, were it alone."""
        names = {share.queue for share in queues if share.limit}
        page = self._inner.jobs(JobFilter(states=frozenset({JobState.READY})), limit=500).run()
        return [
            job.id
            for job in page.items
            if job.task in tasks and (job.queue in names or (ANY_QUEUE in names and not job.queue.startswith(PRIVATE)))
        ][:limit]

    def _yield_to_others(self) -> None:
        with self._counting:
            self._lookers += 1
            alone = self._lookers == 1
        if alone:
            threading.Event().wait(_GAP)
        with self._counting:
            self._lookers -= 1


class FinishById(_Wrapper):
    """Completes a job by its id alone, whoever holds it and whether or not it runs, as long as it has not ended."""

    def finish(self, outcomes: Sequence[Outcome]) -> Op[list[bool]]:
        def run() -> list[bool]:
            self._inner.finish([self._of_whoever_holds_it(outcome) for outcome in outcomes]).run()
            ids = tuple(outcome.claim.id for outcome in outcomes)
            stored = {job.id for job in self._inner.jobs(JobFilter(ids=ids)).run().items}
            return [outcome.claim.id in stored for outcome in outcomes]

        return _op(run)

    def _of_whoever_holds_it(self, outcome: Outcome) -> Outcome:
        found = self._inner.jobs(JobFilter(ids=(outcome.claim.id,))).run().items
        if not found:
            return outcome
        claim = msgspec.structs.replace(outcome.claim, fence=found[0].fence)
        return msgspec.structs.replace(outcome, claim=claim)


def _op(run: Callable[[], Any]) -> Op[Any]:
    async def wait() -> Any:
        return run()

    return Op(run, wait)


def _broken(wrapper: Callable[[Store], Any]) -> Callable[[str, ManualClock], Store]:
    def make(address: str, clock: ManualClock) -> Store:
        store: Store = wrapper(MemoryStore(clock=clock))
        return store

    return make


BROKEN: dict[str, Callable[[str, ManualClock], Store]] = {
    "finish-without-fence": _broken(FinishWithoutFence),
    "claim-without-lock": _broken(ClaimWithoutLock),
    "finish-by-id": _broken(FinishById),
}
