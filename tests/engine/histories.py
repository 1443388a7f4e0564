"""Random histories of a fleet: five replicas that start, crash, err and disagree about the time, over one memory store.

Every call to the store takes time on its way there and back, may fail, or lose its reply; whoever runs meanwhile runs
in between. People pause, resume, register, change and withdraw schedules, and new code is deployed. All of it follows
from a seed.
"""

import heapq
import random
from collections.abc import Callable, Coroutine, Generator
from datetime import datetime, timedelta
from itertools import count
from typing import Any, NamedTuple, cast

from drumline.clock import ManualClock, fresh_id
from drumline.engine.board import Board
from drumline.engine.ticker import Ticker
from drumline.errors import StoreUnreachable
from drumline.events import Events
from drumline.model.query import PauseKind
from drumline.model.replica import Beat, ReplicaInfo, ReplicaState
from drumline.model.schedule import Coordination, Decision, Misfire, Rule, Schedule
from drumline.stores.base import Store
from drumline.stores.memory import MemoryStore
from tests.support.build import BY, TASK, new_schedule

# All in milliseconds of the store's time.
BEAT = 2_000
SLOWEST = 100
STIRRED = 20_000
QUIET = 10_000
SKEW = 600_000
PLACES = 5
STEPS = (700, 1_000, 1_500, 2_000, 3_000, 5_000, 10_000)


class Done(NamedTuple):
    """One call as the store executed it."""

    at: int
    who: str
    operation: str
    given: tuple[Any, ...]
    answer: Any


class Asking:
    """A call on its way; whoever drives the coroutine sends the answer."""

    def __init__(self, operation: str, given: tuple[Any, ...], call: Callable[[], Any]) -> None:
        self.operation = operation
        self.given = given
        self.call = call

    def __await__(self) -> Generator["Asking", Any, Any]:
        return (yield self)


class FarStore:
    """The store, as a replica sees it from afar."""

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    def __getattr__(self, operation: str) -> Any:
        target = getattr(self._memory, operation)
        return lambda *given, **named: Asking(operation, given, lambda: target(*given, **named).run())


class WrongClock:
    """A replica's own clock: minutes off, and a little too fast or slow."""

    def __init__(self, true: ManualClock, skew: timedelta, rate: float) -> None:
        self._true = true
        self._skew = skew
        self._rate = rate

    def now(self) -> datetime:
        return self._true.now() + self._skew

    def monotonic(self) -> float:
        return self._true.monotonic() * self._rate

    async def wait(self, event: object, timeout: float | None) -> bool:
        raise AssertionError("nothing waits here")


class Life:
    """One replica from its start to its end."""

    def __init__(self, number: int, history: "History", code: dict[str, Schedule]) -> None:
        chance = history.chance
        self.id = f"r{number % PLACES}:{number}"
        self.began = history.now
        self.ended: int | None = None
        # From when to when its calls fail.
        self.troubles: list[tuple[int, int]] = []
        self.declared = frozenset(code)
        skew = timedelta(milliseconds=chance.randint(-SKEW, SKEW))
        self.clock = WrongClock(history.clock, skew, 1 + chance.uniform(-1e-5, 1e-5))
        self.ticker = Ticker(
            cast("Store", FarStore(history.memory)),
            Board(self.clock, code),
            replica=self.id,
            role=ReplicaInfo(id=self.id, name=self.id).role,
            tasks=(TASK,),
            clock=self.clock,
            events=Events(),
        )
        self.work: Coroutine[Any, Any, float | None] | None = None
        self.is_woken = False
        self.failed = 0
        # Grows with every sleep, so that only the newest one wakes.
        self.sleep = 0

    def is_troubled(self, at: int) -> bool:
        return any(begin <= at < end for begin, end in self.troubles)


