"""The page `docs/benchmarks.md` and its charts, made of the last results of each store."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.chart import Bar, draw_chart
from benchmarks.peers.compare import (
    DRAIN,
    OUR_MEASURES,
    find_median,
    has_columns,
    lay_out,
    make_figures,
    make_gains,
    make_rows,
)
from benchmarks.peers.systems import OURS, STORES

RESULTS = Path(".bench-results")
PAGE = Path("docs/benchmarks.md")
CHARTS = Path("docs/pictures")

_HEAD = """# Beside other systems

One harness gives every system the same no-op job on the same machine in the same run, with one worker process. Every
job has run, and counts once; *extra runs* are those of jobs that had run already. Systems take turns round by round,
each on a new server of its own with durable settings; a cell is the median of the rounds with [least..most], and a
ratio is the median of the rounds' ratios. Two machines differ, and one machine differs from itself an hour later:
compare inside one table.

- *One by one*: one caller awaits each enqueue. *100 callers*: so many at once, where the client is asynchronous.
  *Bulk*: 1,000 jobs a call, where the system has such a call.
- *Drain*: from the first job's first line until the store holds nothing unfinished. *CPU* is that of the worker.
- *Pick-up*: from the call of enqueue to the first line of the job in a worker with nothing else to do, 200 jobs.
- *Half load*: the same while another process enqueues about half as many jobs a second as the worker drained in this
  round; *stream* is how many of those the worker started meanwhile. Where that is far less than half of the drain,
  enqueueing took what the drain had for itself, and the wait is that of a backlog.
- *Memory*: resident, of the worker and its children, after one job.

Of CPU, pick-up, half load and memory less is better, so a ratio below 1 is in our favour; of the others, one above 1.
Only ours is asked:

- *Schedules*: how late the jobs of 1,000 schedules start, which are due one after another, ten milliseconds apart.
- *Waiting*: what the store takes to claim and finish a job while so many wait; the median of 500 batches of 100.
- *At rest*: what a worker without work costs in 20 seconds; *calls* are transactions on Postgres, commands on Redis.

*Bare* loops are the least that a queue on the store can do: the engine of the store, batches, and nothing around
them. This page is written by `make bench ARGS=--page` from the last results of `make bench`.
"""
_NOTHING = "No results of a full run are kept here yet.\n"


def write_page() -> None:
    """Write the page and the charts anew from the results that are there."""
    results = [json.loads(path.read_text()) for store in STORES if (path := RESULTS / f"{store}.json").exists()]
    PAGE.write_text(make_page(results))
    for result in results:
        (CHARTS / name_chart(result)).write_text(make_chart(result))


def make_page(results: Sequence[dict[str, Any]]) -> str:
    """What the measures mean, then a section for each store."""
    return "\n".join([_HEAD, *(_section(result) for result in results)] if results else [_HEAD, _NOTHING])


def make_chart(result: dict[str, Any]) -> str:
    """The drain of every system on one store."""
    found = {name: find_median(rounds, DRAIN) for name, rounds in result["found"].items()}
    bars = [Bar(name, result["systems"][name]["kind"], rate) for name, rate in found.items() if rate is not None]
    return draw_chart(_title_chart(result), bars)


def name_chart(result: dict[str, Any]) -> str:
    return f"benchmarks-{result['store']}.svg"


def _title_chart(result: dict[str, Any]) -> str:
    return f"{result['title']}: jobs a second, drained by one worker process"


def keep(result: dict[str, Any]) -> Path:
    """Keep what was found on one store, for the page."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{result['store']}.json"
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    return path


def show(result: dict[str, Any]) -> str:
    """The tables of one store: all systems, what only ours is asked, and one of ours by another."""
    found, systems = result["found"], result["systems"]
    ours, peers = ([name for name in systems if systems[name]["kind"] == kind] for kind in ("ours", "peer"))
    bare = {name: system["beside"] for name, system in systems.items() if system["kind"] == "bare"}
    tables = [
        make_rows(found, OURS, bare, peers),
        make_figures(found, ours, OUR_MEASURES),
        make_gains(found, ours),
    ]
    return "\n\n".join(lay_out(table) for table in tables if has_columns(table))


def _section(result: dict[str, Any]) -> str:
    facts = [["", "versions", "settings", "what it keeps of a job", "jobs"]]
    for name, system in result["systems"].items():
        versions = ", ".join(f"{package} {version}" for package, version in system["versions"].items())
        facts.append([name, versions, system["settings"], system["keeps"], f"{system['jobs']:,}"])
    left_out = [f"Left out: {name}: {reason}" for name, reason in result["left_out"].items()]
    return "\n".join(
        [
            f"## {result['title']}",
            "",
            f"{result['date']}, {result['machine']}; {result['rounds']} rounds by",
            "",
            "```console",
            f"$ {result['command']}",
            "```",
            "",
            f"![{_title_chart(result)}]({CHARTS.name}/{name_chart(result)})",
            "",
            show(result),
            "",
            lay_out(facts),
            "",
            *(f"{line}\n" for line in left_out),
        ]
    )
