"""Answers from a thread: each goes to the thread or to the event loop that waits for it, and a loop is woken once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

__all__ = ["Asked", "LoopReply", "Reply", "deliver"]


class LoopReply:
    """Where an answer for the running event loop goes. A caller who was cancelled is no longer there to get it."""

    __slots__ = ("future", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()


Reply = LoopReply | Future[Any]


class Asked:
    """What somebody waits for: where the answer goes, and what it is once it is known."""

    __slots__ = ("answer", "error", "reply")

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.answer: Any = None
        self.error: Exception | None = None


def deliver(answered: Sequence[Asked]) -> None:
    """Give each caller its answer, or its error."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Asked]] = {}
    for one in answered:
        if isinstance(one.reply, LoopReply):
            by_loop.setdefault(one.reply.loop, []).append(one)
        else:
            _settle(one.reply, one)
    for loop, group in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle_all, group)
        except RuntimeError:
            # The loop has closed, and with it all who waited there.
            continue


def _settle_all(answered: Sequence[Asked]) -> None:
    for one in answered:
        assert isinstance(one.reply, LoopReply)
        if not one.reply.future.done():
            _settle(one.reply.future, one)


def _settle(future: asyncio.Future[Any] | Future[Any], one: Asked) -> None:
    if one.error is not None:
        future.set_exception(one.error)
    else:
        future.set_result(one.answer)
