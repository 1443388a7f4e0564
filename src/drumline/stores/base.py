"""The store protocol: the one seam between Drumline and where its state lives.

Every operation is one atomic step, takes batches, reads no policy, and is safe to repeat after a lost reply: ids,
claim tokens and command ids are made by the caller. There are no optional methods and no capability flags: a store
passes the conformance suite or is not a store. Each sentence of a docstring here has a test that names it.

An operation is returned as an `Op` and runs when it is awaited, or, for callers without an event loop, by `run()`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from drumline.model.act import Act
from drumline.model.claim import Claim, Claimed, ClaimRef, Note, Share
from drumline.model.job import Enqueued, Job, LogLine, NewJob
from drumline.model.outcome import Outcome
from drumline.model.query import Answer, AuditRow, By, Command, Count, JobFilter, Keep, Page, PauseKind, SeriesPoint
from drumline.model.replica import Beat, Replica, ReplicaInfo
from drumline.model.schedule import Fired, Firing, Schedule, ScheduleStatus, Tick
from drumline.model.schema import Pending
from drumline.model.sealed import Resealing

__all__ = [
    "MOST_JOBS",
    "SHORTEST_KEEP_MILLIS",
    "Hear",
    "Listener",
    "Op",
    "Store",
    "Topic",
    "cannot_stand_by",
    "topic",
]

T = TypeVar("T")
U = TypeVar("U")

# The most jobs that one enqueue takes, all or none.
MOST_JOBS = 10_000
# An ended job is kept so long whatever its retention says, so that a repeated enqueue does not revive it.
SHORTEST_KEEP_MILLIS = 60_000
# Of a job's closed attempts, at least so many of the newest are kept.
KEPT_ATTEMPTS = 100
# Of a job's log lines, the first so many are kept, and one more that says that it was cut.
KEPT_LINES = 1_000
# All that is kept of them: those lines, and that one.
ALL_LINES = KEPT_LINES + 1

Topic = str
Hear = Callable[[Topic], None]


class Op(Generic[T]):
    """One operation, not yet run: await it, or call `run()` to block this thread. Each run is a call of its own."""

    __slots__ = ("_asynchronous", "_blocking")

    def __init__(self, blocking: Callable[[], T], asynchronous: Callable[[], Awaitable[T]]) -> None:
        self._blocking = blocking
        self._asynchronous = asynchronous

    def run(self) -> T:
        return self._blocking()

    def __await__(self) -> Generator[Any, None, T]:
        return self._asynchronous().__await__()

    def then(self, change: Callable[[T], U]) -> Op[U]:
        """The same operation, with another answer."""

        async def asynchronous() -> U:
            return change(await self)

        return Op(lambda: change(self.run()), asynchronous)


def cannot_stand_by() -> Op[Claimed | None]:
    """The answer of a store that makes no claim later than it is asked to."""

    async def none() -> None:
        return None

    return Op(lambda: None, none)


class topic:  # noqa: N801 - a namespace of functions, read as topic.queue("mail")
    """The things a hint can be about."""

    # A schedule or a pause was changed.
    CHANGES: Topic = "changes"

    @staticmethod
    def queue(name: str) -> Topic:
        """There may be work in the queue."""
        return f"queue {name}"

    @staticmethod
    def ended(job_id: str) -> Topic:
        """The job may have ended."""
        return f"ended {job_id}"

    @staticmethod
    def cancel(replica: str) -> Topic:
        """Somebody asks to stop a job that the replica holds."""
        return f"cancel {replica}"


class Listener(Protocol):
    """An open ear for hints."""

    # When that ends every watched topic is told, so that those who sleep take to looking.
    @property
    def is_hearing(self) -> bool:
        """Whether hints arrive at present."""

    def watch(self, topics: Iterable[Topic]) -> None:
        """Begin to hear of these topics."""

    def unwatch(self, topics: Iterable[Topic]) -> None:
        """Hear no more of these topics."""


class Store(Protocol):
    """The durable state of one fleet, with one clock."""

    # Which kind: memory, sqlite, postgres or redis.
    kind: str

    # So many jobs in one call suit it: with fewer each takes longer, and with more others wait too long for their turn.
    batch: int

    # Whether no job comes without a word to those who stand by: meanwhile it is looked at less often.
    tells_of_all: bool

    # Life.

    def migrate(self) -> Op[None]:
        """Bring the schema to this version, under a lock: of many processes at once, one migrates.

        A schema that is newer than this code, and does not say that it serves it, is refused with SchemaMismatch, and
        nothing is changed.
        """

    def pending(self) -> Op[list[Pending]]:
        """The migrations that the store has not seen, in their order. Nothing is changed."""

    def inspect(self) -> Op[dict[str, str]]:
        """What the store says of itself that bears on durability, by names of its own kind.

        It need not be migrated, and nothing is changed.
        """

    def now(self) -> Op[datetime]:
        """The fleet's clock, cut to whole milliseconds."""

    def close(self) -> Op[None]:
        """Give back connections and threads. A closed store opens again when it is used."""

    # Produce.

    def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, act: Act | None = None
    ) -> Op[list[Enqueued]]:
        """Make the jobs, all or none, up to 10,000, and answer in their order.

        A job whose id already stands answers with it, `created=False`, also when that job has ended: a repeat never
        revives. A job whose unique key is held by another answers with the holder; under `replace` a *waiting* holder
        takes over its arguments, start, options, tags and meta and keeps its own id; under `raise` nothing of the
        batch is made and KeyTaken is raised. A key counts within its task. Two jobs of one batch with one key: the
        first holds it. A start that is past, or none, makes the job ready; a later one delayed, by the store's clock.

        With `tx`, the caller's own connection to this very store, the jobs become real when the caller commits, and
        leave nothing when it rolls back. A connection to anything else is refused with StoreUnusable.

        With an act, which is somebody's who asked for these jobs, its audit row is written in the same step, once.
        """

    # Consume.

    def claim(self, replica: str, queues: Sequence[Share], limit: int, tasks: Sequence[str], token: str) -> Op[Claimed]:
        """Take up to `limit` due jobs, for this replica only.

        Queues are emptied in the given order, each giving at most its share; within a queue: higher priority first,
        then earlier due time, then lower id. The share of ANY_QUEUE takes from every queue but private ones, as if
        they were one, and not from those that it leaves out. A queue may have several shares.
        No job is in two live claims. Due delayed jobs are promoted first. Paused queues give nothing. Only jobs of the
        named tasks are taken, and others in front of them cost nothing. Each claim starts an attempt, holds for the
        job's own lease, and its fence is greater than every one before: the greater of the last fence + 1 and the
        store's clock in microseconds. It tells the `releases` of the last outcome.

        The same token gives the same claims again, as far as they are still held; a token is good for a minute.
        With a limit of 0 nothing is taken, and one that stands by with this token is answered and takes nothing more.
        The answer tells when the next delayed job of any queue is due.
        """

    def stand_by(
        self, replica: str, queues: Sequence[Share], tasks: Sequence[str], token: str, *, seconds: float
    ) -> Op[Claimed | None]:
        """Stand by until there is work, for so many seconds at most, and take one job then; None if nobody can wait.

        It is a claim with this token, made in the moment in which a job comes; what was due before may be left to
        `claim`. A replica whose beat is overdue is given nothing: it may be frozen. A caller that is cancelled takes
        nothing from then on.
        """

    def report(self, notes: Sequence[Note]) -> Op[list[bool]]:
        """Keep progress, user error and log lines of claims that are still held; the rest answer False.

        A refused note leaves nothing. A repeated line, by claim and number, is kept once. Of a job's lines the first
        1,000 are kept, then one that says that there were more.
        """

    def finish(self, outcomes: Sequence[Outcome]) -> Op[list[bool]]:
        """Apply each outcome whose claim is still held (id *and* fence match a running job), and say which were.

        The batch commits as a whole; stale outcomes answer False and change nothing. A repeat after a lost reply
        answers True and changes nothing: the attempt, made by the finisher and naming it, tells it from a rival under
        the same fence. Done, dead and cancelled end the job, and keep it for its retention and at least a minute.
        Retry makes it waiting until `start`, by the store's clock; release too, and gives the attempt back; without a
        start the job is ready at once, a released one with its old due time. Each closed attempt is added to the
        job's history, of which at least the newest 100 are kept. A claim whose lease has passed, but that nobody took,
        may still be finished. A job that somebody asked to cancel does not run again: retry and release end it as
        cancelled.

        In the same step: the unique key of an ended job is free again (unless its window is a time), totals and the
        minute's series are added to, the tick's ledger row learns outcome and run time, and a job that waited for
        this one becomes ready.
        """

    def beat(self, info: ReplicaInfo, held: Sequence[ClaimRef]) -> Op[Beat]:
        """Register the replica, and prolong each claim it still holds to now + the job's lease.

        Answers which are lost, which shall be cancelled, which running jobs of this replica it did not name, the
        fleet's epoch, when the earliest lease ends, and the version of schedules and pauses. An expired claim that
        nobody took is prolonged too. The epoch grows when a role that fires registers while no other such replica is
        alive: one that is gone, or silent for three of its beats, is not alive. With state `gone` the replica leaves.
        """

    def expired(self, limit: int) -> Op[list[Claim]]:
        """Claims whose lease has passed, the longest past first. Changes nothing: the rescuer is another finisher."""

    # Schedule.

    def declare(self, schedules: Sequence[Schedule], *, by: By, act: Act | None = None) -> Op[list[bool]]:
        """Hold these schedules, and say which are new or changed.

        A new or changed rule, and one whose orphaning was recorded, starts from now: `last_tick` is set to the store's
        clock, and a ledger row tells of the change. The latest declaration wins. `paused` counts at the first
        declaration only. A schedule declared in code does not give way to one registered at run time: it answers False.
        Every change gives the schedule a version that it never had before. With an act, its audit row is written in the
        same step, once.
        """

    def withdraw(self, names: Sequence[str], *, by: By, act: Act | None = None) -> Op[list[bool]]:
        """Forget schedules that were registered at run time, and say which.

        A ledger row tells of it, and earlier ones stay. With an act, its audit row is written in the same step, once.
        """

    def schedules(self, names: Sequence[str] = ()) -> Op[list[ScheduleStatus]]:
        """The schedules, by name; all of them if none is named.

        One of the code that no live replica declares is orphaned.
        """

    def fire(self, firings: Sequence[Firing], *, by: str, act: Act | None = None) -> Op[list[Fired]]:
        """Record each tick at most once, with its job or with the reason there is none: one step.

        A schedule that is unknown or paused refuses. A tick that lies ahead of the store's clock is early, one that was
        worked out from an older version of the schedule is stale: both leave nothing. A tick that stands in the
        ledger, or is as old as what was purged from it, is a duplicate; so is one of the fleet that was worked out from
        a version and begins at or before `last_tick`. Overlap looks at the unfinished jobs of the schedule's ticks:
        `skip` records the tick without a job; `queue_one` lets one job wait until the earlier one has ended, and skips
        further ones; `cancel_running` asks the earlier one to stop (a waiting one ends at once) and waits in the same
        way. `last_tick` only moves forward, and a duplicate moves it too. A trigger works while paused, obeys overlap
        and leaves no row. A backfill works while paused too, takes the place of a row without a job, does not move
        `last_tick`, and where overlap is not allowed its job waits for the one before.

        With an act, its audit row is written in the same step, once.
        """

    # Operate.

    def pause(self, kind: PauseKind, names: Sequence[str], *, paused: bool, by: By, token: str) -> Op[list[bool]]:
        """Pause or resume queues or schedules, and say which changed.

        It is stored, so it holds for the fleet and across restarts. Resuming a schedule starts it from now, and a
        ledger row tells from when to when it was paused. So does one that is given another rule, is adopted or
        withdrawn meanwhile: a row for each rule. The audit row is written in the same step; its id is the
        token, and a repeat with it does nothing again. An unknown schedule answers False.
        """

    def paused(self, kind: PauseKind) -> Op[dict[str, By]]:
        """What is paused, by whom and why."""

    def command(self, command: Command) -> Op[list[Answer]]:
        """Act on jobs, and write the audit row in the same step; a repeat with the command's id answers the same again.

        Cancel: a waiting job ends at once, a running one is asked to stop. Retry: an ended job becomes ready again
        under its own id, history kept, attempts from 1, the fence going on; refused while another job holds its key.
        Discard: an ended job is forgotten. Reschedule: a waiting job is moved to another due time.
        """

    def reseal(self, resealings: Sequence[Resealing]) -> Op[list[bool]]:
        """Write arguments in another form where they still stand as they were read, and say where.

        Nothing else of a job changes, whatever its state, and a live claim stays good. A schedule gets a new version,
        and goes on as it was. A repeat after a lost reply answers True.
        """

    # Read.

    def jobs(self, where: JobFilter, *, after: str | None = None, limit: int = 50) -> Op[Page[Job]]:
        """Jobs, newest first by the stored time of creation, then id; `next` of a page is `after` of the following.

        By ids: exactly those that exist, in the order asked for, on one page. No ids, no jobs.
        """

    def counts(self) -> Op[list[Count]]:
        """Jobs by queue, task and state, and totals; without looking at the backlog.

        And since when the oldest ready job of each queue and task is due.
        """

    def series(self, start: datetime, end: datetime) -> Op[list[SeriesPoint]]:
        """The minutes from `start` (included) to `end` (not), by minute, queue and task."""

    def ticks(self, schedule: str | None = None, *, after: str | None = None, limit: int = 50) -> Op[Page[Tick]]:
        """The ledger, newest recorded first."""

    def workers(self) -> Op[list[Replica]]:
        """The replicas that are known, with what each runs now. One silent for three of its beats is lost."""

    def logs(self, job_id: str, *, after: int = 0, limit: int = ALL_LINES) -> Op[list[LogLine]]:
        """A job's log lines in the order they came, behind the first `after`."""

    def audit(self, *, after: str | None = None, limit: int = 50) -> Op[Page[AuditRow]]:
        """Who did what, newest first."""

    def purge(self, keep: Keep, limit: int = 1000) -> Op[int]:
        """Forget one slice of what has outlived its retention, and say how many; 0 means there is no more.

        Never forgets what protects a tick from firing twice: a schedule remembers up to where its ledger was purged.
        What private queues of which nothing is left have come to is kept together, in the queue `@`.
        """

    # Hint, never truth.

    def wakeups(self, hear: Hear) -> AbstractAsyncContextManager[Listener]:
        """Call `hear`, on this event loop, when a watched topic may have news. A lost hint costs at most a poll.

        However many listen, they share one connection.
        """
