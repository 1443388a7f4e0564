from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from drumline import BadArgument, Drumline, JobNotFound, UnknownTask, testing
from drumline.testing import Harness

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Person:
    id: int
    name: str


drum = Drumline("memory://")


@drum.task(queue="mail")
async def send(user_id: int, subject: str = "Hello") -> None: ...


@drum.task
async def remind(at: datetime | None = None, *names: str, **rest: int) -> None: ...


@drum.task
async def greet(person: Person) -> None: ...


@pytest.fixture
def harness() -> Iterator[Harness]:
    with testing.harness(drum, now=NOON) as opened:
        yield opened


def fail(harness: Harness, task: object, **args: object) -> str:
    with pytest.raises(AssertionError) as caught:
        harness.assert_enqueued(task, **args)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_job_is_found_by_its_task_its_name_and_some_of_its_arguments(harness):
    job = send.enqueue_sync(42, subject="Hi")
    for found in (
        harness.assert_enqueued(send),
        harness.assert_enqueued("send"),
        harness.assert_enqueued(send, user_id=42),
        harness.assert_enqueued(send, subject="Hi", user_id=42),
    ):
        assert (found.id, found.args) == (job.id, {"user_id": 42, "subject": "Hi"})


def test_a_default_that_was_not_sent_counts_as_sent(harness):
    send.enqueue_sync(42)
    assert harness.assert_enqueued(send, subject="Hello").args == {"user_id": 42}


def test_arguments_are_compared_as_the_task_gets_them(harness):
    greet.enqueue_sync(Person(7, "Ada"))
    remind.enqueue_sync(NOON, "Ada", "Grace", count=2)
    harness.assert_enqueued(greet, person=Person(7, "Ada"))
    harness.assert_enqueued(greet, id=7, name="Ada")
    harness.assert_not_enqueued(greet, person=Person(7, "Grace"))
    assert harness.last_job.args == {"at": NOON, "names": ["Ada", "Grace"], "count": 2}
    harness.assert_enqueued(remind, at=NOON, names=("Ada", "Grace"))


def test_a_job_of_another_program_is_found_by_its_stub(harness):
    encode = drum.stub("encode", queue="video")
    encode.enqueue_sync(file="a.mov", sizes=[1, 2])
    harness.assert_enqueued(encode, file="a.mov", sizes=(1, 2))
    harness.assert_not_enqueued(encode, file="b.mov")


@pytest.mark.parametrize(
    "options",
    [
        {"queue": "urgent", "priority": 5},
        {"delay": "1h"},
        {"delay": timedelta(hours=1)},
        {"at": NOON + timedelta(hours=1)},
        {"key": "welcome-42", "on_conflict": "replace"},
        {"tags": ["a"], "meta": {"by": "Ada"}},
        {"max_attempts": 2, "backoff": "10s", "timeout": "1m", "retention": "2h", "lease": "1m"},
        {"origin": "test", "id": "01890a5d-ac96-774b-bcce-b302099a8057"},
    ],
)
def test_options_are_asked_for_with_using(harness, options):
    given = {"tags": ["a", "b"], "meta": {"by": "Ada", "for": "Grace"}, "max_attempts": 2, "backoff": "10s"}
    send.using(**{"delay": "1h", **given, **options} if "at" not in options else options).enqueue_sync(42)
    harness.advance("1h")
    assert harness.assert_enqueued(send.using(**options), user_id=42).state == "done"


@pytest.mark.parametrize(
    ("option", "asked", "difference"),
    [
        ("queue", "urgent", "queue: expected 'urgent', got 'mail'"),
        ("delay", "2h", "delay: expected '2h', got 1h"),
        ("at", NOON, f"at: expected {NOON!r}, got 2026-03-01T13:00:00.000Z"),
        ("timeout", "1m", "timeout: expected '1m', got None"),
        ("lease", "1m", "lease: expected '1m', got 30s"),
        ("key", "welcome", "key: expected 'welcome', got None"),
        ("tags", ["a"], "tags: expected ['a'], got ()"),
        ("meta", {"by": "Ada"}, "meta: expected {'by': 'Ada'}, got {}"),
        ("origin", "test", "origin: expected 'test', got None"),
    ],
)
def test_a_job_with_another_option_is_not_the_one(harness, option, asked, difference):
    send.using(delay="1h").enqueue_sync(42)
    assert difference in fail(harness, send.using(**{option: asked}))


