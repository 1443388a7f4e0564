"""A chaos run finds bugs: three stores that are broken on purpose, each found out within a minute."""

import time

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


@pytest.mark.crash
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("name", "store"), [*zip(BETRAYED_BY, STORES, strict=True)])
def test_a_broken_store_is_found_out_within_a_minute(name, store, tmp_path):
    began = time.monotonic()
    with SCENES[store](tmp_path) as scene:
        variables = {"PYTHONPATH": str(ROOT), CHOICE: name}
        around = msgspec.structs.replace(
            scene.around, module="tests.chaos.broken", variables=variables, skewed=None, deeds=DEEDS
        )
        options = Options(seed=1, seconds=8, workers=2)
        report = run_chaos(scene.ground, options, tmp_path, print, around)
    assert BETRAYED_BY[name] in {violation.kind for violation in report.violations}
    assert time.monotonic() - began < 60
