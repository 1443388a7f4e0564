"""A store under test with the time it lives in, and short words for what nearly every test does."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from drumline.clock import ManualClock, fresh_id
from drumline.model.claim import ANY_QUEUE, Claim, Claimed, ClaimRef, Note, Share
from drumline.model.job import Enqueued, Job, JobState, LogLine, NewJob
from drumline.model.outcome import Outcome
from drumline.model.query import (
    Answer,
    AuditRow,
    By,
    Command,
    CommandKind,
    Count,
    JobFilter,
    Keep,
    Page,
    PauseKind,
    SeriesPoint,
)
from drumline.model.replica import Beat, Replica
from drumline.model.schedule import Fired, Firing, Schedule, ScheduleStatus, Tick
from drumline.stores.base import Op, Store
from tests.support.build import BY, REPLICA, TASK, new_job, replica_info
from tests.support.makers import Maker

T = TypeVar("T")

PLENTY = 100_000


def follow_pages(read: Callable[[str | None], Op[Page[T]]]) -> list[T]:
    """Everything, page by page. A page may be empty while there is more, but not for ever."""
    items: list[T] = []
    after: str | None = None
    for _ in range(PLENTY):
        page = read(after).run()
        items += page.items
        if page.next is None:
            return items
        after = page.next
    raise AssertionError("the pages do not end")


class Rig:
    """A fresh, empty store, and its time, which stands still until the test moves it."""

    def __init__(self, maker: Maker, address: str, clock: ManualClock) -> None:
        self.maker = maker
        self.address = address
        self.clock = clock
        self.store = maker.open(address, clock)
        self._others: list[Store] = []

    # Time.

    def now(self) -> datetime:
        return self.clock.now()

    def later(self, seconds: float) -> datetime:
        return self.now() + timedelta(seconds=seconds)

    def advance(self, seconds: float) -> None:
        """Move the store's time forward."""
        self.clock.advance(seconds)
        self.follow()

    def set_back(self, seconds: float) -> None:
        """Move the store's time back, as a corrected host clock does."""
        self.clock.set(self.now() - timedelta(seconds=seconds))
        self.follow()

    def follow(self) -> None:
        """Tell the present to a store that cannot take a clock."""
        if self.maker.follow is not None:
            self.maker.follow(self.address, self.now())

    # Other handles.

    def another(self) -> Store:
        """The same state through a handle of its own, as another process would have; where there can be one."""
        if not self.maker.is_shared:
            return self.store
        other = self.maker.open(self.address, self.clock)
        self._others.append(other)
        return other

    def close(self) -> None:
        for store in [*self._others, self.store]:
            store.close().run()

    # Produce and consume.

    def enqueue(self, *jobs: NewJob) -> list[Enqueued]:
        return self.store.enqueue(jobs).run()

    def add(self, task: str = TASK, **given: Any) -> str:
        """Enqueue one new job; its id."""
        (answer,) = self.enqueue(new_job(task, **given))
        assert answer.created
        return answer.id

    def claim(
        self,
        limit: int = 1,
        *,
        replica: str = REPLICA,
        queues: Sequence[Share] | None = None,
        tasks: Sequence[str] = (TASK,),
        token: str | None = None,
    ) -> Claimed:
        shares = [Share(ANY_QUEUE, limit)] if queues is None else queues
        return self.store.claim(replica, shares, limit, tasks, token or fresh_id()).run()

    def take(self, limit: int = 1, **given: Any) -> list[Claim]:
        return self.claim(limit, **given).claims

    def take_one(self, **given: Any) -> Claim:
        (claim,) = self.take(1, **given)
        return claim

    def start(self, task: str = TASK, **given: Any) -> Claim:
        """Enqueue a job, and claim it."""
        job_id = self.add(task, **given)
        claim = self.take_one(tasks=[task])
        assert claim.id == job_id
        return claim

    def end(self, ended: Callable[[Claim], Outcome], task: str = TASK, **given: Any) -> str:
        """Enqueue a job, claim it and finish it so; its id."""
        claim = self.start(task, **given)
        assert self.finish(ended(claim)) == [True]
        return claim.id

    def report(self, *notes: Note) -> list[bool]:
        return self.store.report(notes).run()

    def finish(self, *outcomes: Outcome) -> list[bool]:
        return self.store.finish(outcomes).run()

    def beat(self, replica: str = REPLICA, *held: ClaimRef, **given: Any) -> Beat:
        return self.store.beat(replica_info(replica, **given), held).run()

    def expired(self, limit: int = PLENTY) -> list[Claim]:
        return self.store.expired(limit).run()

    # Schedule.

    def declare(self, *schedules: Schedule, by: By = BY) -> list[bool]:
        return self.store.declare(schedules, by=by).run()

    def fire(self, *firings: Firing, by: str = REPLICA) -> list[Fired]:
        return self.store.fire(firings, by=by).run()

    def schedule(self, name: str = "tock") -> ScheduleStatus:
        (status,) = self.store.schedules([name]).run()
        return status

    def ticks(self, schedule: str | None = None) -> list[Tick]:
        return follow_pages(lambda after: self.store.ticks(schedule, after=after))

    # Operate.

    def pause(
        self,
        kind: PauseKind,
        *names: str,
        paused: bool = True,
        by: By = BY,
        token: str | None = None,
    ) -> list[bool]:
        return self.store.pause(kind, names, paused=paused, by=by, token=token or fresh_id()).run()

    def resume(self, kind: PauseKind, *names: str, by: By = BY) -> list[bool]:
        return self.pause(kind, *names, paused=False, by=by)

    def command(self, kind: CommandKind, *ids: str, command_id: str | None = None, **given: Any) -> list[Answer]:
        command = Command(**{"id": command_id or fresh_id(), "kind": kind, "ids": ids, "by": BY, **given})
        return self.store.command(command).run()

    # Read.

    def find(self, job_id: str) -> Job | None:
        page = self.store.jobs(JobFilter(ids=(job_id,))).run()
        return page.items[0] if page.items else None

    def job(self, job_id: str) -> Job:
        job = self.find(job_id)
        assert job is not None, f"job {job_id} is gone"
        return job

    def state(self, job_id: str) -> JobState:
        return self.job(job_id).state

    def jobs(self, *, limit: int = 50, **where: Any) -> list[Job]:
        return follow_pages(lambda after: self.store.jobs(JobFilter(**where), after=after, limit=limit))

    def ids(self, **where: Any) -> list[str]:
        return [job.id for job in self.jobs(**where)]

    def counts(self) -> dict[tuple[str, str], Count]:
        return {(count.queue, count.task): count for count in self.store.counts().run()}

    def count(self, queue: str = "default", task: str = TASK) -> Count:
        """The counts of one task in one queue; all zero where none are told."""
        return self.counts().get((queue, task), Count(queue=queue, task=task))

    def series(self, start: datetime | None = None, end: datetime | None = None) -> list[SeriesPoint]:
        """The series of the hours around now, if no time is named."""
        return self.store.series(start or self.later(-7200), end or self.later(7200)).run()

    def audit(self) -> list[AuditRow]:
        return follow_pages(lambda after: self.store.audit(after=after))

    def logs(self, job_id: str, after: int = 0, limit: int = PLENTY) -> list[LogLine]:
        return self.store.logs(job_id, after=after, limit=limit).run()

    def workers(self) -> dict[str, Replica]:
        return {replica.info.id: replica for replica in self.store.workers().run()}

    def purge(self, keep: Keep | None = None, limit: int = 1000) -> int:
        """Forget all that may be forgotten; how many in all."""
        sizes = (self.store.purge(keep or Keep(), limit).run() for _ in range(PLENTY))
        return sum(itertools.takewhile(bool, sizes))


@contextmanager
def new_rig(maker: Maker, folder: Path) -> Iterator[Rig]:
    """A rig in a folder of its own, migrated; everything is given back at the end."""
    rig = Rig(maker, maker.address(folder), ManualClock())
    try:
        rig.store.migrate().run()
        rig.follow()
        yield rig
    finally:
        rig.close()
