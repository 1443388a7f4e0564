"""The command itself: its groups, its version, and one sentence with an exit code for what a person can mend."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from drumline.cli import (
    bench,
    chaos,
    config,
    demo,
    doctor,
    enqueue,
    jobs,
    keys,
    ledger,
    migrate,
    queues,
    schedules,
    stats,
    tasks,
    top,
    web,
    work,
    workers,
)
from drumline.cli.exits import Exit, exit_of
from drumline.cli.show import complain
from drumline.errors import DrumlineError

__all__ = ["app", "main"]


class Root(TyperGroup):
    """Runs the chosen command, and turns errors into sentences and exit codes."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        del prog_name, standalone_mode, windows_expand_args
        # A terminal or pipe that knows few characters gets escapes for the others.
        for stream in (sys.stdout, sys.stderr):
            getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
        try:
            code = super().main(args, "drumline", complete_var, standalone_mode=False, **extra)
        except typer.TyperException as error:
            complain(_usage(error))
            code = Exit.USAGE
        except DrumlineError as error:
            complain(error)
            code = exit_of(error)
        sys.exit(int(code or Exit.DONE))

    def invoke(self, ctx: Any) -> Any:
        try:
            answer = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Whoever read the answer has seen enough. Python flushes once more at its end, and would complain then.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return Exit.DONE
        return answer


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "drumline"
    return f"{error.format_message().rstrip('.')}; {path} --help tells what it takes"


app = typer.Typer(
    cls=Root,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"drumline {version('drumline')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Background jobs and schedules for Python. Exit codes: 0 done, 1 the answer is no, 2 bad usage or settings,
    3 not found, 75 store out of reach."""
    del version
    if context.invoked_subcommand is None:
        print(context.get_help())


work.add_to(app)
web.add_to(app)
enqueue.add_to(app)
app.add_typer(jobs.app, name="jobs")
app.add_typer(schedules.app, name="schedules")
app.add_typer(ledger.app, name="ledger")
app.add_typer(queues.app, name="queues")
workers.add_to(app)
stats.add_to(app)
top.add_to(app)
tasks.add_to(app)
migrate.add_to(app)
doctor.add_to(app)
app.add_typer(config.app, name="config")
app.add_typer(keys.app, name="keys")
chaos.add_to(app)
bench.add_to(app)
demo.add_to(app)


def main() -> None:
    """The `drumline` program."""
    app()
