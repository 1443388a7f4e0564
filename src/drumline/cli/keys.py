"""`drumline keys`: make a key for encryption at rest, and seal with the current key what older ones sealed."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import typer

from drumline.cli.exits import Exit
from drumline.cli.options import App, Json, Store
from drumline.cli.show import complain, say, show_json
from drumline.errors import BadSettings

if TYPE_CHECKING:
    from drumline.engine.rekey import Rekeyed

__all__ = ["app"]

app = typer.Typer(help="The keys of encryption at rest.", rich_markup_mode=None)


@app.callback()
def keys() -> None:
    """The keys of encryption at rest."""


@app.command("generate")
def generate() -> None:
    """Print a new key, for the setting encryption.key. Whoever loses it cannot read what it sealed."""
    from drumline.sealing import generate_key

    print(generate_key())


@app.command("rotate")
def rotate(as_json: Json = False, app: App = None, store: Store = None) -> None:
    """Seal with encryption.key the arguments of jobs and schedules that older keys sealed, or that are in clear.

    Workers may run meanwhile. Done and cancelled jobs, and results, keep their key.
    """
    so_far = asyncio.run(_rotate(app, store))
    if as_json:
        import msgspec

        show_json(msgspec.to_builtins(so_far))
    else:
        say(f"sealed anew: {so_far.jobs} jobs, {so_far.schedules} schedules; looked at {so_far.looked} jobs")
    for count, why in (
        (so_far.missing, "their key is not in encryption.older_keys"),
        (so_far.spoiled, "they are not what was written: changed, or moved there from elsewhere"),
        (so_far.changing, "others changed them each time: run this again"),
    ):
        if count:
            complain(f"not sealed anew: {count}; {why}")
    if so_far.left:
        raise typer.Exit(Exit.NO)


async def _rotate(app: str | None, store: str | None) -> Rekeyed:
    from drumline.cli.app import open_app
    from drumline.engine.rekey import rekey
    from drumline.stores.sealed import SealedStore

    async with open_app(app, store) as drum:
        opened = await drum.store()
        if not isinstance(opened, SealedStore):
            raise BadSettings("there is no key to seal with: set encryption.key (`drumline keys generate` makes one)")
        try:
            return await rekey(opened, _tell)
        finally:
            _write_over("")


def _tell(so_far: Rekeyed) -> None:
    """How far it has come, to a person who watches."""
    _write_over(f"looked at {so_far.looked:,} jobs, sealed anew {so_far.jobs:,}")


def _write_over(words: str) -> None:
    """Write over the line on which this was last said."""
    if sys.stderr.isatty():
        print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)
