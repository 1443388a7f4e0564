from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drumline.errors import BadOption
from drumline.model.options import (
    Backoff,
    JobOptions,
    Retention,
    check_count,
    check_name,
    check_namespace,
    decode_options,
    encode_options,
)

SECOND = timedelta(seconds=1)
spans = st.timedeltas(SECOND, timedelta(days=365)).map(lambda span: timedelta(seconds=span // SECOND))


def test_a_backoff_is_named_by_its_first_wait_a_list_or_as_a_whole():
    assert Backoff.of("10s") == Backoff(initial=10 * SECOND)
    assert Backoff.of(0.5) == Backoff(initial=SECOND / 2)
    assert Backoff.of(["1s", 5, 60 * SECOND]) == Backoff(steps=(SECOND, 5 * SECOND, 60 * SECOND))
    whole = Backoff(factor=3, jitter="full")
    assert Backoff.of(whole) is whole


def test_a_backoff_takes_durations_however_they_are_written():
    written: Any = {"initial": "10s", "cap": 60}
    assert Backoff(**written) == Backoff(initial=10 * SECOND, cap=60 * SECOND)


def test_a_list_of_no_waits_is_no_backoff():
    with pytest.raises(BadOption, match=r"^backoff must be a wait, a list with at least one wait"):
        Backoff.of([])


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"initial": -1}, "backoff initial"),
        ({"cap": "never"}, "backoff cap"),
        ({"factor": 0.5}, "backoff factor"),
        ({"factor": "2"}, "backoff factor"),
        ({"factor": True}, "backoff factor"),
        ({"factor": float("inf")}, "backoff factor"),
        ({"factor": float("nan")}, "backoff factor"),
        ({"jitter": -0.1}, "backoff jitter"),
        ({"jitter": "some"}, "backoff jitter"),
    ],
    ids=str,
)
def test_a_wrong_backoff_is_refused_by_name(given, option):
    with pytest.raises(BadOption) as raised:
        Backoff(**given)
    assert raised.value.option == option


def test_a_wrong_wait_in_a_list_is_refused():
    with pytest.raises(BadOption, match=r"^backoff must be a duration"):
        Backoff.of(["1s", "later"])


def test_a_retention_is_named_by_one_duration_or_as_a_whole():
    hour = timedelta(hours=1)
    assert Retention.of("1h") == Retention(done=hour, dead=hour, cancelled=hour)
    whole = Retention(done=hour)
    assert Retention.of(whole) is whole
    written: Any = {"done": "1h"}
    assert Retention(**written) == whole


def test_a_wrong_retention_is_refused_by_name():
    with pytest.raises(BadOption, match=r"^retention dead must be a duration"):
        Retention(dead=timedelta(seconds=-1))
    with pytest.raises(BadOption, match=r"^retention must be a duration"):
        Retention.of("for ever")


def test_options_have_the_defaults_of_the_design():
    options = JobOptions()
    assert (options.queue, options.priority, options.max_attempts, options.timeout) == ("default", 0, 5, None)
    assert options.lease == timedelta(seconds=30)
    assert (options.backoff.initial, options.backoff.factor) == (timedelta(milliseconds=250), 2)
    assert (options.backoff.cap, options.backoff.jitter) == (timedelta(hours=1), 0.25)
    kept = options.retention
    assert (kept.done, kept.dead, kept.cancelled) == (timedelta(days=1), timedelta(days=7), timedelta(days=1))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"queue": ""}, "queue must be 1 to 100 letters"),
        ({"queue": "a b"}, "queue must be 1 to 100 letters"),
        ({"queue": "*"}, "queue must be 1 to 100 letters"),
        ({"queue": "@"}, "queue must be 1 to 100 letters"),
        ({"queue": "@@a"}, "queue must be 1 to 100 letters"),
        ({"priority": 101}, "priority must be a whole number from -100 to 100, got 101"),
        ({"priority": -101}, "priority must be a whole number from -100 to 100, got -101"),
        ({"priority": 1.0}, "priority must be a whole number from -100 to 100, got 1.0"),
        ({"priority": True}, "priority must be a whole number from -100 to 100, got True"),
        ({"max_attempts": 0}, "max_attempts must be a whole number of 1 or more, got 0"),
        ({"max_attempts": "3"}, "max_attempts must be a whole number of 1 or more, got '3'"),
        ({"max_attempts": 1001}, "max_attempts must be a whole number of at most 1000, got 1001"),
        ({"lease": timedelta(milliseconds=99)}, "lease must be a duration of 100 ms or more"),
        ({"timeout": timedelta()}, "timeout must be a duration above zero, or None"),
    ],
    ids=str,
)
def test_a_wrong_option_is_refused_by_name_with_what_came(given, message):
    with pytest.raises(BadOption) as raised:
        JobOptions(**given)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    "given",
    [
        {"priority": 100},
        {"priority": -100},
        {"max_attempts": 1},
        {"max_attempts": 1000},
        {"lease": timedelta(milliseconds=100)},
        {"timeout": timedelta(milliseconds=1)},
        {"queue": "@r1:1"},
    ],
    ids=str,
)
def test_the_ends_of_each_range_are_allowed(given):
    assert msgspec.structs.asdict(JobOptions(**given)).items() >= given.items()


@pytest.mark.parametrize("name", ["a", "_x", "9", "mail.send", "a:b/c-d", "x" * 100])
def test_a_name_that_every_store_can_carry_is_allowed(name):
    assert check_name(name, "task") == name


@pytest.mark.parametrize("name", ["", ".a", "-a", "a b", "ü", "x" * 101, "a\n", "@a", None, 5, b"a"], ids=repr)
def test_any_other_name_is_refused(name):
    with pytest.raises(BadOption, match=r"^task must be 1 to 100 letters"):
        check_name(name, "task")


def test_a_count_is_a_whole_number_of_one_or_more():
    assert check_count(1, "slots") == 1
    for wrong in (0, -1, 1.0, True, "1", None):
        with pytest.raises(BadOption, match=r"^slots must be a whole number of 1 or more"):
            check_count(wrong, "slots")


@given(
    st.builds(
        JobOptions,
        queue=st.sampled_from(["default", "mail", "@r1:1"]),
        priority=st.integers(-100, 100),
        max_attempts=st.integers(1, 1000),
        backoff=st.builds(
            Backoff,
            initial=spans,
            factor=st.floats(1, 10),
            cap=spans,
            jitter=st.just("full") | st.floats(0, 2),
            steps=st.lists(spans, max_size=3).map(tuple),
        ),
        timeout=st.none() | spans,
        lease=spans,
        retention=st.builds(Retention, done=spans, dead=spans, cancelled=spans),
    )
)
def test_options_are_read_as_they_were_written(options):
    assert decode_options(encode_options(options)) == options


def test_options_that_nobody_wrote_are_the_defaults():
    assert decode_options(b"{}") == decode_options(encode_options(JobOptions())) == JobOptions()


def test_options_that_no_caller_could_give_do_not_keep_a_job_from_being_read():
    assert decode_options(b'{"queue": "<script>", "priority": 5}') == JobOptions()


@pytest.mark.parametrize("name", ["drumline", "_a", "Shop.jobs:eu-1", "x" * 41])
def test_a_namespace_is_a_name_that_every_store_can_carry(name):
    assert check_namespace(name, "namespace") == name


@pytest.mark.parametrize("name", ["", "bad name", "1shop", "x" * 42, "shop/eu", None])
def test_a_bad_namespace_is_refused(name):
    with pytest.raises(BadOption, match="namespace must be 1 to 41 letters"):
        check_namespace(name, "namespace")
