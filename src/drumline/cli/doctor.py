"""`drumline doctor`: is the store what it should be, and is the fleet well?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from drumline.cli.exits import Exit
from drumline.cli.options import App, Json, Store
from drumline.cli.show import say, show_json

if TYPE_CHECKING:
    from drumline.clock import Clock
    from drumline.model.finding import Finding
    from drumline.stores.base import Store as OpenStore

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(as_json: Json = False, name: App = None, store: Store = None) -> None:
    """Look whether the store is durable and current and the fleet is well; say what is not, why it matters, what to do.

    Exit codes: 0 nothing is wrong, with or without advice; 1 something is; 75 the store is out of reach.
    """
    import msgspec

    from drumline.model.finding import Level

    findings = asyncio.run(_examine(name, store))
    if as_json:
        show_json([msgspec.to_builtins(finding) for finding in findings])
    else:
        _show(findings)
    if any(finding.level is Level.WRONG for finding in findings):
        raise typer.Exit(Exit.NO)


async def _examine(app: str | None, url: str | None) -> list[Finding]:
    """All checks; those that need the schema only where it can be used."""
    from drumline.cli.app import open_app
    from drumline.clock import SystemClock
    from drumline.errors import SchemaMismatch, StoreUnreachable, StoreUnusable
    from drumline.model.finding import Finding, Level
    from drumline.model.mask import mask_url
    from drumline.policy.durability import check_durability

    drum = open_app(app, url)
    # As it is: whether it is migrated is one of the questions.
    store = drum.store_as_it_is()
    findings: list[Finding] = []
    try:
        findings += check_durability(store.kind, await store.inspect())
        findings += await _read_fleet(store, mask_url(drum.settings.store.url), SystemClock())
    except StoreUnreachable:
        raise
    except SchemaMismatch as error:
        why = "this version cannot use it"
        findings.append(Finding("schema", Level.WRONG, str(error), why, "use the version of Drumline that made it"))
    except StoreUnusable as error:
        # Mostly because of what was found already.
        if all(finding.level is not Level.WRONG for finding in findings):
            findings.append(Finding("store", Level.WRONG, str(error), "no job can be enqueued or run", "mend that"))
    finally:
        await store.close()
    return findings


async def _read_fleet(store: OpenStore, where: str, clock: Clock) -> list[Finding]:
    from drumline.model.query import PauseKind
    from drumline.policy import diagnosis

    schema = diagnosis.check_schema(pending := await store.pending())
    if pending:
        return [schema]
    counts, replicas, statuses = await store.counts(), await store.workers(), await store.schedules()
    paused = await store.paused(PauseKind.QUEUE)
    # After the first question, whose answer takes as long as it takes to connect.
    before = clock.now()
    now = await store.now()
    after = clock.now()
    return [
        schema,
        diagnosis.check_reach(where, after - before),
        diagnosis.check_clock(now - (before + (after - before) / 2), after - before),
        *diagnosis.check_queues(counts, replicas, paused, now),
        *diagnosis.check_schedules(statuses, replicas, now),
        *diagnosis.check_replicas(replicas),
    ]


def _show(findings: list[Finding]) -> None:
    from drumline.model.finding import Level

    for finding in findings:
        say(f"{finding.level:<7} {finding.check}: {finding.found}")
        if finding.level is not Level.OK:
            say(f"        why: {finding.why}")
            say(f"        do:  {finding.do}")
    wrong, advice = (sum(finding.level is level for finding in findings) for level in (Level.WRONG, Level.ADVICE))
    say(f"{wrong} wrong, {advice} advice")
