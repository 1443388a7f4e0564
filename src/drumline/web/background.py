"""Background tasks of FastAPI and Starlette that are tasks of Drumline: they become jobs before the answer is sent.

`background_tasks.add_task(send_mail, 7)` keeps its place in a handler. When the handler has returned, and before the
first byte of its response, every entry whose function is a task is enqueued, all in one batch; the others run
afterwards, as before. If the store is out of reach the answer is 503, and nothing was promised to anybody.
Whatever a handler enqueues, in this way or any other, has the route as its origin.
"""

from __future__ import annotations

import logging
import sys
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

from starlette.background import BackgroundTask, BackgroundTasks
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from drumline.errors import StoreError
from drumline.middleware import called_from
from drumline.model.result import cut
from drumline.task import Added, Call, Task
from drumline.web.answers import answer_error, answer_refusal

if TYPE_CHECKING:
    from drumline.app import Drumline

__all__ = ["EnqueueBackgroundTasks"]

LONGEST_ORIGIN = 200

logger = logging.getLogger("drumline.web")


class _NotEnqueued(Exception):
    """The store did not take the jobs. It passes through the app, which knows nothing of it, to where it is caught."""

    def __init__(self, error: StoreError) -> None:
        super().__init__(str(error))
        self.error = error


class EnqueueBackgroundTasks:
    """The innermost middleware of an app: it looks at each response when that is about to be sent."""

    def __init__(self, app: ASGIApp, drum: Drumline) -> None:
        self._app = app
        self._drum = drum

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_behind_jobs(message: Message) -> None:
            if message["type"] == "http.response.start":
                response = _find_response(sys._getframe(1))  # noqa: SLF001 - see there
                if response is not None and response.background is not None:
                    await self._enqueue(response)
            await send(message)

        # Asked for late: the route is not yet known.
        token = called_from.set(partial(_origin, scope))
        try:
            await self._app(scope, receive, send_behind_jobs)
        except _NotEnqueued as refused:
            logger.warning("%s: not enqueued: %s", _origin(scope), refused)
            await answer_refusal(answer_error(refused.error))(scope, receive, send)
        finally:
            called_from.reset(token)

    async def _enqueue(self, response: Response) -> None:
        calls = _take_calls(response)
        if not calls:
            return
        try:
            await self._drum.enqueue_many(calls)
        except StoreError as error:
            raise _NotEnqueued(error) from error


def _take_calls(response: Response) -> list[Call]:
    """The calls of tasks among a response's background tasks, which then holds the others only."""
    background: Any = response.background
    entries = background.tasks if isinstance(background, BackgroundTasks) else [background]
    ours = [entry for entry in entries if isinstance(getattr(entry, "func", None), Task | Added)]
    if isinstance(background, BackgroundTasks):
        background.tasks[:] = [entry for entry in entries if entry not in ours]
    elif ours:
        response.background = None
    return [_call_of(entry) for entry in ours]


def _call_of(entry: BackgroundTask) -> Call:
    function: Any = entry.func
    call: Call = function.call if isinstance(function, Added) else function.call(*entry.args, **entry.kwargs)
    return call


def _origin(scope: Scope) -> str:
    """The route that enqueues, as people know it: `POST /orders/{order}`."""
    path = getattr(scope.get("route"), "path", None) or scope["path"]
    # Where no route is known, the path is whatever was sent.
    return cut(f"{scope['method']} {path}")[:LONGEST_ORIGIN]


def _find_response(frame: FrameType | None) -> Response | None:
    """The response that is being sent.

    Neither framework shows it to anybody between handler and first byte: the one place where it is in sight is the
    call that sends it, which is among those that have led here.
    """
    while frame is not None:
        found = frame.f_locals.get("self")
        if isinstance(found, Response):
            return found
        frame = frame.f_back
    return None
