"""A short chaos run on every store, on servers of its own; `make chaos` runs longer ones."""

import pytest

from drumline.chaos.run import Options, run_chaos
from tests.chaos.hosts import SCENES

SECONDS = 20.0


@pytest.mark.timeout(240)
@pytest.mark.parametrize("store", SCENES)
def test_a_fleet_that_is_killed_frozen_and_cut_off_keeps_every_promise(store, tmp_path):
    told: list[str] = []
    with SCENES[store](tmp_path) as scene:
        report = run_chaos(
            scene.ground, Options(seed=20, seconds=SECONDS, workers=3), tmp_path, told.append, scene.around
        )
        assert scene.ground.find_content() is None
    words = "\n".join([*told, *report.lines()])
    assert report.violations == [], words
    assert report.jobs > 500, words
    assert report.ticks > 20, words
    assert report.tale.zombies, words
    assert report.rescues, words
