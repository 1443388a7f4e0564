from datetime import UTC, datetime, timedelta, timezone

import pytest

from drumline.engine.failure import failure, raised, without_secrets
from drumline.errors import GiveUp, Retry, Snooze
from drumline.model.result import ERROR_LIMIT
from drumline.policy.task import define
from drumline.policy.verdict import Raised, Wish


def work() -> None: ...


TASK = define(work)


class Mute(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise ZeroDivisionError


def caught(error: BaseException) -> BaseException:
    """The error as it is once it was raised."""
    try:
        raise error
    except BaseException as same:  # noqa: BLE001
        return same


def test_an_error_is_kept_with_type_message_and_traceback():
    kept = failure(caught(ValueError("bad")))
    assert (kept.type, kept.message) == ("ValueError", "bad")
    assert kept.traceback.startswith("Traceback (most recent call last)")
    assert kept.traceback.endswith("ValueError: bad\n")


def test_an_error_that_cannot_print_itself_is_kept_all_the_same():
    kept = failure(caught(Mute()))
    assert kept.type == "Mute"
    assert kept.message == "(its message cannot be shown: ZeroDivisionError)"
    assert "Mute" in kept.traceback


def test_a_traceback_that_cannot_be_made_is_said_to_be_so(monkeypatch):
    def refuse(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("traceback.format_exception", refuse)
    assert failure(ValueError("bad")).traceback == "(its traceback cannot be shown: RecursionError)"


def test_huge_texts_are_cut_in_the_middle():
    kept = failure(caught(ValueError("a" + "b" * 100_000 + "c")))
    for text in (kept.message, kept.traceback):
        assert len(text.encode()) <= ERROR_LIMIT
        assert "cut:" in text
    assert kept.message.startswith("ab")
    assert kept.message.endswith("bc")


def test_an_error_deep_in_a_recursion_is_kept():
    def fall() -> None:
        fall()

    with pytest.raises(RecursionError) as fallen:
        fall()
    kept = failure(fallen.value)
    assert kept.type == "RecursionError"
    assert "fall()" in kept.traceback


def test_an_ordinary_error_asks_for_another_attempt_as_the_back_off_says():
    assert (raised(TASK, ValueError()).wish, raised(TASK, ValueError()).start) == (Wish.RETRY, None)


def test_system_exit_is_an_error_like_any_other():
    assert raised(TASK, SystemExit(1)).wish is Wish.RETRY


def test_retry_asks_for_its_own_time():
    assert raised(TASK, Retry()).start is None
    assert raised(TASK, Retry(after="10s")).start == timedelta(seconds=10)
    assert raised(TASK, Retry(after=datetime(2026, 5, 5, tzinfo=UTC))).start == datetime(2026, 5, 5, tzinfo=UTC)


def test_snooze_asks_for_its_time_and_the_attempt_back():
    ending = raised(TASK, Snooze(60))
    assert (ending.wish, ending.start) == (Wish.SNOOZE, timedelta(minutes=1))


# The last day of the calendar, in a zone where UTC is already a day ahead.
BEYOND = datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))
NAIVE = datetime(2026, 5, 5)  # noqa: DTZ001


# Longer than Python turns into a number, or back into text.
HUGE = "9" * 5000


@pytest.mark.parametrize(
    "after",
    [
        "soon",
        "²",
        "9" * 400,
        HUGE,
        pytest.param(10**400, id="large"),
        pytest.param(10**5000, id="huge"),
        -1,
        NAIVE,
        BEYOND,
        float("nan"),
    ],
)
@pytest.mark.parametrize("verdict", [lambda after: Retry(after=after), Snooze])
def test_a_time_that_cannot_be_read_fails_the_attempt_and_says_why(verdict, after):
    ending = raised(TASK, verdict(after))
    assert (ending.wish, ending.start) == (Wish.RETRY, None)
    assert ending.failure.type == "BadOption"
    assert ending.failure.message.startswith("task work: after must be ")


class Late(Retry):
    """Does not make itself known as what it is."""

    def __init__(self) -> None:
        Exception.__init__(self, "late")


class Tired(Snooze):
    """Says in its own way, and wrongly, for how long."""

    def __init__(self) -> None:
        Exception.__init__(self, "tired")

    @property
    def after(self) -> float:  # type: ignore[override]
        raise ZeroDivisionError


def test_a_verdict_of_the_tasks_own_kind_needs_no_time():
    ending = raised(TASK, Late())
    assert (ending.wish, ending.start, ending.failure.message) == (Wish.RETRY, None, "late")


def test_a_verdict_that_fails_when_it_is_asked_fails_the_attempt():
    ending = raised(TASK, Tired())
    assert (ending.wish, ending.start, ending.failure.type) == (Wish.RETRY, None, "ZeroDivisionError")


def test_give_up_is_for_good():
    assert raised(TASK, GiveUp("no")).wish is Wish.GIVE_UP


def test_an_error_of_give_up_on_is_for_good_and_others_are_not():
    task = define(work, give_up_on=(KeyError,))
    assert raised(task, KeyError()).wish is Wish.GIVE_UP
    assert raised(task, ValueError()).wish is Wish.RETRY


def test_an_error_outside_retry_on_is_for_good():
    task = define(work, retry_on=(OSError,), give_up_on=(FileNotFoundError,))
    assert raised(task, ValueError()).wish is Wish.GIVE_UP
    assert raised(task, FileNotFoundError()).wish is Wish.GIVE_UP
    assert raised(task, ConnectionError()).wish is Wish.RETRY


def test_what_a_task_asks_for_aloud_counts_whatever_retry_on_says():
    task = define(work, retry_on=(OSError,))
    assert raised(task, Retry(after=1)).wish is Wish.RETRY
    assert raised(task, Snooze(1)).wish is Wish.SNOOZE


def test_an_error_is_kept_without_the_secrets_of_the_arguments():
    kept = without_secrets(TASK, b'{"password":"hunter22"}', raised(TASK, caught(ValueError("wrong: hunter22"))))
    assert isinstance(kept, Raised)
    assert (kept.failure.message, "hunter22" in kept.failure.traceback) == ("wrong: ***", False)


def test_arguments_that_cannot_be_read_leave_the_error_as_it_is():
    ending = raised(TASK, caught(ValueError("bad")))
    assert without_secrets(TASK, b"{", ending) is ending
