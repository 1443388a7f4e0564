"""`drumline ledger`: what was decided about each tick, and whether all of it is there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from drumline.cli.exits import Exit
from drumline.cli.options import App, From, Json, Store, To, read_instants
from drumline.cli.show import complain, say, show_json, show_table

if TYPE_CHECKING:
    from drumline.cli.entries import Entry
    from drumline.policy.verify import Finding, Findings, Kind

__all__ = ["app"]

HEADERS = ("instant", "schedule", "decision", "by", "late", "ran", "outcome", "job", "reason")
# Of each kind of finding, so many examples.
EXAMPLES = 5


class Ledger(TyperGroup):
    """`drumline ledger NAME` lists: what is no command is the name of a schedule."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_chosen = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if is_chosen else ["list", *args])


app = typer.Typer(
    cls=Ledger, help="See what was decided about each tick; verify that none is missing.", rich_markup_mode=None
)

Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only of this schedule.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these schedules.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="At most so many.")]


@app.command("list")
def list_ticks(
    schedule: Name = None, limit: Limit = 50, as_json: Json = False, name: App = None, store: Store = None
) -> None:
    """List the ledger, newest recorded first: what was decided about each tick, why, by whom, and what came of it."""
    found = asyncio.run(_read(name, store, schedule, limit + 1))
    entries, more = found[:limit], len(found) > limit
    if as_json:
        show_json([row for entry in entries for row in entry.as_json()])
        return
    show_table(HEADERS, [entry.cells() for entry in entries])
    if more:
        complain(f"there are more: the newest {limit} are shown, --limit shows more")


@app.command("verify")
def verify_ledger(
    names: Names = None,
    start: From = None,
    end: To = None,
    as_json: Json = False,
    name: App = None,
    store: Store = None,
) -> None:
    """Work out again what should have fired, and tell what is missing, duplicate or late; exit code 1 if any is
    missing or duplicate."""
    first, last = read_instants(start, end)
    results = asyncio.run(_verify(name, store, names or (), first, last))
    if as_json:
        show_json(_results_json(results))
    else:
        _show_results(results)
    raise typer.Exit(Exit.DONE if all(result.is_sound for result in results) else Exit.NO)


async def _read(app: str | None, store: str | None, name: str | None, limit: int) -> list[Entry]:
    from drumline.cli.app import reach_schedules
    from drumline.cli.entries import read_entries
    from drumline.schedules import unknown_schedule

    async with reach_schedules(app, store) as (client, schedules):
        entries = await read_entries(client, schedules, name, limit)
        if not entries and name is not None and name not in schedules:
            raise unknown_schedule(name, schedules)
        return entries


async def _verify(
    app: str | None, store: str | None, names: Sequence[str], start: datetime | None, end: datetime | None
) -> list[Findings]:
    from drumline.cli.app import reach_schedules
    from drumline.cli.books import verify_all

    async with reach_schedules(app, store) as (client, schedules):
        return await verify_all(client, schedules, names, start, end)


def _results_json(results: Sequence[Findings]) -> dict[str, Any]:
    from drumline.policy.verify import Kind

    return {
        **{kind.value: _sum(results, kind) for kind in (Kind.MISSING, Kind.DUPLICATE, Kind.LATE)},
        "schedules": [
            {
                "schedule": result.schedule,
                "instants": result.expected,
                **{kind.value: result.count(kind) for kind in Kind if kind is not Kind.UNKNOWN},
                "found": [_finding_json(finding) for finding in result.found],
            }
            for result in results
        ],
    }


def _finding_json(finding: Finding) -> dict[str, Any]:
    from drumline.model.view import instant_text

    return {
        "kind": finding.kind.value,
        "from": instant_text(finding.first),
        "to": instant_text(finding.last),
        "count": finding.count,
        "replica": finding.replica or None,
        "job_ids": list(finding.jobs),
    }


def _show_results(results: Sequence[Findings]) -> None:
    from drumline.policy.verify import Kind

    judged = (Kind.MISSING, Kind.DUPLICATE, Kind.LATE)
    show_table(
        ("schedule", "instants", *judged),
        [(result.schedule, result.expected, *map(result.count, judged)) for result in results],
    )
    for result in results:
        for kind in Kind:
            found = [finding for finding in result.found if finding.kind is kind]
            for finding in found[:EXAMPLES]:
                say(f"{result.schedule}: {_sentence(finding)}")
            if len(found) > EXAMPLES:
                say(f"{result.schedule}: … {kind.value}: {len(found) - EXAMPLES} more of these, --json tells them all")
    say(", ".join(f"{kind.value} {_sum(results, kind)}" for kind in judged))


def _sentence(finding: Finding) -> str:
    from drumline.model.view import instant_text
    from drumline.policy.verify import Kind

    words = {
        Kind.PASSED_OVER: "passed over, as they were due when the rule ceased to hold",
        Kind.UNDECIDED: "due, and will be decided once a scheduler runs",
        Kind.UNKNOWN: "unknown: the ledger of that time has been purged",
    }
    first, last = instant_text(finding.first), instant_text(finding.last)
    when = first if first == last else f"{first} to {last}"
    number = "" if finding.count in (None, 1) else f", {finding.count} instants"
    whose = f" of {finding.replica}" if finding.replica else ""
    jobs = f": jobs {', '.join(finding.jobs)}" if finding.kind is Kind.DUPLICATE else ""
    return f"{words.get(finding.kind, finding.kind.value)}{whose}, {when}{number}{jobs}"


def _sum(results: Sequence[Findings], kind: Kind) -> int:
    return sum(result.count(kind) for result in results)
