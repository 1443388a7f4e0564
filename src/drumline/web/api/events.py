"""The event stream: server-sent events with ids. Whoever comes back with the last one goes on from there."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from drumline.web.access import UserRole
from drumline.web.api.reading import read_query
from drumline.web.sampler import Change, Sampler, Seat
from drumline.web.site import Ask, Entry, Parameter

__all__ = ["EVENT_ENTRIES"]

# How long a browser waits before it comes back.
COME_BACK_MILLIS = 2000
# How long a client may take for one event: while it takes none it holds a seat, and its server's shutdown.
SLOWEST = 10.0
_QUERY = (
    Parameter("last_event_id", {"type": "string"}, "As the header Last-Event-ID, for those who cannot send one."),
)


class EventStream(Response):
    """Goes on until the client, or this process, leaves. A client that takes nothing for long has left."""

    media_type = "text/event-stream"

    def __init__(self, sampler: Sampler, seat: Seat, last: str | None) -> None:
        self.status_code = 200
        self.background = None
        # A proxy must not collect what is meant to arrive at once.
        self.init_headers({"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._sampler = sampler
        self._seat = seat
        self._last = last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        listening = asyncio.ensure_future(_listen(receive, self._seat))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            # Whoever asks for the headers only is not going to leave.
            if scope["method"] != "HEAD":
                await self._tell(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (OSError, TimeoutError):
            # The client left while it was being told something.
            return
        finally:
            listening.cancel()
            self._sampler.leave_seat(self._seat)

    async def _tell(self, send: Send) -> None:
        await _say(send, f"retry: {COME_BACK_MILLIS}\n\n".encode())
        async for change in self._sampler.watch(self._seat, self._last):
            await _say(send, _frame(change))


async def _listen(receive: Receive, seat: Seat) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    seat.leave()


async def _say(send: Send, text: bytes) -> None:
    async with asyncio.timeout(SLOWEST):
        await send({"type": "http.response.body", "body": text, "more_body": True})


def _frame(change: Change | None) -> bytes:
    if change is None:
        return b": still here\n\n"
    data = msgspec.json.encode(change.table)
    return f"id: {change.id}\nevent: {change.name}\ndata: ".encode() + data + b"\n\n"


async def answer_events(ask: Ask) -> Response:
    """What changes in the fleet, as it changes."""
    query = read_query(ask, _QUERY)
    last = ask.request.headers.get("last-event-id") or query.get("last_event_id")
    sampler = ask.web.sampler
    return EventStream(sampler, sampler.take_seat(), last)


EVENT_ENTRIES = (
    Entry(
        method="GET",
        path="/api/events",
        role=UserRole.VIEWER,
        handle=answer_events,
        summary="What changes in the fleet: server-sent events.",
        query=_QUERY,
        answers={200: {"type": "string"}},
        media="text/event-stream",
    ),
)
