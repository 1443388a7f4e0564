"""What stands before every answer: who asks, from where, how much, how often; and the headers of each answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from drumline.web.access import Auth, PrivateAddress, User, UserRole, know
from drumline.web.answers import Refusal

__all__ = ["BODY_LIMIT", "HEADERS", "admit", "check_origin", "keep_private_address", "read_body"]

# Arguments may take 256 KiB; the rest is room for options.
BODY_LIMIT = 320 * 1024
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
CLOSED = "closed: give drum.install(app, auth=…) or drum.asgi(auth=…), or start `drumline web --dev`"
_NUMBER = re.compile(r"[0-9]{1,18}")


def check_origin(request: Request) -> None:
    """Refuse an unsafe request that a page of another origin may have caused. Programs send neither header."""
    if request.method in SAFE_METHODS:
        return
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        is_ours = site in ("same-origin", "none")
    else:
        origin = request.headers.get("origin")
        is_ours = origin is None or _is_same_host(origin, request.headers.get("host", ""))
    if not is_ours:
        raise Refusal(403, "refused: the request comes from a page of another origin")


async def admit(request: Request, ways: Sequence[Auth], needed: UserRole) -> User:
    """Who asks, if they may; else a Refusal: 403 while closed, 401 for nobody known, 403 for too little a role."""
    if not ways:
        raise Refusal(403, CLOSED)
    user = await know(ways, request)
    if user is None:
        challenges = ", ".join(way.challenge for way in ways if way.challenge)
        headers = {"WWW-Authenticate": challenges} if challenges else {}
        raise Refusal(401, "who asks is not known: send credentials", headers=headers)
    if not user.role.covers(needed):
        raise Refusal(403, f"this needs the role {needed}; {user.name} is {user.role}")
    return user


def keep_private_address(request: Request, ways: Sequence[Auth]) -> Response | None:
    """For the first visit by a private address: keep its token as a cookie, and go on without it in the address."""
    way = next((way for way in ways if isinstance(way, PrivateAddress)), None)
    if way is None or request.method != "GET" or way.parameter not in request.query_params:
        return None
    if not way.is_token(request.query_params[way.parameter]):
        return None
    response = RedirectResponse(str(request.url.remove_query_params(way.parameter)), 303)
    is_safe = request.url.scheme == "https"
    response.set_cookie(way.cookie, way.token, path="/", httponly=True, samesite="strict", secure=is_safe)
    return response


async def read_body(request: Request) -> bytes:
    """The body, if it is not too large; 413 as soon as it is."""
    too_large = Refusal(413, f"the body is too large: at most {BODY_LIMIT:,} bytes")
    announced = request.headers.get("content-length", "0")
    if not _NUMBER.fullmatch(announced) or int(announced) > BODY_LIMIT:
        raise too_large
    parts = bytearray()
    try:
        async for part in request.stream():
            parts += part
            if len(parts) > BODY_LIMIT:
                raise too_large
    except ClientDisconnect:
        raise Refusal(400, "the body did not come whole") from None
    return bytes(parts)


def _is_same_host(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host) and parts.netloc.lower() == host.lower()
