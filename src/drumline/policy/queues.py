"""Which queue gives how many of the next jobs: strictly in order, or by weight, within caps, beside reserved slots.

Reserved slots are kept free for their queue while others wait; of the rest every queue may take, by order or weight:

    concurrency 8, critical has 2 reserved   │ c c │ a a a a b b │      three of critical run:   │ c c │ c a a a b b │

Weighted queues are served by whoever is furthest behind, measured in jobs taken for each unit of weight. What a queue
cannot give goes to the others, and it is not owed to it later: no queue saves up while it is empty.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.options import PRIVATE

__all__ = ["account", "common_slots", "divide", "interleave", "own_slots", "strict_shares", "weighted_shares"]


def own_slots(reserved: Mapping[str, int], taken: Mapping[str, int]) -> dict[str, int]:
    """Of each queue with reserved slots: how many of them are free."""
    return {queue: max(slots - taken.get(queue, 0), 0) for queue, slots in reserved.items()}


def common_slots(limit: int, reserved: Mapping[str, int], taken: Mapping[str, int]) -> int:
    """How many of the slots are neither taken nor kept for a queue; below 0 while too many are taken.

    Nothing is kept where that would leave none for the others.
    """
    kept = own_slots(reserved, taken) if sum(reserved.values()) < limit else {}
    return limit - sum(taken.values()) - sum(kept.values())


def strict_shares(queues: Sequence[str], limit: int, room: Mapping[str, int]) -> list[Share]:
    """Each queue in its order, as far as it has room; one that `room` does not name has room for all."""
    shares: list[Share] = []
    for queue in queues:
        shares += _slices(limit, room) if queue == ANY_QUEUE else [Share(queue, min(limit, room.get(queue, limit)))]
    return [share for share in shares if share.limit > 0]


def _slices(limit: int, room: Mapping[str, int]) -> list[Share]:
    """Every queue as one, and yet none beyond its room.

    As many from all together as there is room for in the narrowest one; then again without that one. There may be room
    left after such a call, for nobody knows which queues gave how many before it ends.
    """
    shares, given = [], 0
    narrow = sorted((most, queue) for queue, most in room.items() if most < limit)
    for place, (most, _) in enumerate(narrow):
        but = tuple(queue for _, queue in narrow[:place])
        shares.append(Share(ANY_QUEUE, max(most, 0) - given, but))
        given = max(most, 0)
    return [*shares, Share(ANY_QUEUE, limit - given, tuple(queue for _, queue in narrow))]


def weighted_shares(
    weights: Mapping[str, int], served: Mapping[str, float], parts: Mapping[str, int], room: Mapping[str, int]
) -> list[Share]:
    """Each queue its part, and then, where others have not enough, all that it has room for."""
    limit = sum(parts.values())
    named = tuple(queue for queue in weights if queue != ANY_QUEUE)
    behind = sorted(weights, key=lambda queue: served.get(queue, 0.0) + parts[queue] / weights[queue])
    first = [(queue, parts[queue]) for queue in weights]
    rest = [(queue, min(limit, room.get(queue, limit)) - parts[queue]) for queue in behind]
    return [Share(queue, most, named if queue == ANY_QUEUE else ()) for queue, most in (*first, *rest) if most > 0]


def divide(
    weights: Mapping[str, int], served: Mapping[str, float], limit: int, room: Mapping[str, int]
) -> dict[str, int]:
    """So many jobs, one by one to the queue that is furthest behind and has room."""
    parts = dict.fromkeys(weights, 0)
    line = [
        (served.get(queue, 0.0) + 0.5 / weight, place, queue) for place, (queue, weight) in enumerate(weights.items())
    ]
    heapq.heapify(line)
    for _ in range(limit):
        while line and parts[line[0][2]] >= room.get(line[0][2], limit):
            heapq.heappop(line)
        if not line:
            break
        reached, place, queue = line[0]
        parts[queue] += 1
        heapq.heapreplace(line, (reached + 1 / weights[queue], place, queue))
    return parts


def interleave(weights: Mapping[str, int], served: Mapping[str, float], queues: Sequence[str]) -> list[int]:
    """In which order to start jobs of these queues, told by their places: side by side, and not queue by queue.

    One of a queue that has no part in the weights comes first; jobs of one queue keep their order.
    """
    reached: dict[str, float] = {}
    turns: list[tuple[float, int]] = []
    for place, queue in enumerate(queues):
        name = queue if queue in weights else ANY_QUEUE
        if name not in weights or queue.startswith(PRIVATE):
            turns.append((float("-inf"), place))
            continue
        turns.append((reached.get(name, served.get(name, 0.0) + 0.5 / weights[name]), place))
        reached[name] = turns[-1][0] + 1 / weights[name]
    return [place for _, place in sorted(turns)]


def account(
    weights: Mapping[str, int],
    served: Mapping[str, float],
    parts: Mapping[str, int],
    room: Mapping[str, int],
    taken: Iterable[str],
) -> dict[str, float]:
    """How far each queue is after a call that was to give these parts, and gave jobs of these queues."""
    got = dict.fromkeys(weights, 0)
    for queue in taken:
        name = queue if queue in got else ANY_QUEUE
        if name in got:
            got[name] += 1
    reached = {queue: served.get(queue, 0.0) + got[queue] / weight for queue, weight in weights.items()}
    # It had no more to give, or might give no more.
    short = {
        queue for queue in weights if got[queue] < parts[queue] or parts[queue] >= room.get(queue, parts[queue] + 1)
    }
    others = [place for queue, place in reached.items() if queue not in short]
    floor = min(others) if others else max(reached.values())
    return {queue: max(place, floor) if queue in short else place for queue, place in reached.items()}
