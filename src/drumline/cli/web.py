"""`drumline web`: the pages in a process of their own; and what `--web`, `--dev` and `--auth` mean elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from drumline.cli.options import App, AppArgument
from drumline.cli.show import say
from drumline.errors import BadOption, BadSettings

if TYPE_CHECKING:
    import socket

    from drumline.app import Drumline
    from drumline.model.replica import Role

__all__ = ["Auth", "Dev", "Web", "add_to", "open_pages", "serve_pages"]

Web = Annotated[str | None, typer.Option("--web", metavar="HOST:PORT", help="Serve the pages there too.")]
Bind = Annotated[str, typer.Option("--web", metavar="HOST:PORT", help="Where to serve the pages.")]
Dev = Annotated[bool, typer.Option("--dev", help="Print a private address, good as long as this process runs.")]
Auth = Annotated[
    str | None, typer.Option("--auth", metavar="MODULE:ATTRIBUTE", help="Who may come in, as auth= of drum.install.")
]
HashPassword = Annotated[bool, typer.Option("--hash-password", help="Ask for a password, print its hash, and end.")]


def add_to(app: typer.Typer) -> None:
    app.command("web")(web)


def web(
    name: AppArgument = None,
    app: App = None,
    bind: Bind = "127.0.0.1:8000",
    dev: Dev = False,
    auth: Auth = None,
    hash_password: HashPassword = False,
) -> None:
    """Serve the dashboard, the API and the actuator, and run no jobs but this replica's own."""
    from drumline.cli.work import start
    from drumline.model.replica import Role

    if hash_password:
        _print_hash()
        return
    start(name or app, Role.WEB, web=bind, dev=dev, auth=auth)


def open_pages(bind: str, auth: str | None, *, dev: bool) -> tuple[socket.socket, Any]:
    """The open door, and who may come in by it; says where it is."""
    from drumline.cli.app import load_attribute

    try:
        from drumline.web.access import PrivateAddress, read_auth
        from drumline.web.serve import open_socket, read_address, visit_address
    except ModuleNotFoundError as error:
        raise BadSettings(f"the pages need the package {error.name}: pip install 'drumline[web]'") from error
    if dev and auth is not None:
        raise BadOption("--dev", "left out where --auth is given", "both")
    way = PrivateAddress() if dev else None if auth is None else load_attribute(auth, "auth")
    read_auth(way)
    door = open_socket(*read_address(bind))
    closed = "" if way is not None else "  (closed: give --auth MODULE:ATTRIBUTE, or --dev)"
    say(f"pages at {visit_address(door, way)}{closed}")
    return door, way


async def serve_pages(drum: Drumline, door: socket.socket, auth: Any, role: Role, **options: Any) -> None:
    """Run that part of a replica beside the pages, until it is asked to stop."""
    from drumline.web.serve import serve

    await serve(drum, door, auth, lambda leaving: drum.run(role=role, until=leaving, **options))


def _print_hash() -> None:
    from drumline.web.passwords import hash_password

    say(hash_password(typer.prompt("password", hide_input=True, confirmation_prompt=True, err=True)))
