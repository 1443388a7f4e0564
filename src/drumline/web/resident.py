"""A worker that lives in a web program: begun when the program has started, drained before it shuts down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from drumline.errors import BadOption, StoreError
from drumline.model.replica import Role
from drumline.web.overhear import overhearing

if TYPE_CHECKING:
    from drumline.web.web import Web

__all__ = ["read_role", "reside"]

logger = logging.getLogger("drumline.web")

# How long to wait before the next try, when the store was out of reach at the start.
AGAIN = 1.0


def read_role(given: Role | str | None) -> Role | None:
    """Which parts of a replica to run beside the pages; None: only the pages."""
    if given is None:
        return None
    if given not in list(Role):
        raise BadOption("role", f"one of {', '.join(Role)}, or None for pages alone", given, "install")
    return Role(given)


@asynccontextmanager
async def reside(web: Web, role: Role | None) -> AsyncIterator[None]:
    """Run that part of a replica while the context is open.

    Signals are the web server's; but most servers wait for open streams to end before they tell a program to shut down.
    So a signal is overheard: streams end, nothing more is claimed, and a second one hurries.
    """
    leaving = asyncio.Event()

    def leave() -> None:
        if leaving.is_set():
            for worker in web.drum.running_here:
                worker.stop()
        leaving.set()
        web.begin_to_leave()

    web.expects_worker = role is not None
    work = None if role is None else asyncio.create_task(_work(web, role, leaving))
    try:
        with overhearing(leave):
            yield
    finally:
        await web.close()
        leaving.set()
        if work is not None:
            await work


async def _work(web: Web, role: Role, leaving: asyncio.Event) -> None:
    while not leaving.is_set():
        try:
            await web.drum.run(role=role, until=leaving)
        except StoreError as error:
            # The program's own pages shall not go down with the store.
            logger.warning("the worker could not start: %s; again in %g s", error, AGAIN)
            await web.clock.wait(leaving, AGAIN)
        except Exception:
            logger.exception("the worker ended; again in %g s", AGAIN)
            await web.clock.wait(leaving, AGAIN)