def test_a_past_time_is_asked_for_as_it_was_given(harness):
    send.using(at=NOON - timedelta(hours=1)).enqueue_sync(42)
    harness.assert_enqueued(send.using(at=NOON - timedelta(hours=1)))


def test_the_first_time_counts_whatever_retries_came_of_it(harness):
    @drum.task(backoff=["1h"])
    async def broken() -> None:
        raise ValueError

    broken.using(delay="5m").enqueue_sync()
    harness.advance("5m")
    assert harness.assert_enqueued(broken.using(delay="5m")).delay == timedelta(minutes=5)


def test_the_failure_tells_what_was_enqueued_and_what_came_nearest(harness):
    send.using(delay="24h").enqueue_sync(41, subject="Hi")
    send.enqueue_sync(42)
    greet.enqueue_sync(Person(7, "Ada"))
    assert fail(harness, send, user_id=43, subject="Hi").splitlines() == [
        "no job of task send with user_id=43, subject='Hi' was enqueued",
        "the nearest is <send(user_id=41, subject='Hi'), delayed in queue mail, delayed by 1d>:",
        "    user_id: expected 43, got 41",
        "3 jobs were enqueued:",
        "    <send(user_id=41, subject='Hi'), delayed in queue mail, delayed by 1d>",
        "    <send(user_id=42), ready in queue mail>",
        "    <greet(person=Person(id=7, name='Ada')), ready in queue default>",
    ]


def test_the_failure_says_that_there_was_nothing(harness):
    assert fail(harness, send.using(queue="low"), user_id=1).splitlines() == [
        "no job of task send with user_id=1 using queue='low' was enqueued",
        "nothing was enqueued",
    ]


def test_a_long_list_is_cut(harness):
    drum.enqueue_many_sync(send.call(number) for number in range(50))
    assert fail(harness, greet).splitlines()[-1] == "    … and 30 more"


def test_a_job_that_should_not_be_there_is_shown(harness):
    send.enqueue_sync(42)
    harness.assert_not_enqueued(send, user_id=43)
    harness.assert_not_enqueued(send.using(delay="1h"))
    with pytest.raises(AssertionError, match=r"a job of task send was enqueued\n1 job was enqueued:\n    <send\("):
        harness.assert_not_enqueued(send)


def test_jobs_are_counted_and_kept_in_their_order(harness):
    for number in (3, 1, 2, 1):
        send.enqueue_sync(number)
    assert [job.args["user_id"] for job in harness.enqueued(send)] == [3, 1, 2, 1]
    assert len(harness.enqueued(send, user_id=1)) == 2
    assert harness.last_job.id == harness.enqueued(send, user_id=1)[-1].id


def test_more_jobs_than_a_page_holds_are_all_seen(harness):
    drum.enqueue_many_sync(send.call(number) for number in range(1500))
    assert [job.args["user_id"] for job in harness.jobs] == list(range(1500))


def test_a_key_that_is_taken_makes_no_second_job(harness):
    for _ in range(2):
        send.using(key="welcome-42").enqueue_sync(42)
    assert len(harness.enqueued(send)) == 1


@pytest.mark.parametrize("verb", ["assert_enqueued", "assert_not_enqueued", "enqueued"])
def test_a_question_that_no_job_can_answer_is_refused(harness, verb):
    ask = getattr(harness, verb)
    with pytest.raises(UnknownTask, match="did you mean 'send'"):
        ask("sent")
    with pytest.raises(BadArgument, match="task send: user: unknown argument; it takes user_id, subject"):
        ask(send, user=42)
    with pytest.raises(
        BadArgument, match=r"queue: unknown argument; ask for a job's options with send.using\(queue=…\)"
    ):
        ask(send, user_id=42, queue="mail")
    with pytest.raises(BadArgument, match=r"times: unknown argument; count with len\(harness.enqueued\(send, …\)\)"):
        ask(send, user_id=42, times=2)


def test_a_job_that_was_never_enqueued_is_not_found(harness):
    with pytest.raises(JobNotFound, match="no job was enqueued"):
        _ = harness.last_job
    with pytest.raises(JobNotFound, match="in this harness"):
        harness.job("01890a5d-ac96-774b-bcce-b302099a8057")
