"""Values that go into a store as arguments and come out as results. A program: `enqueue`, or `check` with ids."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, TypedDict
from uuid import UUID

import msgspec
from pydantic import BaseModel

from drumline import Drumline

drum = Drumline()


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: Decimal


class Named(TypedDict):
    name: str
    colours: set[Colour]


class Shape(msgspec.Struct):
    points: list[Point]


class Order(BaseModel):
    id: UUID
    prices: dict[str, Decimal]
    day: date | None = None


ORDER = Order(id=UUID(int=7), prices={"tea": Decimal("1.10")}, day=date(2026, 1, 2))
POINT = Point(-1, Decimal("0.30"))
# By the name of the task: the annotation, and a value of it.
VALUES: dict[str, tuple[Any, Any]] = {
    "digits": (str, "123"),
    "empty": (list[int], []),
    "empty_map": (dict[str, int], {}),
    "nothing": (None, None),
    "large": (int, 2**63),
    "huge": (int, -(10**40)),
    "real": (float, 2.0),
    "truth": (bool, True),
    "exact": (Decimal, Decimal("12345678901234567890.10")),
    "unordered": (set[int], {3, 1}),
    "fixed": (tuple[int, str], (1, "1")),
    "octets": (bytes, b"\x00\xff"),
    "instant": (datetime, datetime(2026, 1, 2, tzinfo=UTC)),
    "day": (date, date(2026, 1, 2)),
    "span": (timedelta, timedelta(microseconds=1)),
    "identity": (UUID, UUID(int=2**127)),
    "member": (Colour, Colour.RED),
    "record": (Point, POINT),
    "typed_map": (Named, {"name": "1", "colours": {Colour.RED}}),
    "structure": (Shape, Shape([POINT])),
    "model": (Order, ORDER),
    "models": (list[Order], [ORDER, ORDER]),
    "either": (int | str, "1"),
}


def echo_of(annotation: Any, expected: Any) -> Callable[..., Any]:
    async def echo(value: Any) -> Any:
        assert is_same(value, expected), f"{value!r} came, and not {expected!r}"
        return value

    echo.__annotations__ = {"value": annotation, "return": annotation}
    return echo


def is_same(value: Any, expected: Any) -> bool:
    """Equal, and of one type: 2 is equal to 2.0, and True to 1."""
    return type(value) is type(expected) and value == expected and repr(value) == repr(expected)


TASKS = {name: drum.task(name=name, max_attempts=1)(echo_of(*given)) for name, given in VALUES.items()}


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        for name, (_, given) in VALUES.items():
            print(TASKS[name].enqueue_sync(given).id)
    else:
        for (name, (_, expected)), job_id in zip(VALUES.items(), sys.argv[2:], strict=True):
            result = drum.sync.wait(drum.sync.jobs.get(job_id), timeout=10)
            assert is_same(result, expected), f"{name}: {result!r} came back, and not {expected!r}"
        print("all is well")
