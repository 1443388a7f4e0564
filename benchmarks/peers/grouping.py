"""Enqueues of many callers that share a write."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence


class Grouping:
    """Whatever comes while a write is under way is written together by the next one."""

    def __init__(self, write: Callable[[Sequence[int]], Awaitable[None]]) -> None:
        self._write = write
        self._turn = asyncio.Lock()
        self._batch: list[int] = []

    async def add(self, number: int) -> None:
        """Return when it is written."""
        batch = self._batch
        batch.append(number)
        async with self._turn:
            # Otherwise whoever had the turn has written this one too.
            if batch is self._batch:
                self._batch = []
                await self._write(batch)
