"""How the pages become part of a web program, or a program of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.middleware import Middleware

from drumline.errors import BadOption
from drumline.model.replica import Role
from drumline.web.access import Given
from drumline.web.background import EnqueueBackgroundTasks
from drumline.web.resident import read_role, reside
from drumline.web.sites import SiteMount, make_root_site, make_sites
from drumline.web.web import Owner, Web

if TYPE_CHECKING:
    from drumline.app import Drumline

__all__ = ["install", "make_app", "make_own_app"]


def install(
    drum: Drumline,
    app: Any,
    *,
    auth: Given,
    path: str | None,
    actuator: str | None,
    track: str | None,
    role: Role | str | None,
    owner: Owner | None = None,
) -> None:
    """Mount the pages in a FastAPI or Starlette app, and run that part of a replica while it lives."""
    if not isinstance(app, Starlette):
        expected = "a FastAPI or Starlette app; in one of another framework, mount drum.asgi(…)"
        raise BadOption("app", expected, type(app).__name__, "install")
    web = Web(drum, owner=owner)
    part = read_role(role)
    for prefix, site in make_sites(web, auth, path=path, actuator=actuator, track=track).items():
        app.router.routes.append(SiteMount(prefix, site))
    # The last of them is the innermost, next to the handlers.
    app.user_middleware.append(Middleware(EnqueueBackgroundTasks, drum=drum))
    own = app.router.lifespan_context

    # A mounted app's lifespan is never run, so the host's is wrapped: its resources open first, and close last.
    @asynccontextmanager
    async def lifespan(host: Any) -> AsyncIterator[Any]:
        async with own(host) as state, reside(web, part):
            yield state

    app.router.lifespan_context = lifespan


def make_app(
    drum: Drumline,
    *,
    auth: Given,
    path: str | None,
    actuator: str | None,
    track: str | None,
    role: Role | str | None,
    owner: Owner | None = None,
) -> Starlette:
    """The pages as an ASGI app. Its lifespan, if whoever mounts it runs that, runs that part of a replica."""
    web = Web(drum, owner=owner)
    sites = make_sites(web, auth, path=path, actuator=actuator, track=track)
    return _assemble(web, [SiteMount(prefix, site) for prefix, site in sites.items()], read_role(role))


def make_own_app(web: Web, auth: Given, *, path: str, actuator: str, track: str) -> Starlette:
    """The pages of a process that is ours alone: the words for its supervisor stand at the root too."""
    sites = make_sites(web, auth, path=path, actuator=actuator, track=track)
    mounts = [SiteMount(prefix, site) for prefix, site in sites.items()]
    return _assemble(web, [*mounts, SiteMount("/", make_root_site(web, auth))], None)


def _assemble(web: Web, routes: list[SiteMount], role: Role | None) -> Starlette:
    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        async with reside(web, role):
            yield

    return Starlette(routes=routes, lifespan=lifespan)
