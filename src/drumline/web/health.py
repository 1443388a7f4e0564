"""The open words: whether this process lives, has started, and can be sent work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import Response

from drumline.errors import StoreError
from drumline.web.answers import answer_text
from drumline.web.site import Ask

if TYPE_CHECKING:
    from drumline.web.web import Web

__all__ = ["Pulse", "answer_health", "answer_live", "answer_ready", "answer_startup"]

# Everybody may ask, so the store is asked at most once in so many seconds.
FRESH_FOR = 1.0
PATIENCE = 2.0


class Pulse:
    """Whether the store answers, as last looked."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._looked = float("-inf")
        self._answers = False
        self._looking = asyncio.Lock()

    async def store_answers(self) -> bool:
        async with self._looking:
            if self._web.clock.monotonic() - self._looked >= FRESH_FOR:
                self._answers = await self._look()
                self._looked = self._web.clock.monotonic()
            return self._answers

    async def _look(self) -> bool:
        try:
            async with asyncio.timeout(PATIENCE):
                store = await self._web.drum.store()
                await store.now()
        except (StoreError, TimeoutError):
            return False
        return True


async def answer_live(_ask: Ask) -> Response:
    """That an answer comes at all is the answer."""
    return answer_text("live")


async def answer_startup(ask: Ask) -> Response:
    """503 until the fleet has heard of this process."""
    return answer_text("started") if _has_begun(ask.web) else answer_text("starting", 503)


async def answer_ready(ask: Ask) -> Response:
    """503 while it starts, while it drains, and while the store is out of reach."""
    web = ask.web
    if not _has_begun(web):
        return answer_text("starting", 503)
    if web.is_leaving or any(worker.is_stopping for worker in web.drum.running_here):
        return answer_text("draining", 503)
    if not await web.pulse.store_answers():
        return answer_text("lost", 503)
    return answer_text("ready")


async def answer_health(ask: Ask) -> Response:
    """503 while the store is out of reach, and while a slot is held by a task that does not end."""
    if not all(worker.is_healthy for worker in ask.web.drum.running_here):
        return answer_text("stuck", 503)
    return answer_text("healthy") if await ask.web.pulse.store_answers() else answer_text("degraded", 503)


def _has_begun(web: Web) -> bool:
    workers = web.drum.running_here
    return not web.expects_worker or any(worker.has_begun for worker in workers)
