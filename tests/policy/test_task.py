import functools
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from drumline.errors import BadOption, UnknownTask
from drumline.model.context import Context
from drumline.model.options import Backoff, JobOptions, Retention
from drumline.policy.options import Executor
from drumline.policy.task import TaskDefinition, define, define_elsewhere


async def send_digest(user_id: int) -> str:
    return f"digest of {user_id}"


def tidy(ctx: Context, days: int = 1) -> None: ...


def count():
    yield 1


async def stream():
    yield 1


class Callable:
    def __call__(self, user_id: int) -> None: ...


class AsyncCallable:
    async def __call__(self, user_id: int) -> None: ...


def define_loosely(function: Any, **options: Any) -> TaskDefinition:
    """Declare with options that a type checker would refuse."""
    return define(function, **options)


def test_a_bare_function_gets_the_defaults():
    task = define(send_digest)
    assert task.name == "send_digest"
    assert task.function is send_digest
    assert task.options == JobOptions()
    assert (task.aliases, task.tags, task.give_up_on) == ((), (), ())
    assert (task.module, task.qualname) == (__name__, "send_digest")
    assert task.place == f"{__file__}:{send_digest.__code__.co_firstlineno}"
    assert task.returns is str
    assert not task.takes_context
    assert task.codec.encode((1,), {}) == b'{"user_id":1}'


def test_every_option_is_kept_as_what_it_means():
    task = define(
        tidy,
        name="tidy-up",
        queue="low",
        priority=-5,
        max_attempts=6,
        backoff="500ms",
        timeout="30s",
        lease=60,
        retention=Retention(dead=timedelta(days=30)),
        tags=["nightly", "nightly", "db"],
        executor="process",
        retry_on=OSError,
        give_up_on=(KeyError, ValueError),
        aliases=["cleanup"],
    )
    assert task.name == "tidy-up"
    assert task.options == JobOptions(
        queue="low",
        priority=-5,
        max_attempts=6,
        backoff=Backoff(timedelta(milliseconds=500)),
        timeout=timedelta(seconds=30),
        lease=timedelta(minutes=1),
        retention=Retention(dead=timedelta(days=30)),
    )
    assert task.tags == ("nightly", "db")
    assert task.executor is Executor.PROCESS
    assert task.retry_on == (OSError,)
    assert task.give_up_on == (KeyError, ValueError)
    assert task.aliases == ("cleanup",)
    assert task.takes_context


def test_defaults_from_the_settings_stand_where_the_task_says_nothing():
    defaults = JobOptions(max_attempts=2, timeout=timedelta(seconds=5))
    assert define(tidy, defaults=defaults).options is defaults
    assert define(tidy, defaults=defaults, timeout=None).options == JobOptions(max_attempts=2)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("max_attempts", 0, "max_attempts must be a whole number of 1 or more, got 0"),
        ("max_attempts", True, "max_attempts must be a whole number of 1 or more, got True"),
        ("priority", 101, "priority must be a whole number from -100 to 100, got 101"),
        ("queue", "a b", "queue must be 1 to 100 letters"),
        ("queue", "@private", "queue must be 1 to 100 letters"),
        ("queue", 3, "queue must be 1 to 100 letters"),
        ("timeout", "0s", "timeout must be a duration above zero, or None, got '0s'"),
        ("timeout", "soon", "timeout must be a duration"),
        ("lease", "1ms", "lease must be a duration of 100 ms or more, got '1ms'"),
        ("backoff", [], "backoff must be a wait, a list with at least one wait, or a Backoff, got []"),
        ("backoff", ["1s", "x"], "backoff must be a duration"),
        ("retention", "x", "retention must be a duration"),
        ("tags", "nightly", "tags must be a list of at most 20 texts of 1 to 100 characters, got 'nightly'"),
        ("tags", [""], "tags must be a list of at most 20 texts of 1 to 100 characters, got ['']"),
        ("tags", [1], "tags must be a list of at most 20 texts of 1 to 100 characters, got [1]"),
        ("tags", ["x" * 101], "tags must be a list of at most 20 texts"),
        ("tags", [str(n) for n in range(21)], "tags must be a list of at most 20 texts"),
        ("executor", "fork", 'executor must be "coroutine", "thread" or "process", got \'fork\''),
        ("retry_on", "OSError", "retry_on must be an exception class, or a list of them, got 'OSError'"),
        ("retry_on", [int], "retry_on must be an exception class, or a list of them, got [<class 'int'>]"),
        ("give_up_on", KeyboardInterrupt, "give_up_on must be an exception class, or a list of them"),
        ("aliases", "old", "aliases must be a list of names, got 'old'"),
        ("aliases", ["a b"], "aliases must be 1 to 100 letters"),
        ("retries", 3, "retries must be given as max_attempts=4, which counts the first attempt too, got 3"),
        ("max_retries", 3, "max_retries must be given as max_attempts=4, which counts the first attempt too, got 3"),
        ("retries", "3", "option must be given as max_attempts=, which counts the first attempt too, got 'retries'"),
        ("delay", "5s", "option must be given as using(delay=…) with the call, or as backoff= for the wait before"),
        ("at", "noon", "option must be given as using(at=…) with the call, got 'at'"),
        ("max_attempt", 3, "(did you mean max_attempts?), got 'max_attempt'"),
        ("colour", "red", "option must be one of aliases, backoff, executor, give_up_on, lease, max_attempts, name"),
    ],
)
def test_a_bad_option_is_refused_in_one_form(option, value, says):
    with pytest.raises(BadOption) as caught:
        define_loosely(send_digest, **{option: value})
    text = str(caught.value)
    assert text.startswith("task send_digest: ")
    assert says in text


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (3, "task must be a function, got 3"),
        (lambda: None, "task must be a function with a name, or declared with name=, got <function <lambda>"),
        (Callable(), "task must be a function with a name, or declared with name="),
        (functools.partial(tidy), "task must be a function with a name, or declared with name="),
        (count, "task count: task must be a function that returns, not a generator that yields"),
        (stream, "task stream: task must be a function that returns, not a generator that yields"),
        (Callable, "task Callable: task must be a function, got <class"),
    ],
)
def test_what_is_no_function_is_refused(function, says):
    with pytest.raises(BadOption) as caught:
        define_loosely(function)
    assert str(caught.value).startswith(says)


