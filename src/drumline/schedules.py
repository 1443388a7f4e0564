"""`drum.schedules`: a Mapping of the fleet's schedules as this process last saw them, and the verbs on them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from difflib import get_close_matches
from itertools import islice
from typing import Any

import msgspec

from drumline.client import Client, JobHandle
from drumline.clock import fresh_id
from drumline.engine.board import Board
from drumline.errors import BadOption, DrumlineError, UnknownSchedule
from drumline.model.instant import from_millis, parse_instant
from drumline.model.job import Enqueued, JobState
from drumline.model.query import PauseKind
from drumline.model.schedule import Coordination, FiredAnswer, Schedule, ScheduleStatus, Tick
from drumline.policy.call import CallOptions
from drumline.policy.firing import backfill_firing, trigger_firing
from drumline.policy.rule import check_rule, describe, has_idle_zone, shown_key, times
from drumline.policy.schedule import define_schedule
from drumline.policy.task import TaskDefinition

__all__ = ["ScheduleView", "Schedules", "declared_in_code", "unknown_schedule", "warn_of_idle_zone"]

logger = logging.getLogger("drumline")

# Instants in one call of the store, and in one backfill.
BATCH = 500
MOST_BACKFILLED = 100_000


class ScheduleView:
    """One schedule, as this process last saw it; `next_run_at` is worked out when it is read."""

    def __init__(self, board: Board, schedule: Schedule, status: ScheduleStatus | None) -> None:
        self._board = board
        self._status = status
        # What to make at each instant, and when those are.
        self.definition = schedule

    def __repr__(self) -> str:
        return f"<Schedule {self.name}: {self.schedule}>"

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def task(self) -> str:
        return self.definition.task

    @property
    def schedule(self) -> str:
        """The rule in words: `every 10s`, `cron 0 9 * * * America/New_York`."""
        return describe(self.definition.rule)

    @property
    def coordination(self) -> Coordination:
        return self.definition.coordination

    @property
    def is_stored(self) -> bool:
        """Whether the store was seen to hold it; else the code alone declares it."""
        return self._status is not None

    @property
    def paused(self) -> bool:
        """Whether it is paused; before the store was seen, whether it will begin so."""
        return self.definition.paused if self._status is None else self._status.paused_at is not None

    @property
    def paused_by(self) -> str | None:
        return None if self._status is None else self._status.paused_by

    @property
    def paused_why(self) -> str | None:
        return None if self._status is None else self._status.paused_why

    @property
    def orphaned(self) -> bool:
        """Declared in code, but by no live replica: it is not fired."""
        is_declared = self.name in self._board.declared
        return self._status is not None and self._status.orphaned and not is_declared

    @property
    def next_run_at(self) -> datetime | None:
        """The first instant ahead by the store's clock; None while paused or orphaned, or when there is no more.

        None too for a rule that this machine cannot read, such as one of a time zone it lacks.
        """
        if self.paused or self.orphaned:
            return None
        now = self._board.now
        try:
            return times(self.definition.rule).after(now if self._status is None else max(now, self._status.last_tick))
        except BadOption:
            return None

    @property
    def last_tick(self) -> str | None:
        """The key of the newest tick that was fired, such as `cleanup:28333333`; None if none was."""
        mark = None if self._status is None else self._status.last_mark
        if mark is None or not mark.isdigit():
            return None if mark is None else f"{self.name}:{mark}"
        return shown_key(self.name, self.definition.rule, from_millis(int(mark)))

    @property
    def last_fired_at(self) -> datetime | None:
        return None if self._status is None else self._status.last_fired_at

    @property
    def current_leader(self) -> str | None:
        """Who recorded the newest tick."""
        leader = None if self._status is None else self._status.leader
        return None if leader is None else leader.rpartition(":")[0]

    @property
    def status(self) -> str:
        """`running` while a job of it runs, else `idle`."""
        return "running" if self._status is not None and self._status.running else "idle"

    @property
    def total_runs(self) -> int:
        """Attempts that have ended."""
        return 0 if self._status is None else self._status.total_runs

    @property
    def total_failures(self) -> int:
        """Attempts that failed, timed out or were lost."""
        return 0 if self._status is None else self._status.total_failures


class Schedules(Mapping[str, ScheduleView]):
    """The schedules of the code, and those that the store was last seen to hold; no older than a second while running.

    Reading it does no I/O; the verbs do.
    """

    def __init__(
        self,
        client: Client,
        board: Board,
        *,
        find_task: Callable[[Any], tuple[TaskDefinition, CallOptions]],
        adapt: Callable[[Schedule], Schedule],
    ) -> None:
        self._client = client
        self._board = board
        self._find_task = find_task
        self._adapt = adapt

    def __getitem__(self, name: str) -> ScheduleView:
        self._board.want()
        schedule = self._board.find(name)
        if schedule is None:
            raise KeyError(name)
        return ScheduleView(self._board, schedule, self._board.statuses.get(name))

    def __iter__(self) -> Iterator[str]:
        self._board.want()
        return iter(sorted(self._board.statuses.keys() | self._board.declared.keys()))

    def __len__(self) -> int:
        self._board.want()
        return len(self._board.statuses.keys() | self._board.declared.keys())

    def through(self, client: Client, board: Board) -> Schedules:
        """The same by another door, with a board of its own."""
        return Schedules(client, board, find_task=self._find_task, adapt=self._adapt)

    async def refresh(self) -> Schedules:
        """Read all schedules again."""
        store = await self._client.store()
        self._board.learn_time(await store.now(), self._client.clock.monotonic())
        self._board.see_all(await store.schedules())
        return self

    async def register(self, task: Any, /, **options: Any) -> ScheduleView:
        """Add a schedule of a task while the program runs, or replace the one that was registered by that name.

        `task`: a task, its registered name, or a Schedule value. It lives until it is unregistered. What `using` has
        chosen for the task counts for the schedule, unless its own options say otherwise.
        """
        if isinstance(task, Schedule):
            schedule = self._take_value(task, options)
        else:
            schedule = define_schedule(*self._find_task(task), in_code=False, **options)
        schedule = self._adapt(schedule)
        store = await self._client.store()
        if schedule.name not in self._board.declared:
            await store.declare([schedule], by=self._client.by(), act=self._client.act("register"))
            if not (await self._read(schedule.name)).schedule.in_code:
                warn_of_idle_zone(schedule)
                return self[schedule.name]
        raise BadOption("name", "free, but the code declares a schedule of that name", schedule.name, "register")

    async def unregister(self, name: str, reason: str = "") -> None:
        """Remove a schedule that was registered at run time; its ledger stays. UnknownSchedule if there is none."""
        store = await self._client.store()
        act = self._client.act("unregister", reason)
        (is_gone,) = await store.withdraw([name], by=act.by, act=act)
        if not is_gone:
            await self._read(name)
            raise declared_in_code(name)
        self._board.see([name], ())

    async def pause(self, name: str, reason: str = "") -> bool:
        """Let the schedule fire no more, in the whole fleet; say whether it was not paused already."""
        return await self._set_paused(name, reason, paused=True)

    async def resume(self, name: str, reason: str = "") -> bool:
        """Let the schedule fire again, from now on; say whether it was paused."""
        return await self._set_paused(name, reason, paused=False)

    async def trigger(self, name: str, reason: str = "") -> JobHandle[Any]:
        """Run it now, with its own arguments and options, also while paused. DrumlineError if overlap forbids it."""
        store = await self._client.store()
        status = await self._read(name)
        job_id = fresh_id()
        firing = trigger_firing(status.schedule, await store.now(), job_id)
        act = self._client.act("trigger", reason)
        (fired,) = await store.fire([firing], by=act.by.who, act=act)
        if fired.answer is FiredAnswer.OVERLAP:
            overlap = status.schedule.overlap.value
            raise DrumlineError(f"schedule {name}: not run, for a job of it is unfinished and overlap is {overlap}")
        return self._client.answer(Enqueued(job_id, JobState.READY))

    async def backfill(
        self, name: str, start: datetime | str, end: datetime | str, reason: str = ""
    ) -> list[JobHandle[Any]]:
        """Fire the instants from `start` to `end`, both included, that were not; the jobs that were made.

        Instants ahead of the store's clock are left out.
        """
        begin, last = parse_instant(start, "start"), parse_instant(end, "end")
        if last < begin:
            raise BadOption("end", f"not before start, {begin.isoformat()}", last, f"schedule {name}")
        store = await self._client.store()
        status = await self._read(name)
        if status.schedule.coordination is Coordination.PER_REPLICA:
            raise DrumlineError(f"schedule {name}: its ticks belong to single replicas, and cannot be backfilled")
        last = min(last, await store.now())
        yields = times(status.schedule.rule)
        before = begin - timedelta(milliseconds=1)
        if (found := yields.count(before, last)) > MOST_BACKFILLED:
            raise BadOption("end", f"so near that there are at most {MOST_BACKFILLED:,} instants", f"{found:,}")
        return await self._backfill(status.schedule, yields.between(before, last), found, reason)

    async def _backfill(
        self, schedule: Schedule, instants: Iterator[datetime], number: int, why: str
    ) -> list[JobHandle[Any]]:
        store = await self._client.store()
        whole: str | None = None
        made: list[str] = []
        decided = 0
        while part := list(islice(instants, BATCH)):
            act = self._client.act("backfill", why, part_of=whole)
            whole = whole or act.id
            firings = [backfill_firing(schedule, instant) for instant in part]
            answers = await store.fire(firings, by=act.by.who, act=act)
            made += [fired.job_id for fired in answers if fired.answer is FiredAnswer.FIRED and fired.job_id]
            decided += len(part)
            self._client.on_progress(decided, number)
        return [self._client.answer(Enqueued(job_id, JobState.READY)) for job_id in made]

    async def ticks(self, name: str | None = None, *, limit: int | None = None) -> AsyncIterator[Tick]:
        """The ledger, newest recorded first: of one schedule, or of all."""
        store = await self._client.store()
        left = float("inf") if limit is None else limit
        cursor: str | None = None
        while left > 0:
            page = await store.ticks(name, after=cursor, limit=int(min(left, BATCH)))
            for tick in page.items:
                yield tick
            left -= len(page.items)
            cursor = page.next
            if cursor is None:
                return

    def _take_value(self, schedule: Schedule, options: dict[str, Any]) -> Schedule:
        if options:
            raise BadOption("options", "left out with a Schedule value", sorted(options), f"schedule {schedule.name}")
        return msgspec.structs.replace(
            schedule, rule=check_rule(f"schedule {schedule.name}", schedule.rule), in_code=False
        )

    async def _set_paused(self, name: str, reason: str, *, paused: bool) -> bool:
        store = await self._client.store()
        by = self._client.by(reason)
        (is_changed,) = await store.pause(PauseKind.SCHEDULE, [name], paused=paused, by=by, token=fresh_id())
        await self._read(name)
        return is_changed

    async def _read(self, name: str) -> ScheduleStatus:
        store = await self._client.store()
        statuses = await store.schedules([name])
        self._board.see([name], statuses)
        if not statuses and name in self._board.declared:
            raise UnknownSchedule(f"schedule {name!r} is declared in code, but no replica has run it yet")
        if not statuses:
            raise unknown_schedule(name, [status.schedule.name for status in await store.schedules()])
        return statuses[0]


def declared_in_code(name: str) -> DrumlineError:
    """The complaint about a schedule that cannot be unregistered."""
    return DrumlineError(f"schedule {name} is declared in code: remove it there, or pause it")


def warn_of_idle_zone(schedule: Schedule) -> None:
    """Say so where a zone was given to a rule that knows none."""
    if has_idle_zone(schedule.rule):
        logger.warning("schedule %s: timezone has no effect on every=, which counts real time", schedule.name)


def unknown_schedule(name: str, known: Iterable[str]) -> UnknownSchedule:
    """The complaint about a name that is none of the known ones, with the nearest of them."""
    near = get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return UnknownSchedule(f"schedule {name!r} is not known{hint}")
