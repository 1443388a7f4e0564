"""`drumline migrate`: bring the store's schema to this version."""

from __future__ import annotations

import asyncio

import typer

from drumline.cli.options import App, Store
from drumline.cli.show import say

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    app.command("migrate")(migrate)


def migrate(app: App = None, store: Store = None) -> None:
    """Bring the store's schema to this version. Safe to repeat, and for many processes at once."""
    say(asyncio.run(_migrate(app, store)))


async def _migrate(app: str | None, store: str | None) -> str:
    from drumline.cli.app import open_app
    from drumline.model.mask import mask_url

    drum = open_app(app, store)
    async with drum:
        # Also where auto_migrate is off: this command is how it is done then.
        await (await drum.store()).migrate()
    return f"{mask_url(drum.settings.store.url)}: the schema is that of this version"
