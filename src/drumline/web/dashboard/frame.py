"""What stands around every page: the way to the others, what is in them, who looks, and what was just done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from starlette.responses import Response

from drumline.errors import DrumlineError
from drumline.model.options import PRIVATE
from drumline.model.query import Counts
from drumline.model.replica import ReplicaState
from drumline.web.access import UserRole
from drumline.web.answers import Refusal, answer_error
from drumline.web.dashboard.render import Links, fill
from drumline.web.site import Ask, Handle

__all__ = ["Frame", "Told", "answer_page", "base_of", "page", "tell"]

# What was just done, from the answer to an action to the page after it.
TOLD = "drumline_told"
_TOLD_FOR = 30
_LONGEST_TOLD = 300
THEME = "drumline_theme"
_STORES = {"memory": "memory", "sqlite": "SQLite", "postgres": "Postgres", "redis": "Redis"}


class Told(msgspec.Struct, frozen=True):
    """One sentence about what was done, or why it was not."""

    words: str
    is_good: bool = True


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """The same for every page."""

    links: Links
    section: str
    now: datetime
    user: str
    role: UserRole
    # What the navigation counts.
    jobs: int = 0
    schedules: int = 0
    dead: int = 0
    queues: int = 0
    workers: int = 0
    store: str = ""
    namespace: str = ""
    theme: str = ""
    told: Told | None = None
    # The page's own address, below the prefix: an action leads back to it.
    here: str = "/"

    @property
    def can_act(self) -> bool:
        return self.role.covers(UserRole.OPERATOR)

    @property
    def can_discard(self) -> bool:
        return self.role.covers(UserRole.ADMIN)


View = Callable[[Ask], Awaitable[dict[str, Any]]]


def page(section: str, template: str) -> Callable[[View], Handle]:
    """Make an entry's handler of a function that gives a template's values. What it refuses is a page too."""

    def decorate(view: View) -> Handle:
        async def handle(ask: Ask) -> Response:
            try:
                return await answer_page(ask, section, template, await view(ask))
            except DrumlineError as error:
                return await _answer_refused(ask, section, answer_error(error))
            except Refusal as refusal:
                return await _answer_refused(ask, section, refusal)

        return handle

    return decorate


async def answer_page(
    ask: Ask, section: str, template: str, values: dict[str, Any], status: int = 200, *, told: Told | None = None
) -> Response:
    """The page; a sentence that was waiting for one is told on it, once."""
    waiting = told or _read_told(ask)
    frame = await _read_frame(ask, section, waiting)
    response = Response(fill(template, frame=frame, links=frame.links, **values), status, media_type="text/html")
    if TOLD in ask.request.cookies:
        response.delete_cookie(TOLD, path=_cookie_path(ask), httponly=True, samesite="strict")
    return response


def tell(ask: Ask, response: Response, told: Told) -> None:
    """Let the next page that this browser asks for say so."""
    value = ("+" if told.is_good else "-") + quote(told.words[:_LONGEST_TOLD], safe="")
    response.set_cookie(TOLD, value, _TOLD_FOR, path=_cookie_path(ask), httponly=True, samesite="strict")


def base_of(ask: Ask) -> str:
    """The prefix under which the pages stand."""
    return str(ask.request.scope.get("root_path", ""))


async def _answer_refused(ask: Ask, section: str, refusal: Refusal) -> Response:
    values = {"status": refusal.status, "words": refusal.message}
    try:
        response = await answer_page(ask, section, "pages/refused.html", values, refusal.status)
    except DrumlineError:
        # Not even the navigation can be counted.
        frame = _bare_frame(ask, section)
        text = fill("pages/refused.html", frame=frame, links=frame.links, **values)
        response = Response(text, refusal.status, media_type="text/html")
    response.headers.update(refusal.headers)
    return response


async def _read_frame(ask: Ask, section: str, told: Told | None) -> Frame:
    glance = ask.web.glance
    now, rows, workers, schedules, paused = await asyncio.gather(
        glance.now(), glance.counts(), glance.workers(), glance.schedules(), glance.paused_queues()
    )
    shown = [row for row in rows if not row.queue.startswith(PRIVATE)]
    tally = Counts(shown).total
    return msgspec.structs.replace(
        _bare_frame(ask, section),
        now=now,
        jobs=tally.unfinished,
        dead=tally.dead,
        schedules=len(schedules),
        queues=len({row.queue for row in shown} | paused.keys()),
        workers=sum(worker.state in (ReplicaState.RUNNING, ReplicaState.DRAINING) for worker in workers),
        store=_STORES.get((await ask.web.drum.store()).kind, ""),
        told=told,
    )


def _bare_frame(ask: Ask, section: str) -> Frame:
    assert ask.user is not None
    request = ask.request
    theme = request.cookies.get(THEME, "")
    path = request.scope["path"].removeprefix(base_of(ask))
    query = request.url.query
    return Frame(
        links=Links(base_of(ask)),
        section=section,
        now=ask.web.clock.now(),
        user=ask.user.name,
        role=ask.user.role,
        namespace=ask.web.drum.settings.store.namespace,
        theme=theme if theme in ("light", "dark") else "",
        here=quote(path, safe="/:@") + (f"?{query}" if query else ""),
    )


def _cookie_path(ask: Ask) -> str:
    return base_of(ask) or "/"


def _read_told(ask: Ask) -> Told | None:
    value = ask.request.cookies.get(TOLD, "")
    if value[:1] not in ("+", "-"):
        return None
    return Told(unquote(value[1:]), value[0] == "+")
