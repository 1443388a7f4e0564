"""The event stream: server-sent events with ids. Whoever comes back with the last one goes on from there."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from drumline.web.access import UserRole
from drumline.web.api.reading import read_query
from drumline.web.sampler import Change, Sampler
from drumline.web.site import Ask, Entry, Parameter

__all__ = ["EVENT_ENTRIES"]

# How long a browser waits before it comes back.
COME_BACK_MILLIS = 2000
_QUERY = (
    Parameter("last_event_id", {"type": "string"}, "As the header Last-Event-ID, for those who cannot send one."),
)


class EventStream(Response):
    """Goes on until the client, or this process, leaves."""

    media_type = "text/event-stream"

    def __init__(self, sampler: Sampler, last: str | None) -> None:
        self.status_code = 200
        self.background = None
        # A proxy must not collect what is meant to arrive at once.
        self.init_headers({"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._sampler = sampler
        self._last = last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        gone = asyncio.Event()
        listening = asyncio.ensure_future(_listen(receive, gone))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await _say(send, f"retry: {COME_BACK_MILLIS}\n\n".encode())
            async for change in self._sampler.watch(self._last, gone):
                await _say(send, _frame(change))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except OSError:
            # The client left while it was being told something.
            return
        finally:
            listening.cancel()


async def _listen(receive: Receive, gone: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()


async def _say(send: Send, text: bytes) -> None:
    await send({"type": "http.response.body", "body": text, "more_body": True})


def _frame(change: Change | None) -> bytes:
    if change is None:
        return b": still here\n\n"
    data = msgspec.json.encode(change.table)
    return f"id: {change.id}\nevent: {change.name}\ndata: ".encode() + data + b"\n\n"


async def answer_events(ask: Ask) -> Response:
    """What changes in the fleet, as it changes."""
    query = read_query(ask, _QUERY)
    ask.web.sampler.check_room()
    last = ask.request.headers.get("last-event-id") or query.get("last_event_id")
    return EventStream(ask.web.sampler, last)


EVENT_ENTRIES = (
    Entry(
        method="GET",
        path="/api/events",
        role=UserRole.VIEWER,
        handle=answer_events,
        summary="What changes in the fleet: server-sent events.",
        query=_QUERY,
        answers={200: {"type": "string"}, 429: {}},
        media="text/event-stream",
    ),
)
