from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drumline.errors import BadOption
from drumline.model.job import (
    ENDED,
    UNFINISHED,
    WAITING,
    Attempt,
    Failure,
    Job,
    JobState,
    Key,
    KeyWindow,
    NewJob,
    Progress,
)
from drumline.model.options import JobOptions
from tests.support.build import numbered_id

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def closed(number: int, error: Failure | None = None) -> Attempt:
    return Attempt(number, number, "r1:1", "r1:1", NOW, NOW, "failed" if error else "done", error)


def stored(*attempts: Attempt) -> Job:
    return Job(
        id=numbered_id(1),
        task="job",
        queue="default",
        state=JobState.READY,
        priority=0,
        attempt=0,
        max_attempts=5,
        fence=0,
        args=b"{}",
        options=JobOptions(),
        created_at=NOW,
        due_at=NOW,
        attempts=attempts,
    )


def test_every_state_is_either_ended_or_unfinished():
    assert set(JobState) == ENDED | UNFINISHED
    assert not ENDED & UNFINISHED
    assert WAITING < UNFINISHED
    assert {state.value for state in ENDED} == {"done", "dead", "cancelled"}


@pytest.mark.parametrize(
    "written",
    [
        "0190a5b2-0000-7000-8000-00000000abcd",
        "0190A5B2-0000-7000-8000-00000000ABCD",
        "0190a5b2000070008000" + "00000000abcd",
        "{0190a5b2-0000-7000-8000-00000000abcd}",
        "urn:uuid:0190a5b2-0000-7000-8000-00000000abcd",
    ],
)
def test_an_id_is_kept_in_one_form_however_it_was_written(written):
    assert NewJob(id=written, task="job").id == "0190a5b2-0000-7000-8000-00000000abcd"


@pytest.mark.parametrize("written", ["", "42", "job-1", 42, None], ids=repr)
def test_an_id_that_is_no_uuid_is_refused(written):
    given: Any = {"id": written, "task": "job"}
    with pytest.raises(BadOption, match=r"^id must be a UUID"):
        NewJob(**given)


def test_a_job_of_a_task_with_a_wrong_name_is_refused():
    with pytest.raises(BadOption, match=r"^task must be"):
        NewJob(id=numbered_id(1), task="send mail")


@pytest.mark.parametrize("name", ["", "x" * 513])
def test_a_key_of_the_wrong_length_is_refused(name):
    with pytest.raises(BadOption, match=r"^key must be a text of 1 to 512 characters"):
        Key(name)


@pytest.mark.parametrize("name", ["k", "x" * 512, "ключ 🥁"])
def test_a_key_may_be_any_text_of_1_to_512_characters(name):
    assert Key(name).name == name


@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan")])
def test_progress_outside_0_to_1_is_refused(value):
    with pytest.raises(BadOption, match=r"^progress must be a number from 0 to 1"):
        Progress(value)


@pytest.mark.parametrize("value", [0, 0.5, 1])
def test_progress_is_a_number_from_0_to_1(value):
    assert Progress(value).value == value


def test_the_last_error_is_that_of_the_newest_attempt_that_has_one():
    assert stored().last_error is None
    assert stored(closed(1)).last_error is None
    job = stored(closed(1, Failure("OSError", "disk")), closed(2, Failure("ValueError", "boom")), closed(3))
    assert job.last_error == "ValueError: boom"


@pytest.mark.parametrize(
    ("ended", "expected"),
    [("failed", "ValueError: no"), ("snoozed", None), ("released", "ValueError: no"), ("done", None)],
)
def test_an_attempt_tells_what_went_wrong_and_a_snooze_did_not(ended, expected):
    now = datetime(2026, 5, 5, tzinfo=UTC)
    error = None if ended == "done" else Failure("ValueError", "no")
    assert Attempt(1, 1, "r", "r", now, now, ended, error).died_of == expected


@pytest.mark.parametrize(("window", "span"), [("time", None), ("unfinished", timedelta(1)), ("pending", timedelta(1))])
def test_a_key_has_a_span_where_its_window_is_a_time_and_only_there(window, span):
    with pytest.raises(BadOption, match="key span must be given where the window is a time"):
        Key("k", KeyWindow(window), span)
