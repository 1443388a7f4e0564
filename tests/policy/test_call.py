from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from drumline.errors import BadArgument, BadOption
from drumline.model.job import Conflict, Key, KeyWindow, NewJob
from drumline.model.options import JobOptions
from drumline.policy.call import CallOptions, choose, make_encoded_job, make_job
from drumline.policy.task import define

FRESH = "0199b9b8-0000-7000-8000-000000000000"
OWN = UUID("0199b9b8-0000-7000-8000-000000000001")
NOON = datetime(2026, 5, 5, 12, tzinfo=UTC)


def welcome(user_id: int) -> None: ...


task = define(welcome, queue="mail", tags=["mail"])


def choose_loosely(**options: Any) -> CallOptions:
    """Options that a type checker would refuse."""
    return choose(task, **options)


def test_a_call_without_options_makes_a_job_of_the_task():
    assert make_job(task, (42,), {}, fresh_id=FRESH) == NewJob(
        id=FRESH, task="welcome", args=b'{"user_id":42}', options=JobOptions(queue="mail"), tags=("mail",)
    )


def test_every_option_of_a_call_comes_into_the_job():
    transaction = object()
    call = choose(
        task,
        delay="24h",
        queue="slow",
        priority=5,
        max_attempts=2,
        timeout=None,
        key="welcome-42",
        key_window="1h",
        on_conflict="replace",
        id=OWN,
        tags=["vip", "mail"],
        meta={"at": NOON, "ids": (1, 2)},
        origin="POST /users",
        transaction=transaction,
    )
    assert make_job(task, (), {"user_id": 42}, call, fresh_id=FRESH) == NewJob(
        id=str(OWN),
        task="welcome",
        args=b'{"user_id":42}',
        options=JobOptions(queue="slow", priority=5, max_attempts=2),
        start=timedelta(days=1),
        key=Key("welcome-42", KeyWindow.TIME, timedelta(hours=1), Conflict.REPLACE),
        tags=("mail", "vip"),
        meta={"at": "2026-05-05T12:00:00Z", "ids": [1, 2]},
        origin="POST /users",
    )
    assert call.transaction is transaction


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ({}, None),
        ({"delay": 1.5}, timedelta(seconds=1.5)),
        ({"delay": 0}, timedelta()),
        ({"at": NOON}, NOON),
        ({"at": NOON.astimezone(timezone(timedelta(hours=9)))}, NOON),
        ({"at": "2026-05-05T14:00:00+02:00"}, NOON),
    ],
)
def test_a_job_starts_after_a_time_or_at_an_instant(options, start):
    assert choose_loosely(**options).start == start


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({}, Key("k")),
        ({"key_window": "unfinished"}, Key("k")),
        ({"key_window": "pending"}, Key("k", KeyWindow.PENDING)),
        ({"key_window": 60}, Key("k", KeyWindow.TIME, timedelta(minutes=1))),
        ({"on_conflict": "raise"}, Key("k", on_conflict=Conflict.RAISE)),
    ],
)
def test_a_key_has_a_window_and_a_way_to_settle_conflicts(options, key):
    assert choose_loosely(key="k", **options).key == key


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"delay": 1, "at": NOON}, "at must be left out where delay is given, got datetime"),
        ({"at": datetime(2026, 1, 1)}, "at must be an instant with a time zone (an aware datetime)"),  # noqa: DTZ001
        ({"at": "soon"}, "at must be an instant with a time zone"),
        ({"delay": -1}, "delay must be a duration"),
        ({"delay": None}, "delay must be a duration"),
        ({"key": ""}, "key must be a text of 1 to 512 characters, got ''"),
        ({"key": 3}, "key must be a text of 1 to 512 characters, got 3"),
        ({"key": "a\0b"}, r"key must be text without NUL and without half characters, got 'a\x00b'"),
        ({"key": "\ud800"}, r"key must be text without NUL and without half characters, got '\ud800'"),
        ({"tags": ["a\0"]}, r"tags must be text without NUL and without half characters, got ['a\x00']"),
        ({"key_window": "1h"}, "key_window must be left out where no key is given, got '1h'"),
        ({"on_conflict": "skip"}, "on_conflict must be left out where no key is given, got 'skip'"),
        ({"key": "k", "key_window": "time"}, 'key_window must be "unfinished", "pending" or a duration above zero'),
        ({"key": "k", "key_window": 0}, 'key_window must be "unfinished", "pending" or a duration above zero, got 0'),
        ({"key": "k", "on_conflict": "wait"}, 'on_conflict must be "skip", "replace" or "raise", got \'wait\''),
        ({"id": "42"}, "id must be a UUID, got '42'"),
        ({"id": None}, "id must be a UUID, got None"),
        ({"tags": "vip"}, "tags must be a list of at most 20 texts"),
        ({"tags": [str(n) for n in range(20)]}, "tags must be a list of at most 20 texts"),
        ({"meta": [1]}, "meta must be a JSON object of at most 16,384 bytes, got [1]"),
        ({"meta": {"a": "x" * 16_384}}, "meta must be a JSON object of at most 16,384 bytes"),
        ({"meta": {"a": "\0"}}, r"meta must be a JSON object without NUL"),
        ({"origin": ""}, "origin must be a text of 1 to 200 characters, got ''"),
        ({"max_attempts": 0}, "max_attempts must be a whole number of 1 or more, got 0"),
        ({"queue": "@a"}, "queue must be 1 to 100 letters"),
        ({"eta": NOON}, "option must be given as at=, got 'eta'"),
        ({"retries": 3}, "option must be given as max_attempts=, which counts the first attempt too, got 'retries'"),
        ({"priorty": 3}, "(did you mean priority?), got 'priorty'"),
        ({"executor": "thread"}, "option must be one of at, backoff, delay, id, key"),
    ],
)
def test_a_bad_option_of_a_call_is_refused_in_one_form(options, says):
    with pytest.raises(BadOption) as caught:
        choose_loosely(**options)
    text = str(caught.value)
    assert text.startswith("task welcome: ")
    assert says in text


def test_options_may_be_given_in_steps():
    call = choose(task, choose(task, delay="1h", key="k", priority=1), at=NOON, priority=2, on_conflict="replace")
    assert call.start == NOON
    assert call.key == Key("k", on_conflict=Conflict.REPLACE)
    assert call.options == JobOptions(queue="mail", priority=2)


def test_bad_arguments_are_refused_when_the_job_is_made():
    with pytest.raises(BadArgument, match="task welcome: user_id: expected int, got str"):
        make_job(task, ("42",), {}, fresh_id=FRESH)


def test_a_job_can_be_made_of_arguments_that_came_as_json():
    job = make_encoded_job(task, task.codec.accept('{"user_id": 42}'), choose(task, delay=1), fresh_id=FRESH)
    assert job.args == b'{"user_id":42}'
    assert job.start == timedelta(seconds=1)


def test_tags_that_the_task_has_already_count_once():
    tags = [str(number) for number in range(11)]
    tagged = define(welcome, tags=tags * 2)
    assert choose(tagged, tags=tags).tags == tuple(tags)
    with pytest.raises(BadOption, match="tags must be a list of at most 20 texts"):
        choose(tagged, tags=[f"own {tag}" for tag in tags])
