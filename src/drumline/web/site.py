"""A site: some paths under one prefix, each with the role that it needs. What is not in its table is refused."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from drumline.errors import DrumlineError
from drumline.web.access import Auth, User, UserRole
from drumline.web.answers import Refusal, answer_error, answer_refusal
from drumline.web.guard import HEADERS, SAFE_METHODS, admit, check_origin, keep_private_address, read_body

if TYPE_CHECKING:
    from drumline.web.web import Web

__all__ = ["Ask", "Entry", "Parameter", "Site"]

logger = logging.getLogger("drumline.web")


@dataclass(frozen=True, slots=True)
class Ask:
    """One request that was let in."""

    web: Web
    request: Request
    # None where everybody may look.
    user: User | None
    path: Mapping[str, str]
    body: bytes = b""

    @property
    def who(self) -> str:
        """Whose name the audit shows."""
        return "unknown" if self.user is None else self.user.name

    def tell(self, what: str, *facts: object) -> None:
        """Put what was done into the log, with who did it."""
        logger.info(f"%s {what}", self.who, *facts)  # noqa: G004 - the words are the caller's own, not data


Handle = Callable[[Ask], Awaitable[Response]]
Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a query."""

    name: str
    schema: Schema
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a site's table: what can be asked, who may, and what comes back."""

    method: str
    path: str
    # None: open to everybody.
    role: UserRole | None
    handle: Handle
    summary: str = ""
    query: tuple[Parameter, ...] = ()
    # The schema of a JSON body; None where there is none.
    body: Schema | None = None
    needs_body: bool = False
    answers: Mapping[int, Schema] = field(default_factory=dict)
    # The type of what comes back when it goes well.
    media: str = "application/json"


class Site:
    """The entries of one prefix as an ASGI app, to be mounted."""

    def __init__(self, web: Web, entries: Sequence[Entry], ways: Sequence[Auth]) -> None:
        self.entries = tuple(entries)
        self._web = web
        self._ways = tuple(ways)
        self._table = [(entry, Route(entry.path, _unreachable, methods=[entry.method])) for entry in entries]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope, receive)
        response = await self._answer(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._handle(request)
        except Refusal as refusal:
            return answer_refusal(refusal)
        except DrumlineError as error:
            answer = answer_error(error)
            if answer.status == 503:
                logger.warning("%s %s: %s", request.method, self._place(request.scope), error)
            return answer_refusal(answer)

    async def _handle(self, request: Request) -> Response:
        entry, path, allowed = self._find(request.scope)
        check_origin(request)
        user = None
        # Whether a path exists is for those to know who may look.
        if entry is None or entry.role is not None:
            user = await admit(request, self._ways, UserRole.VIEWER if entry is None else entry.role or UserRole.VIEWER)
        if entry is None and allowed:
            raise Refusal(405, "not with this method", headers={"Allow": ", ".join(sorted(allowed))})
        if entry is None:
            raise Refusal(404, "there is nothing here")
        if kept := keep_private_address(request, self._ways):
            return kept
        body = b""
        if entry.method not in SAFE_METHODS:
            self._web.pace.check("unknown" if user is None else user.name)
            body = await read_body(request)
        return await entry.handle(Ask(self._web, request, user, path, body))

    def _place(self, scope: Scope) -> str:
        """The route, as `/track/{token}`: a path may hold what is nobody's business."""
        entry, _, _ = self._find(scope)
        return str(scope.get("root_path", "")) + ("" if entry is None else entry.path)

    def _find(self, scope: Scope) -> tuple[Entry | None, dict[str, str], set[str]]:
        allowed: set[str] = set()
        for entry, route in self._table:
            match, child = route.matches(scope)
            if match is Match.FULL:
                return entry, child["path_params"], set()
            if match is Match.PARTIAL:
                allowed |= route.methods or set()
        return None, {}, allowed


async def _unreachable(_request: Request) -> Response:
    raise NotImplementedError("a site calls its handlers itself")
