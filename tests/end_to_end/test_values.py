"""Typed arguments and results, over processes that know nothing of each other but the file."""

import pytest

from tests.end_to_end.fleet import fleet
from tests.end_to_end.values import VALUES


@pytest.mark.timeout(120)
def test_values_arrive_as_annotated_and_come_back_typed_in_a_program_that_starts_later(tmp_path, home):
    with fleet(tmp_path, home, "tests.end_to_end.values:drum") as band:
        ids = band.program("tests.end_to_end.values", "enqueue").split()
        assert len(ids) == len(VALUES)
        assert band.start("--drain").wait(30) == 0
        assert {job.last_error for job in band.jobs()} == {None}
        assert band.program("tests.end_to_end.values", "check", *ids) == "all is well\n"
