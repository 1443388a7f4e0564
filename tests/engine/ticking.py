"""Tickers over one memory store, each with a clock of its own; whole turns are taken by hand, and nothing waits."""

from collections.abc import Coroutine, Iterable
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from drumline.clock import ManualClock, fresh_id
from drumline.engine.board import Board
from drumline.engine.ticker import Ticker
from drumline.events import Event, Events
from drumline.model.job import Job
from drumline.model.query import JobFilter, PauseKind
from drumline.model.replica import ReplicaInfo, ReplicaState, Role
from drumline.model.schedule import Decision, Rule, Schedule, ScheduleStatus, Tick
from drumline.stores.base import Store
from drumline.stores.memory import MemoryStore
from tests.support.build import BY, TASK, new_schedule
from tests.support.rig import PLENTY, follow_pages
from tests.support.wire import Wire

T = TypeVar("T")

BEAT = 10.0
# More turns than that without a pause are a loop that is busy.
MOST_TURNS = 50


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Drive a coroutine that never waits to its end."""
    try:
        work.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise AssertionError("it waits for something")


def every(seconds: float, name: str = "tock", **given: Any) -> Schedule:
    return new_schedule(name, rule=Rule(every=timedelta(seconds=seconds)), **given)


class TickingReplica:
    """One replica, as far as it ticks: its clock, its wire to the store, its board and its ticker."""

    def __init__(
        self,
        fleet: "TickingFleet",
        id: str,
        schedules: Iterable[Schedule],
        *,
        skew: float = 0,
        role: Role = Role.COMBINED,
        tasks: Iterable[str] = (TASK,),
    ) -> None:
        self.id = id
        self.role = role
        self.clock = ManualClock(fleet.clock.now() + timedelta(seconds=skew))
        self.wire = Wire(fleet.memory)
        self.board = Board(self.clock, {schedule.name: schedule for schedule in schedules})
        self.told: list[Event] = []
        events = Events()
        events.subscribe(self.told.append)
        self.ticker = Ticker(
            cast("Store", self.wire),
            self.board,
            replica=id,
            role=role,
            tasks=tuple(tasks),
            clock=self.clock,
            events=events,
        )
        self.wake_at: float | None = None
        self.beat_at = 0.0

    def heard(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.told if type(event) is kind]

    def beat(self, state: ReplicaState = ReplicaState.RUNNING) -> None:
        info = ReplicaInfo(
            id=self.id,
            name=self.id.partition(":")[0],
            role=self.role,
            state=state,
            schedules=tuple(sorted(self.board.declared)),
            beat_every=timedelta(seconds=BEAT),
        )
        answer = cast("Store", self.wire).beat(info, []).run()
        self.ticker.hear(info, answer, self.clock.monotonic())
        self.beat_at = self.clock.monotonic() + BEAT

    def turn(self) -> float | None:
        """Take turns until there is something to wait for; how long that is."""
        for _ in range(MOST_TURNS):
            pause = finish(self.ticker.step())
            if pause is None or pause > 0:
                self.wake_at = None if pause is None else self.clock.monotonic() + pause
                return pause
        raise AssertionError("the ticker is busy without end")

    def asked(self) -> list[str]:
        """The operations it asked of the store since this was last read; beats left out."""
        names = [name for name, _ in self.wire.calls if name != "beat"]
        self.wire.calls.clear()
        return names


class TickingFleet:
    """The store and its clock, the replicas that live, and what came of it all."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)
        self.replicas: list[TickingReplica] = []
        self.start = self.clock.now()
        self._lives = 0

    def join(self, *schedules: Schedule, name: str = "", **given: Any) -> TickingReplica:
        """Let one more replica begin."""
        self._lives += 1
        replica = TickingReplica(self, f"{name or f'r{self._lives}'}:{self._lives}", schedules, **given)
        self.replicas.append(replica)
        replica.beat()
        replica.turn()
        return replica

    def kill(self, replica: TickingReplica) -> None:
        """It is no more, and nobody was told."""
        self.replicas.remove(replica)

    def leave(self, replica: TickingReplica) -> None:
        self.kill(replica)
        replica.beat(ReplicaState.GONE)

    def at(self, seconds: float) -> datetime:
        """So long after the beginning."""
        return self.start + timedelta(seconds=seconds)

    def move(self, seconds: float) -> None:
        """Let time pass, and nobody act."""
        for clock in [self.clock, *(replica.clock for replica in self.replicas)]:
            clock.advance(seconds)

    def play(self, seconds: float) -> None:
        """Let time pass, and each replica take its turns and beat when it is time to."""
        target = self.clock.elapsed + timedelta(seconds=seconds)
        while (left := (target - self.clock.elapsed).total_seconds()) > 0:
            self.move(min([left, *(self._wait_of(replica) for replica in self.replicas)]))
            for replica in list(self.replicas):
                self._act(replica)

    def _wait_of(self, replica: TickingReplica) -> float:
        times = [replica.beat_at] if replica.wake_at is None else [replica.beat_at, replica.wake_at]
        # Never nothing, and never less than a clock can tell.
        return max(min(times) - replica.clock.monotonic(), 0.000001)

    def _act(self, replica: TickingReplica) -> None:
        # Sums of floats may lie a little beyond the instant that they stand for.
        now = replica.clock.monotonic() + 0.0000001
        is_beat = replica.beat_at <= now
        if is_beat:
            replica.beat()
        if is_beat or (replica.wake_at is not None and replica.wake_at <= now):
            replica.turn()

    # What people do.

    def pause(self, name: str = "tock", *, paused: bool = True) -> None:
        """Pause or resume; hints reach the replicas at their next turn."""
        self.memory.pause(PauseKind.SCHEDULE, [name], paused=paused, by=BY, token=fresh_id()).run()
        self.tell()

    def declare(self, *schedules: Schedule) -> None:
        self.memory.declare(schedules, by=BY).run()
        self.tell()

    def withdraw(self, *names: str) -> None:
        self.memory.withdraw(names, by=BY).run()
        self.tell()

    def tell(self) -> None:
        """Let every replica hear that schedules have changed, and act on it."""
        for replica in self.replicas:
            replica.ticker.hear_change()
            replica.turn()

    # What came of it.

    def status(self, name: str = "tock") -> ScheduleStatus:
        (status,) = self.memory.schedules([name]).run()
        return status

    def rows(self, *decisions: Decision, name: str | None = None) -> list[Tick]:
        """The ledger's rows, by instant; of these decisions, if any are named."""
        rows = follow_pages(lambda after: self.memory.ticks(name, after=after, limit=PLENTY))
        chosen = [row for row in rows if not decisions or row.decision in decisions]
        return sorted(chosen, key=lambda row: (row.instant, row.schedule, row.replica, row.mark))

    def fired(self, name: str | None = None) -> list[float]:
        """The instants that were fired, in seconds after the beginning."""
        return [(row.instant - self.start).total_seconds() for row in self.rows(Decision.FIRED, name=name)]

    def lateness(self, name: str | None = None) -> list[float]:
        """How long after its instant each tick was recorded."""
        return [(row.recorded_at - row.instant).total_seconds() for row in self.rows(Decision.FIRED, name=name)]

    def jobs(self, **where: Any) -> list[Job]:
        return follow_pages(lambda after: self.memory.jobs(JobFilter(**where), after=after, limit=PLENTY))
