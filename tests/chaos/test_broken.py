"""A chaos run finds bugs: three stores that are broken on purpose, each found out, mostly by the first run."""

from pathlib import Path

import msgspec
import pytest

from drumline.chaos.check import Kind
from drumline.chaos.plan import Deed
from drumline.chaos.run import Options, run_chaos
from tests.chaos.broken import CHOICE
from tests.chaos.hosts import ROOT, SCENES

# What betrays each of them, at least.
BETRAYED_BY = {
    "no fence": Kind.STALE,
    "finish by id": Kind.STALE,
    "tick without ledger": Kind.TICK_DOUBLE,
}
STORES = ("redis", "postgres", "sqlite")
# Those that wake up late are who a fence and a ledger are for.
DEEDS = frozenset({Deed.FREEZE})


# One run finds it mostly; a machine may be so quick or so slow that nobody wakes up in the right moment.
TRIES = 6


@pytest.mark.crash
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "store"), [*zip(BETRAYED_BY, STORES, strict=True)])
def test_a_broken_store_is_found_out(name, store, tmp_path):
    assert any(BETRAYED_BY[name] in try_out(name, store, seed, tmp_path) for seed in range(1, TRIES + 1))


def try_out(name: str, store: str, seed: int, tmp_path: Path) -> set[Kind]:
    """The promises that the store is seen to break in a run of a few seconds."""
    folder = tmp_path / str(seed)
    folder.mkdir()
    with SCENES[store](folder) as scene:
        variables = {"PYTHONPATH": str(ROOT), CHOICE: name}
        around = msgspec.structs.replace(
            scene.around, module="tests.chaos.broken", variables=variables, skewed=None, deeds=DEEDS
        )
        options = Options(seed=seed, seconds=8, workers=2)
        report = run_chaos(scene.ground, options, folder, print, around)
    return {violation.kind for violation in report.violations}
