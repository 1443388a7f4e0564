"""`drumline chaos`: kill, freeze and cut off a fleet on your own store, and see whether every promise held."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from drumline.cli.exits import Exit

__all__ = ["add_to"]

Url = Annotated[
    str, typer.Option("--store", metavar="URL", help="Where to run: a database, server or file that you can spare.")
]
Namespace = Annotated[str, typer.Option("--namespace", help="Where in it: it must hold nothing, and is removed.")]
Minutes = Annotated[float, typer.Option("--minutes", min=0.1, help="How long faults come.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Repeat the plan of faults of an earlier run.")]
Workers = Annotated[int, typer.Option("--workers", min=2, help="How many worker processes.")]


def add_to(app: typer.Typer) -> None:
    app.command("chaos")(chaos)


def chaos(
    store: Url,
    namespace: Namespace = "drumline_chaos",
    minutes: Minutes = 2,
    seed: Seed = None,
    workers: Workers = 4,
) -> None:
    """Try the promises on your own store: worker processes are killed, frozen and cut off under load, and every job
    and tick is accounted for. Runs only in a namespace that holds nothing, and removes it. Exit code 1 if a promise
    was broken."""
    # Only now: the program and its parts need not be there for other commands.
    from drumline.chaos.ground import find_ground
    from drumline.chaos.run import Options, run_chaos

    ground = find_ground(store, namespace)
    options = Options(
        seed=secrets.randbelow(1_000_000) if seed is None else seed, seconds=60 * minutes, workers=workers
    )
    folder = Path(tempfile.mkdtemp(prefix="drumline-chaos-"))
    _tell(f"{options.seconds:g} s of faults by --seed {options.seed}, then rest; Ctrl-C ends it")
    report = run_chaos(ground, options, folder, _tell)
    for line in report.lines():
        _tell(line)
    if not report.is_sound:
        _tell(f"what the workers wrote and logged is kept in {folder}")
        raise typer.Exit(Exit.NO)
    shutil.rmtree(folder)


def _tell(line: str) -> None:
    print(line, flush=True)
