"""The webhook that the settings ask for, while a replica runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from drumline.clock import Clock
from drumline.config.sections import Settings
from drumline.events import Events
from drumline.webhook.subscriber import Webhook

__all__ = ["telling_webhook"]


@asynccontextmanager
async def telling_webhook(settings: Settings, events: Events, clock: Clock, source: str) -> AsyncIterator[None]:
    """Send alerts on while the context is open; nothing, where no URL is set."""
    given = settings.webhook
    if given.url is None or given.secret is None:
        yield
        return
    webhook = Webhook(
        given.url,
        given.secret,
        clock=clock,
        allow_private=given.allow_private,
        timeout=given.timeout.total_seconds(),
        source=source,
    )
    end = events.subscribe(webhook.hear)
    try:
        yield
    finally:
        end()
        await asyncio.to_thread(webhook.close)
