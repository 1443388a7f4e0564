import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.support.broken import BROKEN
from tests.support.makers import CHOICE

ROOT = Path(__file__).parents[2]
SUITE = Path(__file__).parent.relative_to(ROOT)
DEADLINE = 55

EXAMPLES = ("test_finish.py", "test_expired.py")
RACES = (
    "test_races.py::test_eight_claimers_drain_two_thousand_jobs_each_exactly_once",
    "test_races.py::test_of_many_finishers_of_one_claim_one_is_accepted",
)
MODEL = ("test_model.py",)

# By which part of the suite each broken store has to be caught, and by which test among others.
CAUGHT = [
    ("finish-without-fence", EXAMPLES, "test_a_claim_that_was_taken_over_can_no_longer_be_finished"),
    ("finish-without-fence", MODEL, "test_any_sequence_of_steps_shows_the_same_as_on_the_reference_model"),
    ("claim-without-lock", RACES, "test_eight_claimers_drain_two_thousand_jobs_each_exactly_once"),
    ("finish-by-id", EXAMPLES, "test_a_rival_under_the_same_fence_is_refused"),
    ("finish-by-id", RACES, "test_of_many_finishers_of_one_claim_one_is_accepted"),
    ("finish-by-id", MODEL, "test_any_sequence_of_steps_shows_the_same_as_on_the_reference_model"),
]


def run_suite(store: str, part: tuple[str, ...], report: Path) -> tuple[set[str], set[str]]:
    """Run a part of this very suite on the named store; which tests passed, and which failed."""
    flags = ["-q", "-m", "not prove", "-p", "no:cacheprovider", f"--junitxml={report}", "--hypothesis-profile=first"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *flags, *(str(SUITE / name) for name in part)],
        cwd=ROOT,
        env={**os.environ, CHOICE: store, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    # 0: all passed, 1: some failed. Anything else means that the suite did not run.
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    passed: set[str] = set()
    failed: set[str] = set()
    for case in ET.parse(report).getroot().iter("testcase"):
        assert case.find("error") is None, ended.stdout
        # A test of several cases has failed if one of them has.
        (passed if case.find("failure") is None else failed).add(case.attrib["name"].partition("[")[0])
    return passed - failed, failed


@pytest.mark.parametrize(("store", "part", "test"), CAUGHT, ids=[f"{store} by {test}" for store, _, test in CAUGHT])
def test_a_broken_store_fails_the_suite(store, part, test, tmp_path):
    _, failed = run_suite(store, part, tmp_path / "report.xml")
    assert test in failed


def test_every_broken_store_is_caught():
    assert {store for store, _, _ in CAUGHT} == set(BROKEN)


def test_the_store_that_they_are_made_of_passes_the_same_tests(tmp_path):
    passed, failed = run_suite("memory", (*EXAMPLES, *RACES, *MODEL), tmp_path / "report.xml")
    assert failed == set()
    assert {test for _, _, test in CAUGHT} <= passed
