"""Measure one system, under the interpreter of its own environment.

    python -m benchmarks.peers.drive PART ADAPTER AMOUNT [PACKAGE …]    writes found.json into the measurement's folder
    python -m benchmarks.peers.drive work ADAPTER                       runs one worker
    python -m benchmarks.peers.drive stream ADAPTER RATE                enqueues so many jobs a second

A part is a module of `measures`.
"""

import json
import sys
from importlib import import_module
from importlib.metadata import version

import uvloop

from benchmarks.peers.adapter import Adapter
from benchmarks.peers.measures.half import stream
from benchmarks.peers.place import FOLDER


def main(part: str, module: str, amount: str = "", *packages: str) -> None:
    adapter: Adapter = import_module(module).Adapter()
    match part:
        case "work":
            adapter.work()
        case "stream":
            uvloop.run(stream(adapter, int(amount)))
        case _:
            found = uvloop.run(import_module(f"benchmarks.peers.measures.{part}").measure(adapter, int(amount)))
            versions = {package: version(package) for package in packages}
            (FOLDER / "found.json").write_text(json.dumps({"found": found, "versions": versions}))


if __name__ == "__main__":
    main(*sys.argv[1:])
