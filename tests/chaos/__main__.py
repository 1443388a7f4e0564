"""`make chaos`: a chaos run on each store, on servers of its own that are killed too.

STORE=sqlite,postgres,redis   MINUTES=2 on each   SEED=number replays the plan of faults of an earlier run
"""

import os
import secrets
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

from drumline.chaos.run import Options, run_chaos
from tests.chaos.hosts import SCENES

tell = partial(print, flush=True)


def main() -> int:
    stores = os.environ.get("STORE") or ",".join(SCENES)
    seconds = 60 * float(os.environ.get("MINUTES") or 2)
    seed = int(os.environ.get("SEED") or secrets.randbelow(1_000_000))
    verdicts = {store: run(store.strip(), Options(seed=seed, seconds=seconds)) for store in stores.split(",")}
    return 0 if all(verdicts.values()) else 1


def run(store: str, options: Options) -> bool:
    tell(f"{store}: {options.seconds:g} s of faults, SEED={options.seed}")
    folder = Path(tempfile.mkdtemp(prefix="drumline-chaos-"))
    with SCENES[store](folder) as scene:
        report = run_chaos(scene.ground, options, folder, tell, scene.around)
    tell("\n".join([f"{store}:", *report.lines()]))
    if report.is_sound:
        shutil.rmtree(folder)
    else:
        tell(f"the ledger and the workers' log are in {folder}")
    return report.is_sound


if __name__ == "__main__":
    sys.exit(main())
