"""`drumline run`, `worker` and `scheduler`: a replica in a process of its own."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from drumline.cli.exits import Exit
from drumline.cli.options import App, AppArgument
from drumline.cli.web import Auth, Dev, Web, open_pages, serve_pages
from drumline.errors import BadOption

if TYPE_CHECKING:
    import socket

    from drumline import Drumline
    from drumline.model.replica import Role

__all__ = ["add_to", "start"]


logger = logging.getLogger("drumline")

Queues = Annotated[
    str | None,
    typer.Option(
        "--queues", metavar="A,B", help="Serve only these queues, the first one first, or by weight: A=4,B=2."
    ),
]
Concurrency = Annotated[int | None, typer.Option("--concurrency", min=1, help="The most jobs to run at once.")]
Processes = Annotated[
    int, typer.Option("--processes", min=1, help="So many processes of this command, each with its own slots.")
]
Drain = Annotated[bool, typer.Option("--drain", help="Stop when no job is left that it could run, now or later.")]


def add_to(app: typer.Typer) -> None:
    app.command("run")(run)
    app.command("worker")(work)
    app.command("scheduler")(fire)


def run(
    name: AppArgument = None,
    app: App = None,
    queues: Queues = None,
    concurrency: Concurrency = None,
    processes: Processes = 1,
    drain: Drain = False,
    web: Web = None,
    dev: Dev = False,
    auth: Auth = None,
) -> None:
    """Run jobs and fire schedules until stopped. Ctrl-C or SIGTERM drains, a second one hurries."""
    from drumline.model.replica import Role

    if web is None and (dev or auth is not None):
        raise BadOption("--web", "given with --dev or --auth", web)
    if processes > 1:
        if web is not None:
            raise BadOption("--processes", "1 with --web: an address is served by one process", processes)
        _start_many("run", name or app, processes, queues, concurrency, drain=drain)
    start(name or app, Role.COMBINED, queues, concurrency, drain=drain, web=web, dev=dev, auth=auth)


def work(
    name: AppArgument = None,
    app: App = None,
    queues: Queues = None,
    concurrency: Concurrency = None,
    processes: Processes = 1,
    drain: Drain = False,
) -> None:
    """Run jobs, and nothing else, until stopped. Ctrl-C or SIGTERM drains, a second one hurries."""
    from drumline.model.replica import Role

    if processes > 1:
        _start_many("worker", name or app, processes, queues, concurrency, drain=drain)
    start(name or app, Role.WORKER, queues, concurrency, drain=drain)


def fire(name: AppArgument = None, app: App = None) -> None:
    """Fire schedules, and run no job, until stopped by Ctrl-C or SIGTERM. Any number may run: each tick fires once."""
    from drumline.model.replica import Role

    start(name or app, Role.SCHEDULER, None, None, drain=False)


def start(
    name: str | None,
    role: Role,
    queues: str | None = None,
    concurrency: int | None = None,
    *,
    drain: bool = False,
    web: str | None = None,
    dev: bool = False,
    auth: str | None = None,
) -> None:
    """Be a replica of that role until stopped; with `web`, serve the pages at that address too."""
    from drumline.cli.app import load_app
    from drumline.engine.alone import run_alone
    from drumline.logs import set_up_logging

    # Until the worker listens, a polite end is the same as Ctrl-C: nothing has been claimed. A shell lets what it
    # starts in the background ignore Ctrl-C, and the polite end would be ignored with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    early = _EarlyEnd()
    signal.signal(signal.SIGTERM, early)
    try:
        drum = load_app(name)
        set_up_logging(drum.settings.log.level, drum.settings.log.format)
        options = {"queues": _read_queues(queues), "concurrency": concurrency, "drain": drain}
        pages = None if web is None else open_pages(web, auth, dev=dev)
        run_alone(_work(drum, role, pages, options, early))
    except KeyboardInterrupt:
        _heed_no_more_signals()
        logger.info("stopped before the first claim")


class _EarlyEnd:
    """What SIGTERM does before the worker listens: it interrupts once, and is remembered."""

    def __init__(self) -> None:
        self._is_asked = False

    def __call__(self, *_: object) -> None:
        # Asked again while it leaves, it is leaving already: that must not turn a polite end into a failure.
        if not self._is_asked:
            self._is_asked = True
            signal.raise_signal(signal.SIGINT)

    def check(self) -> None:
        """Leave now, if it was asked for: a module that is being imported may swallow an interruption."""
        if self._is_asked:
            raise KeyboardInterrupt


def _start_many(
    command: str, app: str | None, processes: int, queues: str | None, concurrency: int | None, *, drain: bool
) -> NoReturn:
    """Be the supervisor of so many replicas, until all have ended."""
    import os

    from drumline.cli.supervise import supervise
    from drumline.config import load_settings, replica_name
    from drumline.logs import set_up_logging

    # Nobody is asked to stop before there is anybody.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(Exit.DONE))
    _read_queues(queues)
    settings = load_settings().settings
    set_up_logging(settings.log.level, settings.log.format)
    given = {"--app": app, "--queues": queues, "--concurrency": concurrency}
    words = [word for option, value in given.items() if value is not None for word in (option, str(value))]
    drained = ["--drain"] if drain else []
    name = replica_name(settings, os.environ)
    raise typer.Exit(supervise([command, *words, *drained], processes, name, drain=drain))


def _read_queues(text: str | None) -> list[str] | None:
    from drumline.model.queues import read_queues

    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    read_queues(parts, "--queues")
    return parts


async def _work(
    drum: Drumline,
    role: Role,
    pages: tuple[socket.socket, Any] | None,
    options: Mapping[str, Any],
    early: _EarlyEnd,
) -> None:
    async with drum:
        early.check()
        logger.info(_describe(drum, role, options))
        if pages is None:
            await drum.run(role=role, **options)
        else:
            await serve_pages(drum, *pages, role, **options)
        _heed_no_more_signals()
        logger.info("stopped")


def _heed_no_more_signals() -> None:
    """All is written and given back: an impatient signal must not turn that into a failure."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def _describe(drum: Drumline, role: Role, options: Mapping[str, Any]) -> str:
    """What this replica serves, in one line."""
    from drumline.model.mask import mask_url
    from drumline.model.replica import Role

    settings = drum.settings
    where = mask_url(settings.store.url)
    if role is Role.WEB:
        return f"serving pages on {where}"
    if role is Role.SCHEDULER:
        return f"firing schedules, {len(drum.schedules)} of them declared here, on {where}"
    queues, concurrency = options["queues"], options["concurrency"]
    served = settings.worker.queues if queues is None else queues
    which = f"queues {', '.join(served)}" if served else "every queue"
    slots = settings.worker.concurrency if concurrency is None else concurrency
    return f"serving {len(drum.tasks)} tasks of {which} on {where}, {slots} at once"
