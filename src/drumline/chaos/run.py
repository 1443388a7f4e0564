"""A chaos run: a fleet at work, faults by plan, then rest, and the evidence.

    begin ── faults by plan, the producer at work ── everything mended ── schedules paused, work ends ── stop ── check

The plan says what is tried and when. A fault that would leave no worker in a good state is left out: a fleet that is
wholly dead keeps its promises too easily.
"""

from __future__ import annotations

import asyncio
import heapq
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Protocol, assert_never

import msgspec

from drumline import Drumline
from drumline.chaos.check import Evidence
from drumline.chaos.fleet import Fleet, Place
from drumline.chaos.ground import Ground
from drumline.chaos.ledger import Ledger
from drumline.chaos.plan import CONNECTION, PROCESS, SERVER, Deed, Fault, draw_plan
from drumline.chaos.produce import Producer
from drumline.chaos.program import LEASE, SCHEDULES, declare
from drumline.chaos.proxy import Mode, Switchboard, find_server
from drumline.chaos.read import read_evidence
from drumline.chaos.report import Report, Tale, sum_up
from drumline.chaos.worker import LEASE as LEASE_VARIABLE
from drumline.chaos.worker import LEDGER as LEDGER_VARIABLE
from drumline.clock import SystemClock, pause
from drumline.errors import StoreError

__all__ = ["Host", "Options", "Surroundings", "run_chaos"]

_LOOK_EVERY = 0.02
_TELL_EVERY = 10.0
# How long the fleet may take to begin, work to end once everything is mended, and then the workers to stop.
_REST = 60.0
_STOP = 40.0
_MODES = {Deed.DELAY: Mode.DELAY, Deed.BLACKHOLE: Mode.BLACKHOLE, Deed.DEAFEN: Mode.DEAF}


class Host(Protocol):
    """A server of the run's own."""

    def restart(self) -> None:
        """Kill it, and start it again."""

    def disconnect(self) -> None:
        """End every connection to it."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a run goes."""

    seed: int
    seconds: float = 120.0
    workers: int = 4
    lease: timedelta = LEASE
    # Jobs a second, at most.
    rate: float = 400.0


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What a run can do beyond faults of processes and connections."""

    host: Host | None = None
    # The variables under which a process's clock is wrong by so many seconds.
    skewed: Callable[[float], Mapping[str, str]] | None = None
    # What a worker process runs.
    module: str = "drumline.chaos.worker"
    variables: Mapping[str, str] = {}
    # What may be done, of what can be.
    deeds: frozenset[Deed] = frozenset(Deed)


def run_chaos(
    ground: Ground, options: Options, folder: Path, tell: Callable[[str], None], around: Surroundings | None = None
) -> Report:
    """Do all of it, and judge. The folder takes the ledger and the workers' log; the ground is cleaned at the end."""
    run = _Run(ground, options, folder, tell, around or Surroundings())
    try:
        return run.play()
    finally:
        run.close()
        ground.clean()


