"""The pages of a process that is ours alone: one web server, one worker, one owner of the signals."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn

from drumline.engine.signals import Signals
from drumline.errors import BadOption, BadSettings
from drumline.web.access import Given, PrivateAddress
from drumline.web.install import make_own_app
from drumline.web.web import Web

if TYPE_CHECKING:
    from drumline.app import Drumline

__all__ = ["PATH", "open_socket", "read_address", "serve", "visit_address"]

PATH, ACTUATOR, TRACK = "/admin/jobs", "/actuator", "/track"
# How long a request that is under way may take to end, once the worker has.
LAST_ANSWERS = 3
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+):(?P<port>\d{1,5})")


class _Server(uvicorn.Server):
    """A server that leaves signals alone: they drain the worker first, and the pages stay up until that is done."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def read_address(text: str) -> tuple[str, int]:
    """Host and port of `127.0.0.1:8000`."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise BadOption("--web", "an address such as 127.0.0.1:8000", text)
    return match["host"].strip("[]"), int(match["port"])


def open_socket(host: str, port: int) -> socket.socket:
    """The open door, before anything else is begun; BadSettings if it cannot be had."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadSettings(f"cannot listen on {host}:{port}: {error.strerror or error}") from error


def visit_address(door: socket.socket, auth: Given) -> str:
    """Where a browser finds the pages; with the token, if the address is private."""
    host, port = door.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    token = f"?{auth.parameter}={auth.token}" if isinstance(auth, PrivateAddress) else ""
    return f"http://{shown}:{port}{PATH}/{token}"


async def serve(
    drum: Drumline, door: socket.socket, auth: Given, work: Callable[[asyncio.Event], Awaitable[Any]]
) -> None:
    """Serve the pages, and do the work, which is given the event that asks it to stop, until it ends.

    SIGTERM or SIGINT asks; a second one hurries.
    """
    web = Web(drum)
    web.expects_worker = True
    app = make_own_app(web, auth, path=PATH, actuator=ACTUATOR, track=TRACK)
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=LAST_ANSWERS)
    server = _Server(config)
    leaving = asyncio.Event()

    def stop() -> None:
        if leaving.is_set():
            for worker in drum.running_here:
                worker.stop()
        leaving.set()

    with Signals(stop):
        serving = asyncio.ensure_future(server.serve(sockets=[door]))
        # A server that has failed takes the worker with it: whoever supervises this process starts it anew.
        serving.add_done_callback(lambda _: leaving.set())
        try:
            await work(leaving)
        finally:
            await web.close()
            server.should_exit = True
            await serving
