"""`make bench`: Drumline, the bare engine loops and the peers in one run; medians, ratios, JSON, a page of the docs."""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import parts
from benchmarks.peers.page import PAGE, keep, show, write_page
from benchmarks.peers.run import Plan, compare
from benchmarks.peers.systems import PARTS, STORES, SYSTEMS, System
from drumline.stores.sqlite.connect import Synchronous


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--store", choices=STORES, action="append", help="only this store; may be repeated")
    parser.add_argument("--peer", metavar="NAME", action="append", help="only this peer, or none; may be repeated")
    parser.add_argument("--jobs", type=int, default=50_000, help="at most; slow systems are given fewer")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--most-waiting", type=int, default=1_000_000, help="at most so many wait for the cost of a claim"
    )
    parser.add_argument("--measure", choices=PARTS, action="append", help="only this besides the load; may be repeated")
    parser.add_argument("--page", action="store_true", help=f"only write {PAGE} from the last results")
    parser.add_argument(
        "--parts",
        nargs="?",
        choices=("full", "normal"),
        const="full",
        help="only what each job costs on SQLite, by part",
    )
    given = parser.parse_args()
    if given.page:
        write_page()
        return
    if given.parts:
        show_parts(given.parts, given.jobs)
        return
    plan = Plan(given.jobs, given.rounds, given.most_waiting, {"load", *(given.measure or PARTS)})
    for store in given.store or STORES:
        systems = [system for system in SYSTEMS if system.store == store and is_asked(system, given.peer)]
        result = compare(store, systems, plan)
        print(f"\n{result['title']}\n{show(result)}\n{keep(result)}\n", flush=True)


def is_asked(system: System, peers: Sequence[str] | None) -> bool:
    """A peer is by the name before a comma, which tells one setting of it from another; the others always are."""
    if system.kind != "peer" or peers is None:
        return True
    return system.name.partition(",")[0].lower() in {peer.lower() for peer in peers}


def show_parts(synchronous: Synchronous, jobs: int) -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        parts.show(Path(folder) / "bench.db", synchronous, jobs)


if __name__ == "__main__":
    main()
