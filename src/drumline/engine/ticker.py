"""The ticker: the instants of schedules into firings, each when its time has come by the store's clock.

    declare ─▶ read ─▶ plan (the next instant of each) ─▶ sleep ─▶ due (policy) ─▶ fire (store) ─▶ plan …

All replicas plan alike, and the ledger lets one of them through: nothing here makes a tick unique. Who recorded the
newest tick of a schedule tries the next one at once; the others look a little later, and fire what is still due then.
So one replica does the work, and when it is lost a tick comes half a second late. Where thousands are due at once each
begins elsewhere among them, and who meets what others have just fired stands by for as long.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from zlib import crc32

import msgspec

from drumline.clock import Clock
from drumline.engine.agenda import Agenda, Line
from drumline.engine.board import Board
from drumline.errors import BadOption
from drumline.events import Events, TickFired, TickSkipped, TicksMissed
from drumline.failpoint import failpoint
from drumline.model.query import By
from drumline.model.replica import Beat, ReplicaInfo, Role
from drumline.model.schedule import Coordination, Decision, Fired, FiredAnswer, Firing, Schedule, ScheduleStatus
from drumline.policy.due import due
from drumline.policy.firing import orphan_firing, start_firing, tick_firings
from drumline.policy.rule import times
from drumline.stores.base import Store

__all__ = ["Ticker"]

logger = logging.getLogger("drumline.engine")

# How long after an instant those look who did not record the last one.
GRACE = timedelta(milliseconds=400)
# Firings in one call of the store.
BATCH = 500
# After a tick its job runs: so often, and for so long, we look how it goes.
LOOK_EVERY = 1.0
LOOK_FOR = 3.0

_DECIDED = (FiredAnswer.FIRED, FiredAnswer.RECORDED, FiredAnswer.OVERLAP, FiredAnswer.DUPLICATE)
# Answers after which the schedule need not be read anew: we decided, or are only too soon.
_SETTLED = (FiredAnswer.FIRED, FiredAnswer.RECORDED, FiredAnswer.OVERLAP, FiredAnswer.EARLY)


class Ticker:
    """Fires what is due, for the fleet if this replica's role is to, and for this replica."""

    def __init__(
        self,
        store: Store,
        board: Board,
        *,
        replica: str,
        role: Role,
        tasks: Collection[str],
        clock: Clock,
        events: Events,
    ) -> None:
        self._store = store
        self._board = board
        self._replica = replica
        self._role = role
        self._tasks = tasks
        self._clock = clock
        self._events = events
        # Whether this replica has ticks of its own, so that its private queue has to be served.
        self.has_own = False
        # The schedules of the code that the fleet knows this replica to declare, and those that the store has from it.
        self._told: frozenset[str] = frozenset()
        self._declared: dict[str, Schedule] = {}
        self._is_declared = False
        self._is_stale = True
        self._version = -1
        self._epoch: int | None = None
        self._started: int | None = None
        self._born: datetime | None = None
        self._agenda = Agenda()
        # Names whose jobs may be running, and until when to look.
        self._watched: dict[str, float] = {}
        self._look_at = 0.0
        self._unreadable: set[tuple[str, int]] = set()

    def hear(self, info: ReplicaInfo, beat: Beat, received: float) -> None:
        """Learn by a beat what time it is, and whether schedules have changed or the fleet has started anew."""
        self._board.learn_time(beat.now, received)
        told = frozenset(info.schedules)
        if told != self._told:
            self._told, self._is_declared = told, False
        if beat.version != self._version:
            self._version, self._is_stale = beat.version, True
        self._epoch = beat.epoch

    def hear_change(self) -> None:
        """Schedules may have changed."""
        self._is_stale = True

    def hear_declared(self) -> None:
        """The code may have declared a schedule anew."""
        self._is_declared = False

    @property
    def has_started(self) -> bool:
        """Whether what runs at the start of the fleet, or of this replica, has been fired."""
        return self._started is not None

    @property
    def next_at(self) -> datetime | None:
        """When there is something to do by the rules; None if nothing is planned."""
        return self._agenda.next_at

    async def step(self) -> float | None:
        """Fire what is due; say how many seconds there are until the next."""
        if self._epoch is None:
            # Not before the first beat: the fleet must know of us, and we of its clock.
            return None
        if not self._is_declared:
            await self._declare_new()
        if self._is_stale:
            await self._read_all()
        await self._fire_start()
        await self._fire_due()
        await self._look_at_runs()
        return self._pause()

    # Reading.

    async def _declare_new(self) -> None:
        # Not before a beat has named them: the rest of the fleet would take them for orphans.
        declared = self._board.declared
        await self._declare([name for name in sorted(self._told) if self._declared.get(name) is not declared[name]])

    async def _declare(self, names: Iterable[str]) -> None:
        self._is_declared = True
        schedules = {name: self._board.declared[name] for name in names}
        try:
            if schedules:
                await self._store.declare([*schedules.values()], by=By(self._replica, "code", ""))
                failpoint("declare.answered")
        except BaseException:
            self._is_declared = False
            raise
        self._declared.update(schedules)
        self._is_stale = True

    async def _read_all(self) -> None:
        # Before the calls, so that a change during them leads to another.
        self._is_stale = False
        try:
            await self._read_anew()
        except BaseException:
            self._is_stale = True
            raise

    async def _read_anew(self) -> None:
        statuses = await self._store.schedules()
        self._born = self._born or self._board.now
        self._board.see_all(statuses)
        self._agenda.keep_only(self._board.statuses.keys())
        await self._take_in(statuses)
        lost = [name for name in sorted(self._told) if self._is_lost(name)]
        if lost:
            await self._declare(lost)

    async def _read(self, names: Collection[str]) -> None:
        statuses = await self._store.schedules(tuple(names))
        self._board.see(names, statuses)
        for name in names:
            if name not in self._board.statuses:
                self._agenda.drop(name)
        await self._take_in(statuses)

    async def _take_in(self, statuses: Iterable[ScheduleStatus]) -> None:
        orphans = []
        for status in statuses:
            if self._is_ours(status):
                self._follow(status)
            else:
                self._agenda.drop(status.schedule.name)
            if self._is_to_be_told_orphaned(status):
                orphans.append(orphan_firing(status))
        # Once true it stays so: jobs of a schedule that is no more may still wait there.
        self.has_own = self.has_own or any(line.is_own for line in self._agenda)
        if orphans:
            await self._store.fire(orphans, by=self._replica)

    def _is_ours(self, status: ScheduleStatus) -> bool:
        """Whether this replica fires it, as things stand."""
        schedule = status.schedule
        is_orphaned = status.orphaned and schedule.name not in self._board.declared
        if status.paused_at is not None or status.orphaned_at is not None or is_orphaned:
            return False
        if schedule.coordination is Coordination.PER_REPLICA:
            return self._role is not Role.SCHEDULER and schedule.task in self._tasks
        return self._role.fires

    def _is_to_be_told_orphaned(self, status: ScheduleStatus) -> bool:
        is_known = status.orphaned_at is not None or status.schedule.name in self._board.declared
        return self._role.fires and status.orphaned and not is_known

    def _is_lost(self, name: str) -> bool:
        """Whether the store does not hold, or holds as orphaned, what this program declares."""
        status = self._board.statuses.get(name)
        return status is None or status.orphaned_at is not None

    def _follow(self, status: ScheduleStatus) -> None:
        line = self._agenda.find(status.schedule.name)
        if status.schedule.coordination is Coordination.PER_REPLICA:
            born = self._born or self._board.now
            done = max(status.begun_at, born if line is None else line.done)
        else:
            done = status.last_tick
        if line is None:
            line = self._agenda.add(Line(status=status, done=done))
        is_planned = line.act_at is not None and line.done == done and line.status.version == status.version
        if is_planned and line.status.leader == status.leader:
            line.status = status
            return
        line.status, line.done = status, done
        self._plan(line)

    # Planning.

    def _plan(self, line: Line) -> None:
        """Put the next instant of the line on the agenda."""
        line.act_at, line.stands_by = None, False
        try:
            line.next = times(line.status.schedule.rule).after(line.done)
        except BadOption as error:
            self._complain(line.status, error)
            return
        if line.next is None:
            return
        self._agenda.enter(line, line.next if self._is_first(line) else line.next + GRACE)

    def _is_first(self, line: Line) -> bool:
        """Whether this replica need not look first: it fired the last tick, or nobody has."""
        is_leader = line.status.leader in (None, self._replica) and not line.stands_by
        return line.is_own or (is_leader and self._is_known(line))

    def _is_known(self, line: Line) -> bool:
        """Whether it cannot be orphaned without our knowing."""
        return not line.status.schedule.in_code or line.name in self._board.declared

    def _complain(self, status: ScheduleStatus, error: BadOption) -> None:
        """Say once of a version that it cannot be worked out here; a replica of newer code or data may fire it."""
        place = (status.schedule.name, status.version)
        if place not in self._unreadable:
            self._unreadable.add(place)
            logger.error("schedule %s cannot be fired by this replica: %s", status.schedule.name, error)

    def _pause(self) -> float | None:
        if self._is_stale:
            return 0
        waits = []
        if self.next_at is not None:
            waits.append((self.next_at - self._board.now).total_seconds())
        if self._watched or self._board.is_wanted:
            waits.append(self._look_at - self._clock.monotonic())
        return max(min(waits), 0) if waits else None

    # Firing.

    async def _fire_start(self) -> None:
        """Try the tick of the fleet's start, and once that of this replica's."""
        if self._epoch == self._started or self._epoch is None:
            return
        epoch, at = self._epoch, _cut(self._board.now)
        wanted = [line for line in self._agenda if line.status.schedule.run_on_startup]
        if self._started is not None:
            wanted = [line for line in wanted if not line.is_own]
        firings = [(line, start_firing(line.status.schedule, epoch, at, self._replica)) for line in wanted]
        if not (await self._fire(firings))[FiredAnswer.EARLY]:
            self._started = epoch

    async def _fire_due(self) -> None:
        lines = self._agenda.take_due(self._board.now)
        left: Sequence[Line] = ()
        try:
            unsure = [line.name for line in lines if not self._is_first(line)]
            if unsure:
                self._watch(unsure)
                await self._read(unsure)
            now = _cut(self._board.now)
            left = await self._fire_lines([line for line in lines if self._is_due(line, now)], now)
        finally:
            # Also after an error: what was not decided is due again.
            for line in lines:
                if self._agenda.holds(line):
                    self._plan(line)
        self._stand_by(left)

    async def _fire_lines(self, lines: Sequence[Line], now: datetime) -> Sequence[Line]:
        """Fire what is due of the lines, and say which are left to another replica that is at it."""
        led = [line for line in lines if line.status.leader == self._replica]
        others = [line for line in lines if line.status.leader != self._replica]
        # Each replica begins elsewhere, so that they share the work and do not meet at once.
        place = crc32(self._replica.encode()) % max(len(others), 1)
        others = [*others[place:], *others[:place]]
        await self._fire_part(led, now)
        for place in range(0, len(others), BATCH):
            answers = await self._fire_part(others[place : place + BATCH], now)
            if 2 * answers[FiredAnswer.DUPLICATE] > answers.total():
                return others[place + BATCH :]
        return ()

    async def _fire_part(self, lines: Iterable[Line], now: datetime) -> Counter[FiredAnswer]:
        return await self._fire(pair for line in lines for pair in self._rule(line, now))

    def _stand_by(self, lines: Iterable[Line]) -> None:
        """Look at these a little later, and fire what is still due then."""
        act_at = self._board.now + GRACE
        for line in lines:
            if self._agenda.holds(line):
                line.stands_by = True
                self._agenda.enter(line, act_at)

    def _is_due(self, line: Line, now: datetime) -> bool:
        return self._agenda.holds(line) and line.next is not None and line.next <= now

    def _rule(self, line: Line, now: datetime) -> Iterator[tuple[Line, Firing]]:
        rulings = due(line.status.schedule, line.done, now).rulings
        return ((line, firing) for firing in tick_firings(line.status, rulings, self._replica))

    async def _fire(self, firings: Iterable[tuple[Line, Firing]]) -> Counter[FiredAnswer]:
        """Have these recorded; how often each answer came."""
        counts: Counter[FiredAnswer] = Counter()
        doubtful: set[str] = set()
        overtaken: set[str] = set()
        for part in _batches(firings):
            batch = [(line, firing) for line, firing in part if line.name not in overtaken]
            failpoint("fire.before")
            answers = await self._store.fire([firing for _, firing in batch], by=self._replica) if batch else []
            failpoint("fire.answered")
            counts.update(fired.answer for fired in answers)
            for (line, firing), fired in zip(batch, answers, strict=True):
                self._take_note(line, firing, fired)
                if fired.answer is FiredAnswer.DUPLICATE and firing.until is not None:
                    # Somebody else has decided the first of many: where to go on from has to be read.
                    overtaken.add(line.name)
                if fired.answer not in _SETTLED:
                    doubtful.add(line.name)
        if counts[FiredAnswer.EARLY]:
            self._board.learn_time(await self._store.now(), self._clock.monotonic())
        if doubtful:
            await self._read(doubtful)
        return counts

    def _take_note(self, line: Line, firing: Firing, fired: Fired) -> None:
        if firing.moves_on and fired.answer in _DECIDED:
            line.done = max(line.done, firing.until or firing.instant)
        if fired.answer is FiredAnswer.FIRED:
            self._watch([line.name])
            now = _cut(self._board.now)
            # As the store has it now, so that the board is right without another read.
            line.status = msgspec.structs.replace(
                line.status, last_tick=max(line.status.last_tick, line.done), last_fired_at=now, leader=self._replica
            )
            self._board.statuses[line.name] = line.status
            self._events.emit(TickFired(line.name, firing.instant, fired.job_id or "", now - firing.instant))
        elif fired.answer in (FiredAnswer.RECORDED, FiredAnswer.OVERLAP):
            decision = firing.recorded_as(fired.answer).value
            self._events.emit(TickSkipped(line.name, firing.instant, decision, firing.reason, firing.count))
            if firing.decision is Decision.MISSED:
                told = f"missed:{line.name}:{firing.mark}:{firing.replica}"
                self._events.emit(TicksMissed(told, line.name, firing.instant, firing.count, firing.reason))

    # Looking how jobs of ticks go, and what others have done.

    def _watch(self, names: Iterable[str]) -> None:
        now = self._clock.monotonic()
        if not self._watched:
            self._look_at = now + LOOK_EVERY
        self._watched.update(dict.fromkeys(names, now + LOOK_FOR))

    async def _look_at_runs(self) -> None:
        """While jobs of ticks run, and a little longer, keep the board right about them; about all while it is read."""
        now = self._clock.monotonic()
        if now < self._look_at or not (self._watched or self._board.is_wanted):
            return
        self._look_at = now + LOOK_EVERY
        if self._board.is_wanted:
            await self._read_all()
        else:
            await self._read(self._watched.keys())
        statuses = self._board.statuses
        for name, until in list(self._watched.items()):
            if until <= now and (name not in statuses or not statuses[name].running):
                del self._watched[name]


def _batches(firings: Iterable[tuple[Line, Firing]]) -> Iterator[list[tuple[Line, Firing]]]:
    """Firings for one call each. One that stands for many instants is the last of its batch: others depend on it."""
    batch: list[tuple[Line, Firing]] = []
    for pair in firings:
        batch.append(pair)
        if len(batch) == BATCH or pair[1].until is not None:
            yield batch
            batch = []
    if batch:
        yield batch


def _cut(instant: datetime) -> datetime:
    """The instant in whole milliseconds."""
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)
