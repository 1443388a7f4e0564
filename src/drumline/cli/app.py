"""Finding the app, and opening its store, for one command."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from drumline.errors import BadSettings
from drumline.loading import load_module

if TYPE_CHECKING:
    from drumline import Drumline
    from drumline.client import Client
    from drumline.schedules import Schedules

__all__ = ["load_app", "load_attribute", "open_app", "reach", "reach_schedules"]

_HOW = "name it as module:attribute, such as shop.jobs:drum, with --app or DRUMLINE_APP"


def load_app(name: str | None) -> Drumline:
    """The app of that name, else the one that the settings name; BadSettings if it cannot be had."""
    from drumline import Drumline

    chosen = name or _app_of_settings()
    if chosen is None:
        raise BadSettings(f"no app is named: {_HOW}")
    found = load_attribute(chosen, "app", _HOW, _suggest)
    if not isinstance(found, Drumline):
        raise BadSettings(f"app {chosen!r} is a {type(found).__name__}, not a Drumline")
    return found


def load_attribute(
    chosen: str, what: str, how: str = "name it as module:attribute", suggest: Callable[[Any], str] = lambda _: ""
) -> Any:
    """What `module:attribute` names; BadSettings if it cannot be had."""
    module_name, colon, attribute = chosen.partition(":")
    if not (module_name and colon and attribute):
        raise BadSettings(f"{what} {chosen!r} is not understood: {how}")
    found: Any = _import(module_name, f"{what} {chosen!r}")
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise BadSettings(f"{what} {chosen!r}: module {module_name} has no {attribute}{suggest(found)}")
        found = getattr(found, part)
    return found


def open_app(app: str | None, store: str | None) -> Drumline:
    """For a command that needs no code: the store alone, or the app that is named, or what the settings say."""
    from drumline import Drumline

    if app is not None and store is not None:
        raise BadSettings("give --app or --store, not both: the app names its own store")
    if store is not None:
        return Drumline(store)
    return load_app(app) if _has_app(app, store) else Drumline()


@asynccontextmanager
async def reach(app: str | None, store: str | None) -> AsyncIterator[Client]:
    """A client of the store, open while the context is; what it does stands in the audit as done by the cli."""
    from drumline.client import Client
    from drumline.clock import SystemClock

    async with open_app(app, store) as drum:
        yield Client(drum.store, clock=SystemClock(), decode_result=lambda job: job.result, via="cli")


@asynccontextmanager
async def reach_schedules(app: str | None, store: str | None) -> AsyncIterator[tuple[Client, Schedules]]:
    """A client, and the schedules as they are now: all that the store holds, and of the app those that it does not."""
    from drumline.client import Client
    from drumline.clock import SystemClock
    from drumline.engine.board import Board
    from drumline.policy.call import NO_CHOICE
    from drumline.schedules import Schedules

    async with open_app(app, store) as drum:
        clock = SystemClock()
        client = Client(drum.store, clock=clock, decode_result=lambda job: job.result, via="cli")
        board = Board(clock)
        if not _has_app(app, store):
            # Without an app nothing is declared: the modules that the settings name need not even be here.
            alone = Schedules(
                client,
                board,
                find_task=lambda name: (drum.find_task(name).definition, NO_CHOICE),
                adapt=lambda one: one,
            )
            yield client, await alone.refresh()
            return
        schedules = await drum.schedules.through(client, board).refresh()
        # A command is no replica: what the app declares here is orphaned all the same if no replica declares it.
        declared = {name: view.definition for name, view in drum.schedules.items()}
        board.declared = {name: value for name, value in declared.items() if name not in board.statuses}
        yield client, schedules


def _has_app(app: str | None, store: str | None) -> bool:
    return store is None and bool(app or _app_of_settings())


def _app_of_settings() -> str | None:
    from drumline.config import load_settings

    return load_settings().settings.app


def _import(module_name: str, which: str) -> ModuleType:
    # A program that is installed has its own folder first; the person means the one they are in.
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return load_module(module_name, which)


def _suggest(module: Any) -> str:
    from drumline import Drumline

    apps = [name for name, value in vars(module).items() if isinstance(value, Drumline)]
    return f"; it has {', '.join(apps)}" if apps else ", nor any Drumline"
