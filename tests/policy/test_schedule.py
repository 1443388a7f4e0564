from datetime import datetime, timedelta
from uuid import UUID

import pytest

from drumline.errors import BadArgument, BadOption
from drumline.model.schedule import Coordination, Misfire, Overlap, Schedule
from drumline.policy.call import choose
from drumline.policy.schedule import define_schedule, split_options
from drumline.policy.task import define


def f() -> None: ...


def send(to: str, times: int = 1) -> None: ...


TASK = define(f, queue="low", tags=["t"])
SEND = define(send)


def test_what_is_not_given_is_the_tasks_or_the_default():
    schedule = define_schedule(TASK, every="10s")
    assert (schedule.name, schedule.task, schedule.options, schedule.tags) == ("f", "f", TASK.options, ("t",))
    assert (schedule.rule.every, schedule.args, schedule.meta) == (timedelta(seconds=10), b"{}", {})
    plain = Schedule(name="f", task="f", rule=schedule.rule, options=TASK.options, tags=("t",))
    assert schedule == plain


def test_what_is_given_counts_for_this_schedule():
    schedule = define_schedule(
        SEND,
        name="digest",
        cron="@daily",
        coordination="per_replica",
        misfire="all",
        misfire_grace="10s",
        misfire_limit=7,
        misfire_max_age="1h",
        overlap="queue_one",
        run_on_startup=True,
        paused=True,
        args={"to": "ann"},
        queue="mail",
        tags=["a"],
        meta={"m": 1},
        in_code=False,
    )
    assert (schedule.name, schedule.task, schedule.args) == ("digest", "send", b'{"to":"ann"}')
    assert (schedule.coordination, schedule.misfire, schedule.overlap) == (
        Coordination.PER_REPLICA,
        Misfire.ALL,
        Overlap.QUEUE_ONE,
    )
    assert (schedule.misfire_grace, schedule.misfire_limit) == (timedelta(seconds=10), 7)
    assert schedule.misfire_max_age == timedelta(hours=1)
    assert (schedule.run_on_startup, schedule.paused, schedule.in_code) == (True, True, False)
    assert (schedule.options.queue, schedule.tags, schedule.meta) == ("mail", ("a",), {"m": 1})


def test_what_using_chose_counts_unless_the_schedule_says_otherwise():
    chosen = choose(TASK, queue="slow", priority=7, timeout="5s", tags=["u"], meta={"why": "nightly"})
    schedule = define_schedule(TASK, chosen, every=1, priority=3)
    assert (schedule.options.queue, schedule.options.priority) == ("slow", 3)
    assert (schedule.options.timeout, schedule.tags) == (timedelta(seconds=5), ("t", "u"))
    assert schedule.meta == {"why": "nightly"}


@pytest.mark.parametrize(
    ("option", "value"), [("key", "k"), ("delay", "5m"), ("id", UUID(int=7)), ("origin", "here"), ("transaction", "tx")]
)
def test_what_using_chose_for_one_call_is_refused(option, value):
    chosen = choose(TASK, queue="slow", **{option: value})
    with pytest.raises(BadOption) as refused:
        define_schedule(TASK, chosen, every=1, name="x")
    expected = "left out of using(…), for a schedule makes many jobs"
    assert str(refused.value) == f"schedule x: {option} must be {expected}, got {value!r}"


def test_tags_of_a_scheduled_function_count_once():
    tags = [str(number) for number in range(11)]
    of_task, of_schedule = split_options({"every": 1, "tags": tags})
    assert define_schedule(define(f, **of_task), **of_schedule).tags == tuple(tags)


def test_how_a_job_is_treated_counts_for_the_task_of_a_scheduled_function_too():
    task, schedule = split_options({"every": 1, "queue": "mail", "executor": "thread", "name": "x"})
    assert task == {"queue": "mail", "executor": "thread"}
    assert schedule == {"every": 1, "queue": "mail", "name": "x"}


def test_arguments_that_do_not_fit_are_refused_by_name():
    with pytest.raises(BadArgument, match=r"schedule send: .*to"):
        define_schedule(SEND, every=1)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "schedule f: rule must be given as either every= or cron=, got 'neither'"),
        ({"every": 1, "cron": "@daily"}, "schedule f: rule must be given as either every= or cron=, got 'both'"),
        ({"every": 0}, "schedule f: every must be a duration of 1 ms or more, got 0"),
        ({"every": -1}, "schedule f: every must be"),
        ({"cron": "61 * * * *"}, "schedule f: cron must be"),
        ({"cron": "@daily", "timezone": "Europe/Berln"}, "Europe/Berlin"),
        ({"every": 1, "start": "2026-01-02T00:00:00Z", "end": "2026-01-01T00:00:00Z"}, "schedule f: end must be later"),
        ({"every": 1, "start": datetime(2026, 1, 1)}, "schedule f: start must be"),  # noqa: DTZ001 - what is refused
        ({"every": 1, "misfire": "never"}, 'schedule f: misfire must be "skip" or "latest" or "all", got \'never\''),
        ({"every": 1, "overlap": "no"}, "schedule f: overlap must be"),
        ({"every": 1, "coordination": "one"}, 'schedule f: coordination must be "fleet" or "per_replica"'),
        ({"every": 1, "misfire_limit": 3}, 'schedule f: misfire_limit must be left out unless misfire="all", got 3'),
        ({"every": 1, "misfire": "all", "misfire_limit": 0}, "schedule f: misfire_limit must be a whole number"),
        ({"every": 1, "misfire_grace": "soon"}, "schedule f: misfire_grace must be"),
        ({"every": 1, "misfire_grace": 0}, "schedule f: misfire_grace must be a duration above zero, got 0"),
        ({"every": 1, "run_on_startup": "yes"}, "schedule f: run_on_startup must be True or False, got 'yes'"),
        ({"every": 1, "paused": 1}, "schedule f: paused must be True or False, got 1"),
        ({"every": 1, "args": [1]}, "schedule f: args must be a mapping of the task's arguments, got [1]"),
        ({"every": 1, "name": "a b"}, "schedule name must be"),
        ({"every": 1, "interval": 3}, "schedule f: option must be given as every=, got 'interval'"),
        ({"every": 1, "misfre": "all"}, "did you mean misfire?"),
    ],
)
def test_a_bad_option_is_named_with_what_was_expected(options, complaint):
    with pytest.raises(BadOption) as raised:
        define_schedule(TASK, **options)
    assert complaint in str(raised.value)
