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


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "store URL 'nonsense': expected postgresql://user@host/database, redis://"),
        ("", "store URL '': expected postgresql://"),
        ("mysql://u:secret@h/db", "store URL 'mysql://u:***@h/db': expected postgresql://user@host/database, redis://"),
        ("sqlite://x", "store URL 'sqlite://x': expected"),
        ("sqlite:///", "store URL 'sqlite:///': expected"),
        ("postgresql://[::1/db", "store URL 'postgresql://[::1/db': expected postgresql://user@host/database"),
        (
            "postgresql://u:secret@h:port/db",
            "store URL 'postgresql://u:***@h:port/db': expected postgresql://user@host",
        ),
        ("postgresql://u:secret@h/a b", "store URL 'postgresql://u:***@h/a b': expected postgresql://user@host"),
        ("postgresql://h/db?colour=blue", "store URL 'postgresql://h/db?colour=blue': expected postgresql://user@host"),
        ("redis://:secret@h:port/0", "store URL 'redis://:***@h:port/0': expected redis://host:6379/0"),
        ("redis://h/zero", "store URL 'redis://h/zero': expected redis://host:6379/0"),
        ("redis://h/0?colour=blue", "store URL 'redis://h/0?colour=blue': expected redis://host:6379/0"),
    ],
)
def test_a_url_that_leads_nowhere_is_bad_usage_and_told_without_its_secrets(shop, url, says):
    answer = shop.run("jobs", "list", "--store", url)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"drumline: {says}")
    assert answer.err.count("\n") == 1
    assert "secret" not in answer.err


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        (
            "[worker]\nconcurency = 3",
            "drumline.toml: worker.concurency is not a setting; did you mean worker.concurrency?",
        ),
        ('[worker]\nconcurrency = "many"', "drumline.toml: worker.concurrency must be a valid integer"),
        ("[store]\nauto_migrate = 7", "drumline.toml: store.auto_migrate must be a valid boolean"),
        ("worker = 3", "drumline.toml: worker must be a table of settings, got 3"),
        ("[worker", "drumline.toml cannot be read: "),
        (
            "[jobs.queues.mail]\ncap = 0",
            "drumline.toml: jobs.queues.mail.cap must be a whole number of 1 or more, got 0",
        ),
        ('[jobs]\nbackend = "redis"', "jobs.backend is redis, so jobs.redis.url must be given too"),
    ],
)
@pytest.mark.parametrize("command", [("jobs", "list"), ("worker", "--drain"), ("config", "show"), ("stats", "--json")])
def test_a_file_of_settings_that_is_wrong_is_bad_usage(shop, toml, says, command):
    (shop.folder / "drumline.toml").write_text(toml)
    answer = shop.run(*command)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"drumline: {says}")
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
