"""`drumline migrate`: bring the store's schema to this version, or tell what that takes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from drumline.cli.exits import Exit
from drumline.cli.options import App, Json, Store, read_duration
from drumline.cli.progress import Advance, show_progress
from drumline.cli.show import complain, say, show_json
from drumline.errors import BadSettings, StoreUnreachable

if TYPE_CHECKING:
    from drumline.model.schema import Pending
    from drumline.stores.base import Store as OpenStore

__all__ = ["add_to"]

Check = Annotated[bool, typer.Option("--check", help="Change nothing; exit with 1 if something is missing.")]
Sql = Annotated[bool, typer.Option("--sql", help="Change nothing; print the statements that are missing.")]
Wait = Annotated[
    str | None,
    typer.Option(
        "--wait",
        metavar="DURATION",
        help="Keep trying for so long while the store is out of reach; with --check, until somebody has migrated it.",
    ),
]

_BETWEEN_TRIES = 0.5


def add_to(app: typer.Typer) -> None:
    app.command("migrate")(migrate)


def migrate(
    check: Check = False,
    sql: Sql = False,
    wait: Wait = None,
    as_json: Json = False,
    app: App = None,
    store: Store = None,
) -> None:
    """Bring the store's schema to this version. Safe to repeat, and for many processes at once."""
    if check and sql:
        raise BadSettings("give --check or --sql, not both")
    if as_json and not check:
        raise BadSettings("give --json with --check: the rest is not a read")
    asyncio.run(_migrate(app, store, _read_wait(wait), check=check, sql=sql, as_json=as_json))


def _read_wait(wait: str | None) -> float:
    from drumline.model.instant import parse_duration

    return 0.0 if wait is None else parse_duration(read_duration(wait), "--wait").total_seconds()


async def _migrate(
    app: str | None, store: str | None, patience: float, *, check: bool, sql: bool, as_json: bool
) -> None:
    from drumline.cli.app import open_app
    from drumline.model.mask import mask_url

    drum = open_app(app, store)
    # Opened, and not brought to this version on the way: whether that is done is what was asked.
    opened = drum.store_as_it_is()
    where = mask_url(drum.settings.store.url)
    try:
        if not check and not sql:
            with show_progress("migrations") as advance:
                await _within(patience, opened, advance)
            say(f"{where}: the schema is that of this version")
            return
        pending = await _find_pending(opened, patience, until_done=check)
    finally:
        await opened.close()
    if sql:
        _show_sql(pending, where)
        return
    if as_json:
        show_json([{"version": one.version, "name": one.name} for one in pending])
    elif pending:
        missing = ", ".join(f"{one.version} ({one.name})" for one in pending)
        complain(f"{where}: not yet migrated, missing: {missing}")
    else:
        say(f"{where}: nothing is missing")
    if pending:
        raise typer.Exit(Exit.NO)


async def _within(patience: float, store: OpenStore, advance: Advance) -> None:
    """Migrate; again and again for so many seconds, while the store is out of reach."""
    end = asyncio.get_running_loop().time() + patience
    while True:
        try:
            missing = len(await store.pending())
            advance(0, missing)
            await store.migrate()
            advance(missing, missing)
            return
        except StoreUnreachable:
            if asyncio.get_running_loop().time() >= end:
                raise
        await asyncio.sleep(_BETWEEN_TRIES)


async def _find_pending(store: OpenStore, patience: float, *, until_done: bool) -> list[Pending]:
    """What is missing; after at most so many seconds, while the store is out of reach or something still is."""
    end = asyncio.get_running_loop().time() + patience
    while True:
        is_over = asyncio.get_running_loop().time() >= end
        try:
            pending = await store.pending()
        except StoreUnreachable:
            if is_over:
                raise
        else:
            if is_over or not pending or not until_done:
                return pending
        await asyncio.sleep(_BETWEEN_TRIES)


def _show_sql(pending: list[Pending], where: str) -> None:
    if not all(one.sql for one in pending):
        raise BadSettings(f"--sql: {where} has no SQL: run `drumline migrate`")
    if not pending:
        return
    typer.echo("begin;\n")
    for one in pending:
        typer.echo(f"-- Migration {one.version}: {one.name}.\n\n{one.sql}\n")
    typer.echo("commit;")
