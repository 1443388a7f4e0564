"""Operations on their way through a thread, alone or joined with their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from typing import Any, Generic, TypeVar

from drumline.stores.base import MOST_JOBS
from drumline.stores.replies import Asked, Reply
from drumline.stores.sqlite.step import Step
from drumline.stores.statements import Operation

__all__ = ["BatchCall", "Call", "Join", "Make", "find_batch"]

T = TypeVar("T")

Make = Callable[[Step], Operation[T]]
# An operation on many items, which answers with one answer for each.
Join = Callable[[Step, Sequence[Any]], Operation[list[Any]]]


class Call(Asked, Generic[T]):
    """One operation on its way through a thread."""

    __slots__ = ("is_urgent", "make")

    def __init__(self, make: Make[T], reply: Reply, *, is_urgent: bool) -> None:
        super().__init__(reply)
        self.make = make
        self.is_urgent = is_urgent


class BatchCall(Call[list[Any]]):
    """An operation on many items that may be done together with its neighbours: one operation on all their items."""

    __slots__ = ("items", "join")

    def __init__(self, items: Sequence[Any], join: Join, reply: Reply) -> None:
        super().__init__(lambda step: join(step, items), reply, is_urgent=False)
        self.items = items
        self.join = join


def find_batch(calls: Sequence[Call[Any]], first: int) -> list[Any]:
    """The call at this place, with those behind it that can be done together with it."""
    group = [calls[first]]
    size = 0
    for call, following in pairwise(islice(calls, first, None)):
        if not isinstance(call, BatchCall) or not isinstance(following, BatchCall):
            break
        size += len(call.items)
        if size + len(following.items) > MOST_JOBS:
            break
        group.append(following)
    return group
