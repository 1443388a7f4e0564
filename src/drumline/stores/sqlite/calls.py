"""Operations on their way through a thread: what is asked, and where the answer goes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import islice, pairwise
from typing import Any, Generic, TypeVar

from drumline.stores.base import MOST_JOBS
from drumline.stores.sqlite.step import Step
from drumline.stores.statements import Operation

__all__ = ["BatchCall", "Call", "Join", "LoopReply", "Make", "deliver", "find_batch"]

T = TypeVar("T")

Make = Callable[[Step], Operation[T]]
# An operation on many items, which answers with one answer for each.
Join = Callable[[Step, Sequence[Any]], Operation[list[Any]]]


class Call(Generic[T]):
    """One operation on its way through a thread, and where its answer goes."""

    __slots__ = ("answer", "error", "is_urgent", "make", "reply")

    def __init__(self, make: Make[T], reply: Reply, *, is_urgent: bool) -> None:
        self.make = make
        self.reply = reply
        self.is_urgent = is_urgent
        self.answer: T | None = None
        self.error: Exception | None = None


class BatchCall(Call[list[Any]]):
    """An operation on many items that may be done together with its neighbours: one operation on all their items."""

    __slots__ = ("items", "join")

    def __init__(self, items: Sequence[Any], join: Join, reply: Reply) -> None:
        super().__init__(lambda step: join(step, items), reply, is_urgent=False)
        self.items = items
        self.join = join


class LoopReply:
    """Where an answer for an event loop goes. A caller who was cancelled is no longer there to get it."""

    __slots__ = ("future", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()


Reply = LoopReply | Future[Any]


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


def deliver(calls: Sequence[Call[Any]]) -> None:
    """Give each caller its answer, or its error."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Call[Any]]] = {}
    for call in calls:
        if isinstance(call.reply, LoopReply):
            by_loop.setdefault(call.reply.loop, []).append(call)
        elif call.error is not None:
            call.reply.set_exception(call.error)
        else:
            call.reply.set_result(call.answer)
    for loop, group in by_loop.items():
        try:
            loop.call_soon_threadsafe(_answer_all, group)
        except RuntimeError:
            # The loop has closed, and with it all who waited there.
            continue


def _answer_all(calls: Sequence[Call[Any]]) -> None:
    for call in calls:
        assert isinstance(call.reply, LoopReply)
        future = call.reply.future
        if future.done():
            continue
        if call.error is not None:
            future.set_exception(call.error)
        else:
            future.set_result(call.answer)
