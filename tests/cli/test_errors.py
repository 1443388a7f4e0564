"""Exit codes, and sentences instead of tracebacks."""

import pytest

from drumline.cli.exits import Exit, exit_of
from drumline.errors import (
    BadArgument,
    BadOption,
    BadSettings,
    DrumlineError,
    JobNotFound,
    KeyTaken,
    SchemaMismatch,
    StoreUnreachable,
    StoreUnusable,
    UnknownSchedule,
    UnknownTask,
)

NOBODY = "00000000-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadOption("queue", "a name", 3), Exit.USAGE),
        (BadArgument("task add: a: expected int, got str"), Exit.USAGE),
        (BadSettings("unknown"), Exit.USAGE),
        (JobNotFound(), Exit.NOT_FOUND),
        (UnknownTask(), Exit.NOT_FOUND),
        (UnknownSchedule(), Exit.NOT_FOUND),
        (StoreUnreachable(), Exit.STORE),
        (StoreUnusable(), Exit.STORE),
        (SchemaMismatch(), Exit.STORE),
        (KeyTaken("add", "k", NOBODY), Exit.NO),
        (DrumlineError(), Exit.NO),
    ],
)
def test_each_error_has_its_exit_code(error, code):
    assert exit_of(error) is code


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["no-such-command"], 2),
        (["jobs", "no-such-command"], 2),
        (["jobs"], 2),
        (["jobs", "show"], 2),
        (["jobs", "list", "--no-such-option"], 2),
        (["jobs", "list", "--limit", "many"], 2),
        (["jobs", "list", "--state", "sleeping"], 2),
        (["jobs", "list", "--store", "postgresql-of-sorts://x"], 2),
        (["jobs", "list", "--store", "sqlite:////no/such/folder/jobs.db"], 75),
        (["jobs", "show", NOBODY], 3),
        (["jobs", "cancel", NOBODY], 3),
        (["jobs", "retry"], 2),
        (["jobs", "retry", NOBODY, "--state", "dead"], 2),
        (["jobs", "retry", "--state", "dead"], 1),
        (["jobs", "reschedule", NOBODY], 2),
        (["jobs", "reschedule", NOBODY, "--delay", "soon"], 2),
        (["queues", "pause", "no such name"], 2),
    ],
)
def test_what_a_person_can_mend_is_said_in_one_sentence(shop, words, code):
    answer = shop.run(*words)
    assert answer.code == code
    assert answer.out == ""
    assert answer.err.startswith("drumline: ")
    assert answer.err.count("\n") == 1


def test_a_bad_setting_is_said_in_one_sentence(shop, monkeypatch):
    monkeypatch.setenv("DRUMLINE_WORKER__CONCURENCY", "3")
    answer = shop.run("jobs", "list")
    assert answer.code == 2
    assert "did you mean DRUMLINE_WORKER__CONCURRENCY?" in answer.err


def test_a_file_that_is_no_store_is_named_and_left_alone(shop):
    (shop.folder / "notes.db").write_text("dear diary, " * 100)
    answer = shop.run("jobs", "list", "--store", f"sqlite:///{shop.folder / 'notes.db'}")
    assert answer.code == 75
    assert "notes.db" in answer.err
    assert (shop.folder / "notes.db").read_text().startswith("dear diary")


def test_a_sentence_names_the_help_of_its_command(shop):
    answer = shop.run("jobs", "list", "--no-such-option")
    assert answer.err == "drumline: No such option: --no-such-option; drumline jobs list --help tells what it takes\n"


def test_hostile_words_do_not_steer_the_terminal(shop):
    answer = shop.run("jobs", "show", "\x1b[2J\n\u202e[red]x")
    assert answer.code == 3
    assert "\\x1b[2J\\n\\u202e[red]x" in answer.err
