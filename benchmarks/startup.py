"""How long `drumline --help` takes beside a Python that does nothing: `python -m benchmarks.startup`.

Both are started in turn, so that whatever else the machine does slows both; the quickest of each counts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

LIMIT = 0.3
NOTHING = (sys.executable, "-c", "pass")
HELP = (sys.executable, "-c", "from drumline.cli import main; main()", "--help")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    times = [(_time(NOTHING), _time(HELP)) for _ in range(rounds)]
    nothing, helping = (min(column) for column in zip(*times, strict=True))
    more = helping - nothing
    print(f"python -c pass   {nothing * 1000:4.0f} ms")
    print(f"drumline --help  {helping * 1000:4.0f} ms, {more * 1000:.0f} ms more; at most {LIMIT * 1000:.0f}")
    return int(more >= LIMIT)


def _time(command: tuple[str, ...]) -> float:
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
