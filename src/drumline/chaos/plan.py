"""The plan of a run: which fault comes when, drawn from a seed, so that the same seed gives the same plan."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from random import Random

import msgspec

__all__ = ["CONNECTION", "PROCESS", "SERVER", "Deed", "Fault", "draw_plan"]


class Deed(StrEnum):
    """What can be done to a fleet."""

    # To a worker process.
    KILL = "SIGKILL"
    FREEZE = "SIGSTOP and, later, SIGCONT"
    TERMINATE = "SIGTERM"
    # To a worker's connections to the store, or to the producer's.
    DELAY = "every answer delayed"
    CUT = "connections cut"
    BLACKHOLE = "nothing passes"
    DEAFEN = "answers lost with their connection"
    # To the server.
    RESTART = "server killed and started"
    DISCONNECT = "all connections ended by the server"


PROCESS = frozenset({Deed.KILL, Deed.FREEZE, Deed.TERMINATE})
CONNECTION = frozenset({Deed.DELAY, Deed.CUT, Deed.BLACKHOLE, Deed.DEAFEN})
SERVER = frozenset({Deed.RESTART, Deed.DISCONNECT})

# How often each is drawn, among those that can be done.
_WEIGHTS = {
    Deed.KILL: 40,
    Deed.FREEZE: 10,
    Deed.TERMINATE: 8,
    Deed.DELAY: 4,
    Deed.CUT: 6,
    Deed.BLACKHOLE: 4,
    Deed.DEAFEN: 6,
    Deed.RESTART: 8,
    Deed.DISCONNECT: 4,
}
# Of the workers that are started, so many in a hundred have a clock that is wrong, where that can be done.
_SKEWED_PERCENT = 30
_LARGEST_SKEW = 90 * 60.0
# Between two faults, in seconds.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.3, 1.7


class Fault(msgspec.Struct, frozen=True):
    """One deed: when, in seconds from the beginning; to which place in the fleet; for how long, in leases."""

    at: float
    deed: Deed
    place: int
    leases: float
    # Of the worker that takes the place, by how many seconds its clock is wrong.
    skew: float = 0.0

    def __str__(self) -> str:
        whom = "" if self.deed in SERVER else f", {'the producer' if self.place == 0 else f'worker {self.place}'}"
        return f"{self.at:6.1f} s  {self.deed}{whom}"


def draw_plan(
    seed: int, seconds: float, workers: int, deeds: Collection[Deed], *, with_skew: bool = False
) -> list[Fault]:
    """The faults of a run: each deed once, and then as it comes. Place 0 is the producer's, the others the workers'."""
    random = Random(seed)
    order = [deed for deed in Deed if deed in deeds]
    first = random.sample(order, len(order))
    plan: list[Fault] = []
    at = random.uniform(_SHORTEST_PAUSE, _LONGEST_PAUSE)
    while at < seconds:
        (deed,) = random.choices(order, [_WEIGHTS[deed] for deed in order])
        deed = first.pop() if first else deed
        place = random.randint(0 if deed in CONNECTION else 1, workers)
        # Longer than a lease, so that what is frozen or cut off loses its claims; or shorter, so that it may not.
        leases = random.choice((1.5, 2.0) if deed is Deed.FREEZE else (0.3, 1.5, 2.0))
        is_skewed = random.randrange(100) < _SKEWED_PERCENT and with_skew
        skew = round(random.uniform(-_LARGEST_SKEW, _LARGEST_SKEW), 1) if is_skewed else 0.0
        plan.append(Fault(round(at, 3), deed, place, leases, skew))
        at += random.uniform(_SHORTEST_PAUSE, _LONGEST_PAUSE)
    return plan
