"""`drumline demo`: a small shop at work with its dashboard, on a SQLite file in a temporary folder."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from drumline.engine.alone import run_alone

__all__ = ["add_to"]

Seconds = Annotated[float | None, typer.Option("--seconds", min=0.1, help="End by itself after so long.")]

Bind = Annotated[str, typer.Option("--web", metavar="HOST:PORT", help="Where to serve the dashboard.")]


def add_to(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(seconds: Seconds = None, bind: Bind = "127.0.0.1:8800") -> None:
    """See it work: a small shop with orders, mails, a report, failures and retries. Ctrl-C ends it."""
    with tempfile.TemporaryDirectory(prefix="drumline-demo-") as folder:
        os.environ["DRUMLINE_DEMO_STORE"] = f"sqlite:///{Path(folder) / 'shop.db'}"
        # Only now: the shop's module opens its store by that variable, as any program would by its settings.
        from drumline.cli.console import Paper
        from drumline.demo.stage import perform

        try:
            run_alone(perform(seconds, bind, Paper()))
        except KeyboardInterrupt:
            # Before the worker listened, or after it had stopped.
            return
