"""What is arranged for single queues of a worker: weights, caps, reserved slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from drumline.errors import BadOption
from drumline.model.options import check_count, check_name

__all__ = ["QueueRules", "Queues", "check_weights", "read_queues"]

# Names, in the order in which they are served, perhaps each with its weight behind it; or weights by name.
Queues = Sequence[str] | Mapping[str, int]


class QueueRules(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker shares its slots among queues; each by the name of the queue."""

    # None at all: queues are served strictly in their order. ANY_QUEUE stands for those that have no name here.
    weights: Mapping[str, int] = {}
    # The most jobs of that queue that run at once in this worker.
    caps: Mapping[str, int] = {}
    # Slots that only that queue may take.
    reserved: Mapping[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self.weights or self.caps or self.reserved)

    def of(self, queues: tuple[str, ...]) -> QueueRules:
        """What of it concerns a worker of these queues, or, with none, of every queue."""
        if not queues:
            return self

        def served(numbers: Mapping[str, int]) -> dict[str, int]:
            return {queue: numbers[queue] for queue in queues if queue in numbers}

        return QueueRules(weights=served(self.weights), caps=served(self.caps), reserved=served(self.reserved))

    @property
    def queues(self) -> list[str]:
        """The names of all queues that it speaks of."""
        return list(dict.fromkeys([*self.weights, *self.caps, *self.reserved]))

    def change(self, *, caps: Mapping[str, int | None], reserved: Mapping[str, int | None]) -> QueueRules:
        """With other numbers for the queues that are named; None takes a limit away."""
        return msgspec.structs.replace(
            self, caps=_changed(self.caps, caps, "caps"), reserved=_changed(self.reserved, reserved, "reserved")
        )

    def check(self, queues: tuple[str, ...], concurrency: int) -> QueueRules:
        """Itself, if a worker of so many slots can keep to it; BadOption if not."""
        for queue, slots in self.reserved.items():
            if slots > self.caps.get(queue, slots):
                raise BadOption(f"reserved slots of queue {queue}", f"at most its cap of {self.caps[queue]}", slots)
        wanted = sum(self.reserved.values())
        has_others = not queues or any(queue not in self.reserved for queue in queues)
        if wanted and wanted > concurrency - has_others:
            each = ", ".join(f"{queue} {slots}" for queue, slots in self.reserved.items())
            rest = ", so that other queues have one" if has_others else ""
            most = f"at most {concurrency - has_others} in all, where concurrency is {concurrency}{rest}"
            raise BadOption("reserved slots of queues", f"{most} ({each})", wanted)
        return self


def read_queues(given: Queues, option: str) -> tuple[tuple[str, ...], dict[str, int]]:
    """The names in their order, and the weight of each, or none: `["a", "b"]`, `["a=4", "b=2"]`, `{"a": 4, "b": 2}`."""
    if isinstance(given, str) or not isinstance(given, Sequence | Mapping):
        raise BadOption(option, "a list of queue names, or a table of their weights", given)
    pairs = given.items() if isinstance(given, Mapping) else (_split(part, option) for part in given)
    named = [(check_name(name, option), weight) for name, weight in pairs]
    weights = dict(named)
    if len(weights) < len(named):
        raise BadOption(option, "a list that names each queue once", given)
    return tuple(weights), check_weights(weights, option)


def check_weights(weights: Mapping[str, object], option: str) -> dict[str, int]:
    """Weights that all of the queues have, or none has; BadOption naming the queue that has not, or a bad one."""
    without = [queue for queue, weight in weights.items() if weight is None]
    if len(without) == len(weights):
        return {}
    if without:
        expected = f"given with a weight for each queue or for none ({', '.join(without)} without)"
        raise BadOption(option, expected, {queue: weight for queue, weight in weights.items() if weight is not None})
    return {queue: check_count(weight, f"{option}: the weight of {queue}") for queue, weight in weights.items()}


def _changed(numbers: Mapping[str, int], changes: Mapping[str, int | None], option: str) -> dict[str, int]:
    for queue, number in changes.items():
        check_name(queue, option)
        if number is not None:
            check_count(number, f"{option}: {queue}")
    return {queue: number for queue, number in {**numbers, **changes}.items() if number is not None}


def _split(part: object, option: str) -> tuple[object, int | None]:
    if not isinstance(part, str) or "=" not in part:
        return part, None
    name, _, weight = (word.strip() for word in part.partition("="))
    if not weight.isdecimal():
        raise BadOption(f"{option}: the weight of {name}", "a whole number of 1 or more", weight)
    return name, int(weight)