class History:
    """What happened, and what the store was asked meanwhile."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = ManualClock()
        self.start = self.clock.now()
        self.memory = MemoryStore(self.clock)
        self.lives: list[Life] = []
        self.log: list[Done] = []
        self.now = 0
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self.code: dict[str, Schedule] = {}
        self._registered: dict[str, Schedule] = {}
        self._traits: dict[str, tuple[Misfire, timedelta, Coordination]] = {}

    def play(self) -> None:
        """Live through all of it."""
        chance = self.chance
        for number in range(chance.randint(1, 3)):
            self._deploy_new(f"code{number}")
        for _ in range(chance.randint(1, PLACES)):
            self.at(chance.randint(0, 3_000), self._begin)
        acts = (
            [self._begin] * 4
            + [self._crash] * 4
            + [self._leave, self._deploy, self._register, self._register, self._withdraw, self._redeclare]
            + [self._pause] * 3
            + [self._resume] * 3
            + [self._trouble] * 4
        )
        for _ in range(chance.randint(5, 20)):
            self.at(chance.randint(500, STIRRED), chance.choice(acts))
        self._run(STIRRED)
        for life in self.alive:
            life.troubles = [(begin, min(end, STIRRED)) for begin, end in life.troubles]
        self._begin(self._whole_code())
        self._run(STIRRED + QUIET)

    @property
    def alive(self) -> list[Life]:
        return [life for life in self.lives if life.ended is None]

    def at(self, when: int, act: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (when, next(self._order), act))

    def _after(self, span: float, act: Callable[[], None]) -> None:
        self.at(self.now + max(int(span), 0), act)

    def _run(self, until: int) -> None:
        while self._agenda and self._agenda[0][0] <= until:
            when, _, act = heapq.heappop(self._agenda)
            self._move(when)
            act()
        self._move(until)

    def _move(self, when: int) -> None:
        self.clock.advance(timedelta(milliseconds=when - self.now))
        self.now = when

    def _latency(self) -> int:
        draw = self.chance.random()
        return int(draw * SLOWEST) if draw < 0.5 else int(draw * 5)

    # The life of a replica.

    def _begin(self, code: dict[str, Schedule] | None = None) -> None:
        if code is None and len(self.alive) >= PLACES:
            return
        life = Life(len(self.lives), self, dict(self.code if code is None else code))
        self.lives.append(life)
        self._beat(life)

    def _beat(self, life: Life) -> None:
        if life.ended is None:
            self._after(self._latency(), lambda: self._ask_beat(life))

    def _ask_beat(self, life: Life) -> None:
        asking = self._asked_beat(life)
        self._execute(life, asking, self._heard_beat(life, *asking.given))

    def _asked_beat(self, life: Life, state: ReplicaState = ReplicaState.RUNNING) -> Asking:
        every = timedelta(milliseconds=BEAT)
        names = tuple(sorted(life.declared))
        info = ReplicaInfo(id=life.id, name=life.id, schedules=names, beat_every=every, state=state)
        return Asking("beat", (info,), lambda: self.memory.beat(info, []).run())

    def _heard_beat(self, life: Life, info: ReplicaInfo) -> Callable[[Any, Exception | None], None]:
        def hear(answer: Beat | None, _error: Exception | None) -> None:
            if answer is None:
                self._after(200, lambda: self._beat(life))
                return
            life.ticker.hear(info, answer, life.clock.monotonic())
            self._wake(life)
            self._after(BEAT, lambda: self._beat(life))

        return hear

    def _wake(self, life: Life) -> None:
        life.is_woken = True
        if life.work is None and life.ended is None:
            self._turn(life)

    def _turn(self, life: Life) -> None:
        life.is_woken = False
        life.sleep += 1
        life.work = life.ticker.step()
        self._resume_work(life, None, None)

    def _resume_work(self, life: Life, answer: Any, error: Exception | None) -> None:
        assert life.work is not None
        try:
            asking = life.work.send(answer) if error is None else life.work.throw(error)
        except StopIteration as end:
            life.failed = 0
            self._sleep(life, end.value)
        except StoreUnreachable:
            life.failed += 1
            self._sleep(life, min(0.1 * 2 ** (life.failed - 1), 5))
        else:
            self._after(
                self._latency(),
                lambda: self._execute(life, asking, lambda answer, error: self._resume_work(life, answer, error)),
            )

    def _sleep(self, life: Life, seconds: float | None) -> None:
        life.work = None
        if life.is_woken:
            self._after(0, lambda: self._wake(life))
        elif seconds is not None:
            sleep = life.sleep
            # Up, as a timer never wakes before its time.
            self._after(-(-seconds * 1000 // 1), lambda: self._wake(life) if life.sleep == sleep else None)

    def _execute(self, life: Life, asking: Asking, reply: Callable[[Any, Exception | None], None]) -> None:
        """The call has reached the store, or not."""
        # What a replica asked for just before it died may still arrive.
        if life.ended is not None and self.chance.random() < 0.5:
            return
        fate = self.chance.random() if life.is_troubled(self.now) else 1
        answer: Any = None
        if fate > 0.35:
            answer = asking.call()
            self.log.append(Done(self.now, life.id, asking.operation, asking.given, answer))
            if asking.operation == "declare" or _tells_orphan(asking):
                self._hint()
        error = StoreUnreachable("by chance") if fate <= 0.7 else None
        if error is not None:
            answer = None
        self._after(self._latency(), lambda: reply(answer, error) if life.ended is None else None)

    def _hint(self) -> None:
        """Tell of changes; not everybody hears it."""
        for life in self.alive:
            if self.chance.random() < 0.6:
                self._after(self._latency(), lambda life=life: self._hear_change(life))  # type: ignore[misc]

    def _hear_change(self, life: Life) -> None:
        if life.ended is None:
            life.ticker.hear_change()
            self._wake(life)

    def _crash(self) -> None:
        if self.alive:
            self._end(self.chance.choice(self.alive))

    def _end(self, life: Life) -> None:
        life.ended = self.now
        if life.work is not None:
            life.work.close()

    def _leave(self) -> None:
        if self.alive:
            life = self.chance.choice(self.alive)
            self._end(life)
            self._do(self._asked_beat(life, ReplicaState.GONE))

    def _trouble(self) -> None:
        if self.alive:
            end = self.now + self.chance.randint(100, 6_000)
            self.chance.choice(self.alive).troubles.append((self.now, end))

    # What people do, at once and without fail.

    def _do(self, asking: Asking) -> None:
        answer = asking.call()
        self.log.append(Done(self.now, "people", asking.operation, asking.given, answer))

    def _deploy_new(self, name: str) -> None:
        self.code[name] = self._invent(name, in_code=True)

    def _deploy(self) -> None:
        """Change the code that the next replicas start with."""
        name = self.chance.choice(["code0", "code1", "code2"])
        if name in self.code and self.chance.random() < 0.5:
            del self.code[name]
        else:
            self._deploy_new(name)

    def _whole_code(self) -> dict[str, Schedule]:
        """The code, with whatever the store still holds of older code."""
        held = {status.schedule.name: status.schedule for status in self.memory.schedules().run()}
        return {name: schedule for name, schedule in held.items() if schedule.in_code} | self.code

    def _register(self) -> None:
        schedule = self._invent(self.chance.choice(["live0", "live1"]), in_code=False)
        self._declare(schedule)

    def _redeclare(self) -> None:
        """Register what is registered already: nothing changes."""
        if self._registered:
            self._declare(self.chance.choice(list(self._registered.values())))

    def _declare(self, schedule: Schedule) -> None:
        self._registered[schedule.name] = schedule
        self._do(Asking("declare", ([schedule],), lambda: self.memory.declare([schedule], by=BY).run()))
        self._hint()

    def _withdraw(self) -> None:
        if self._registered:
            name = self.chance.choice(list(self._registered))
            del self._registered[name]
            self._do(Asking("withdraw", ([name],), lambda: self.memory.withdraw([name], by=BY).run()))
            self._hint()

    def _pause(self, *, paused: bool = True) -> None:
        name = self.chance.choice(["code0", "code1", "live0"])
        token = fresh_id()

        def call() -> list[bool]:
            return self.memory.pause(PauseKind.SCHEDULE, [name], paused=paused, by=BY, token=token).run()

        self._do(Asking("pause" if paused else "resume", ([name],), call))
        self._hint()

    def _resume(self) -> None:
        self._pause(paused=False)

    def _invent(self, name: str, *, in_code: bool) -> Schedule:
        misfire, grace, coordination = self._traits_of(name)
        return new_schedule(
            name,
            rule=Rule(every=timedelta(milliseconds=self.chance.choice(STEPS))),
            in_code=in_code,
            paused=self.chance.random() < 0.1,
            misfire=misfire,
            misfire_grace=grace,
            coordination=coordination,
            tags=(self.chance.choice("ab"),),
        )

    def _traits_of(self, name: str) -> tuple[Misfire, timedelta, Coordination]:
        """What stays the same in every version of a schedule."""
        if name not in self._traits:
            grace = timedelta(milliseconds=self.chance.choice([1_000, 2_000, 5_000]))
            coordination = self.chance.choice([Coordination.FLEET] * 3 + [Coordination.PER_REPLICA])
            self._traits[name] = (self.chance.choice(list(Misfire)), grace, coordination)
        return self._traits[name]


def _tells_orphan(asking: Asking) -> bool:
    return asking.operation == "fire" and any(firing.decision is Decision.ORPHANED for firing in asking.given[0])
