"""A lifespan: what the app opens once in each process, and its tasks see as `ctx.state`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from drumline.errors import BadOption

__all__ = ["HeldLifespan", "Lifespan", "check_lifespan"]

Lifespan = Callable[[], AbstractAsyncContextManager[Any]]


def check_lifespan(value: object) -> None:
    """BadOption for what cannot be called to open it, such as what was called already."""
    is_opened = hasattr(value, "__aenter__") and not isinstance(value, type)
    if not callable(value) or is_opened:
        raise BadOption("lifespan", "a function that gives an async context manager", value)


class HeldLifespan:
    """A lifespan, kept open in an asyncio task of its own: many may be left only by the task that entered them."""

    def __init__(self, lifespan: Lifespan) -> None:
        self._lifespan = lifespan
        self._entered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._leave = asyncio.Event()
        self._task = asyncio.ensure_future(self._hold())

    async def open(self) -> Any:
        """What the lifespan yields, or its error."""
        waiting: set[asyncio.Future[Any]] = {self._entered, self._task}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            await self._task
        return await self._entered

    async def close(self) -> None:
        self._leave.set()
        await self._task

    async def _hold(self) -> None:
        async with self._lifespan() as state:
            self._entered.set_result(state)
            await self._leave.wait()