def test_what_is_no_function_is_refused_whatever_its_name():
    with pytest.raises(BadOption, match="task work: task must be a function, got 3"):
        define_loosely(3, name="work")


@pytest.mark.parametrize("name", ["", "a b", "x" * 101, "-a", None, 3])
def test_a_bad_name_is_refused(name):
    with pytest.raises(BadOption, match="task name must be 1 to 100 letters"):
        define_loosely(send_digest, name=name)


def test_a_signature_that_cannot_be_sent_is_refused():
    def work(session: object, lock: Callable) -> None: ...

    with pytest.raises(BadOption, match="task work: parameter lock must be of a type that can travel as JSON"):
        define(work)


def decorated(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


@pytest.mark.parametrize(
    ("function", "executor"),
    [
        (send_digest, Executor.COROUTINE),
        (tidy, Executor.THREAD),
        (functools.partial(send_digest, 1), Executor.COROUTINE),
        (functools.partial(tidy, days=3), Executor.THREAD),
        (Callable(), Executor.THREAD),
        (AsyncCallable(), Executor.COROUTINE),
        (lambda: None, Executor.THREAD),
        (decorated(send_digest), Executor.THREAD),
        (print, Executor.THREAD),
    ],
)
def test_async_functions_run_on_the_loop_and_others_in_a_thread(function, executor):
    assert define(function, name="work").executor is executor


def test_an_async_function_may_run_in_a_thread_but_a_plain_one_not_on_the_loop():
    assert define(send_digest, executor="thread").executor is Executor.THREAD
    with pytest.raises(BadOption, match='task tidy: executor must be "thread" or "process" for a plain def'):
        define(tidy, executor="coroutine")


def test_a_decorated_function_is_known_by_its_own_place():
    task = define(decorated(send_digest))
    assert task.qualname == "send_digest"
    assert task.place == f"{__file__}:{send_digest.__code__.co_firstlineno}"
    assert define(print).place == "builtins:0"


def test_any_error_is_worth_a_retry_unless_the_task_says_otherwise():
    task = define(send_digest)
    assert task.is_worth_retrying(ValueError())
    assert task.is_worth_retrying(SystemExit())
    task = define(send_digest, retry_on=[OSError, LookupError], give_up_on=KeyError)
    assert task.is_worth_retrying(ConnectionError())
    assert task.is_worth_retrying(IndexError())
    assert not task.is_worth_retrying(KeyError())
    assert not task.is_worth_retrying(ValueError())
    assert not define(send_digest, retry_on=()).is_worth_retrying(ValueError())


def test_a_function_that_is_declared_again_is_the_same_and_another_of_its_name_is_not():
    def make():
        def work() -> None: ...

        return work

    def work() -> None: ...

    assert define(make()).is_same(define(make()))
    assert not define(make()).is_same(define(work))


def test_a_module_that_is_run_as_the_main_program_declares_the_same_task():
    namespace = {"__name__": "__main__"}
    exec(compile("async def send_digest(): ...", __file__, "exec"), namespace)
    assert define(send_digest).is_same(define_loosely(namespace["send_digest"]))


def test_names_in_annotations_may_come_from_the_scope():
    @dataclass
    class Local:
        size: int

    def work(value: "Local") -> None: ...

    assert define(work, scope={"Local": Local}).codec.signature.parameters[0].annotation is Local


def test_a_task_that_lives_elsewhere_takes_any_arguments_by_name_and_cannot_run():
    task = define_elsewhere("encode", queue="video", defaults=JobOptions(max_attempts=2))
    assert task.options == JobOptions(queue="video", max_attempts=2)
    assert task.codec.encode((), {"path": "a.mov", "sizes": [1, 2]}) == b'{"path":"a.mov","sizes":[1,2]}'
    with pytest.raises(UnknownTask, match="task encode: its code lives in another program"):
        task.function(path="a.mov")