class _Run:
    def __init__(
        self, ground: Ground, options: Options, folder: Path, tell: Callable[[str], None], around: Surroundings
    ) -> None:
        self._ground = ground
        self._options = options
        self._around = around
        self._tell = tell
        self._clock = SystemClock()
        self._ledger = folder / "ledger"
        server = find_server(ground.url)
        self._board = None if server is None else Switchboard(server, options.workers + 1)
        self._fleet = Fleet(folder, self._variables, self._clock, around.module)
        self._drum = Drumline(ground.url, namespace=ground.namespace)
        self._writer = Ledger(self._ledger)
        declare(self._drum, self._writer, options.lease)
        # The producer's own, through a wire of its own.
        self._enqueuing = Drumline(self._lead(0), namespace=ground.namespace)
        tasks = declare(self._enqueuing, self._writer, options.lease)
        lease = options.lease.total_seconds()
        self._producer = Producer(self._enqueuing, tasks, rate=options.rate, lease=lease, clock=self._clock)
        self._deeds: Counter[Deed] = Counter()
        self._zombies = self._skewed = 0
        self._skews: dict[int, float] = {}
        self._outages: list[tuple[datetime, datetime]] = []
        self._crashes: list[tuple[datetime, datetime]] = []
        # What has to be undone, and when.
        self._undo: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._began = self._clock.monotonic()

    def play(self) -> Report:
        asyncio.run(self._migrate())
        for number in range(1, self._options.workers + 1):
            self._fleet.start(number)
        asyncio.run(self._wait_for_fleet())
        self._producer.start()
        self._began = self._clock.monotonic()
        self._disturb(self._draw())
        self._settle()
        evidence = asyncio.run(self._read())
        return sum_up(self._tale(), evidence)

    def close(self) -> None:
        self._fleet.kill()
        if self._board is not None:
            self._board.close()
        self._writer.close()

    # Before and after.

    async def _migrate(self) -> None:
        async with self._drum:
            await self._drum.counts()

    async def _wait_for_fleet(self) -> None:
        """Until every worker has begun; one that cannot will be told of at the end."""
        async with self._drum:
            end = self._clock.monotonic() + _REST
            while self._clock.monotonic() < end and len(await self._drum.workers()) < self._options.workers:
                self._look_after()

    async def _read(self) -> Evidence:
        async with self._drum:
            return await read_evidence(self._drum, self._ledger, self._producer.accepted)

    def _lead(self, number: int) -> str:
        return self._ground.url if self._board is None else self._board.proxies[number].lead(self._ground.url)

    def _variables(self, number: int, skew: float) -> dict[str, str]:
        wrong = self._around.skewed(skew) if skew and self._around.skewed is not None else {}
        self._skewed += bool(wrong)
        return {
            **self._around.variables,
            **wrong,
            "DRUMLINE_STORE__URL": self._lead(number),
            "DRUMLINE_STORE__NAMESPACE": self._ground.namespace,
            LEDGER_VARIABLE: str(self._ledger),
            LEASE_VARIABLE: str(self._options.lease.total_seconds()),
        }

    def _draw(self) -> list[Fault]:
        deeds = PROCESS | (CONNECTION if self._board is not None else frozenset())
        if self._around.host is not None:
            deeds |= SERVER
        can_skew = self._around.skewed is not None
        options = self._options
        return draw_plan(options.seed, options.seconds, options.workers, deeds & self._around.deeds, with_skew=can_skew)

    # The faults.

    def _disturb(self, plan: list[Fault]) -> None:
        told = 0.0
        for fault in plan:
            while (now := self._elapsed) < fault.at:
                if now - told >= _TELL_EVERY:
                    told = now
                    self._tell(f"{now:6.1f} s  {len(self._producer.accepted):,} jobs accepted")
                self._look_after()
            self._do(fault)
        while self._elapsed < self._options.seconds:
            self._look_after()

    @property
    def _elapsed(self) -> float:
        return self._clock.monotonic() - self._began

    def _look_after(self) -> None:
        pause(_LOOK_EVERY)
        while self._undo and self._undo[0][0] <= self._clock.monotonic():
            heapq.heappop(self._undo)[2]()
        self._fleet.replace_ended(self._skews)

    def _do(self, fault: Fault) -> None:
        if fault.deed in SERVER:
            self._do_to_server(fault)
        elif fault.place == 0:
            self._do_to_wire(fault, 0, None)
        elif (place := self._fleet.pick(fault.place)) is not None:
            self._do_to_worker(fault, place)
        else:
            return
        self._deeds[fault.deed] += 1
        self._tell(str(fault))

    def _do_to_server(self, fault: Fault) -> None:
        host = self._around.host
        if host is None:
            return
        began = self._clock.now()
        if fault.deed is Deed.RESTART:
            host.restart()
            self._crashes.append((began, self._clock.now()))
        else:
            host.disconnect()
        self._outages.append((began, self._clock.now()))

    def _do_to_worker(self, fault: Fault, place: Place) -> None:
        self._skews[place.number] = fault.skew
        match fault.deed:
            case Deed.KILL:
                self._fleet.ask(place, signal.SIGKILL)
            case Deed.TERMINATE:
                self._fleet.ask(place, signal.SIGTERM)
            case Deed.FREEZE:
                place.is_frozen = True
                place.send(signal.SIGSTOP)
                began = self._clock.now()
                self._later(fault.leases, lambda: self._thaw(place, fault, began))
            case Deed.DELAY | Deed.CUT | Deed.BLACKHOLE | Deed.DEAFEN:
                self._do_to_wire(fault, place.number, place)
            case Deed.RESTART | Deed.DISCONNECT:
                pass
            case _:
                assert_never(fault.deed)

    def _do_to_wire(self, fault: Fault, number: int, place: Place | None) -> None:
        board = self._board
        if board is None:
            return
        if fault.deed is Deed.CUT:
            board.cut(number)
            return
        board.set_mode(number, _MODES[fault.deed])
        if place is not None:
            place.is_cut_off = True
        self._later(fault.leases, lambda: self._mend(number, place))

    def _thaw(self, place: Place, fault: Fault, began: datetime) -> None:
        if place.is_frozen:
            place.is_frozen = False
            place.send(signal.SIGCONT)
            self._zombies += fault.leases > 1
            if self._board is None:
                # In the midst of a write to a file it has held up everybody.
                self._outages.append((began, self._clock.now()))

    def _mend(self, number: int, place: Place | None) -> None:
        if self._board is not None:
            self._board.set_mode(number, Mode.PASS)
        if place is not None:
            place.is_cut_off = False

    def _later(self, leases: float, undo: Callable[[], None]) -> None:
        at = self._clock.monotonic() + leases * self._options.lease.total_seconds()
        heapq.heappush(self._undo, (at, next(self._order), undo))

    # Rest.

    def _settle(self) -> None:
        self._tell(f"{self._elapsed:6.1f} s  no more faults: waiting for the work to end")
        for _, _, undo in sorted(self._undo):
            undo()
        self._undo.clear()
        self._skews.clear()
        self._producer.end()
        asyncio.run(self._rest())
        self._fleet.stop(_STOP)
        asyncio.run(self._enqueuing.close())

    async def _rest(self) -> None:
        """Pause the schedules, and wait until nothing is left to do; what is left then is the checker's to tell."""
        async with self._drum:
            for name in SCHEDULES:
                await self._drum.schedules.pause(name, reason="the run is over")
            end = self._clock.monotonic() + _REST
            while self._clock.monotonic() < end and await self._has_work():
                self._look_after()

    async def _has_work(self) -> bool:
        try:
            return (await self._drum.counts()).unfinished > 0
        except StoreError:
            return True

    def _tale(self) -> Tale:
        return Tale(
            seed=self._options.seed,
            seconds=self._options.seconds,
            lease=self._options.lease,
            deeds=self._deeds,
            zombies=self._zombies,
            skewed=self._skewed,
            doubts=self._producer.doubts,
            outages=self._outages,
            crashes=self._crashes,
            exits=self._fleet.violations,
        )
