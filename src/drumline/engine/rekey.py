"""Rotating keys: what older keys sealed, and what is still in clear, is sealed with the current one, slice by slice.

Workers go on meanwhile: a job's arguments change their form only where they still are what was read, and nothing else
of it changes. What was changed in between is looked at again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence

import msgspec

from drumline.model.job import Job, JobState
from drumline.model.query import JobFilter
from drumline.model.schedule import Schedule
from drumline.model.sealed import Resealing, is_sealed, is_spoiled, split
from drumline.stores.sealed import SealedStore

__all__ = ["Rekeyed", "rekey"]

# Few enough that a store which holds a slice while it is written holds up nobody.
SLICE = 100
# How often to look again at what others changed while it was being sealed anew.
MOST_LOOKS = 5
# Those that may run again. Done and cancelled ones keep their older key until their retention is over.
_STATES = frozenset(JobState) - {JobState.DONE, JobState.CANCELLED}


class Rekeyed(msgspec.Struct):
    """How far a rotation has come."""

    # Jobs that were looked at, and jobs and schedules whose arguments were sealed anew.
    looked: int = 0
    jobs: int = 0
    schedules: int = 0
    # What could not be: its key is not in the ring, it fails its check, or it was changed each time.
    missing: int = 0
    spoiled: int = 0
    changing: int = 0

    @property
    def left(self) -> int:
        return self.missing + self.spoiled + self.changing


async def rekey(store: SealedStore, tell: Callable[[Rekeyed], None] = lambda _: None) -> Rekeyed:
    """Seal with the current key what may run again and schedules fire; `tell` hears how far it has come."""
    so_far = Rekeyed()
    statuses = await store.inner.schedules()
    changes = _resealings(so_far, (_reseal_schedule(store, status.schedule) for status in statuses))
    so_far.schedules = sum(await store.inner.reseal(changes))
    async for jobs in _pages(store):
        await _rekey_jobs(store, jobs, so_far)
        tell(so_far)
    return so_far


async def _pages(store: SealedStore) -> AsyncIterator[Sequence[Job]]:
    after: str | None = None
    while True:
        page = await store.inner.jobs(JobFilter(states=_STATES), after=after, limit=SLICE)
        yield page.items
        after = page.next
        if after is None:
            return


async def _rekey_jobs(store: SealedStore, jobs: Sequence[Job], so_far: Rekeyed) -> None:
    so_far.looked += len(jobs)
    for _ in range(MOST_LOOKS):
        changes = _resealings(so_far, (_reseal_job(store, job) for job in jobs))
        answers = await store.inner.reseal(changes) if changes else []
        so_far.jobs += sum(answers)
        changed = tuple(str(one.job) for one, is_done in zip(changes, answers, strict=True) if not is_done)
        if not changed:
            return
        jobs = (await store.inner.jobs(JobFilter(ids=changed))).items
    so_far.changing += len(jobs)


def _resealings(so_far: Rekeyed, asked: Iterable[Resealing | None]) -> list[Resealing]:
    """What can be sealed anew; the rest is counted."""
    changes = []
    for one in asked:
        if one is None:
            continue
        if is_spoiled(one.after):
            so_far.spoiled += 1
        elif one.after == one.before:
            so_far.missing += 1
        else:
            changes.append(one)
    return changes


def _reseal_job(store: SealedStore, job: Job) -> Resealing | None:
    if _is_current(store, job.args):
        return None
    return Resealing(job=job.id, before=job.args, after=store.reseal_args(job))


def _reseal_schedule(store: SealedStore, schedule: Schedule) -> Resealing | None:
    if _is_current(store, schedule.args):
        return None
    after = store.seal_schedule(store.open_schedule(schedule)).args
    return Resealing(schedule=schedule.name, before=schedule.args, after=after)


def _is_current(store: SealedStore, args: bytes) -> bool:
    return args == b"{}" or (is_sealed(args) and split(args)[0] == store.ring.current)
