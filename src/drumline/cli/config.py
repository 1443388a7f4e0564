"""`drumline config`: the settings as they are, and where each came from."""

from __future__ import annotations

import typer

from drumline.cli.options import App, Json, Store
from drumline.cli.show import complain, show_json, show_table

__all__ = ["app"]

app = typer.Typer(help="The settings.", rich_markup_mode=None)


@app.callback()
def config() -> None:
    """The settings."""


@app.command("show")
def show(as_json: Json = False, name: App = None, store: Store = None) -> None:
    """Show every setting with its value, secrets masked, and where it came from."""
    from drumline.cli.app import open_app

    configuration = open_app(name, store).configuration
    rows = configuration.rows()
    if as_json:
        show_json([{"key": key, "value": value, "origin": origin} for key, value, origin in rows])
        return
    show_table(("key", "value", "origin"), rows)
    for note in configuration.notes:
        complain(note)
