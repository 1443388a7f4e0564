import asyncio
import importlib
import inspect
import subprocess
import sys
from importlib.machinery import BuiltinImporter

import pytest

from drumline import BadOption, Context, Drumline, Task, UnknownTask, current
from drumline.errors import BadArgument


def test_a_task_is_declared_without_parentheses(drum):
    @drum.task
    async def greet(name: str) -> str:
        """Say hello."""
        return f"hello {name}"

    assert isinstance(greet, Task)
    assert (greet.name, greet.__name__, greet.__doc__, repr(greet)) == ("greet", "greet", "Say hello.", "<Task greet>")


def test_a_task_is_declared_with_empty_parentheses(drum):
    @drum.task()
    async def greet() -> None: ...

    assert greet.name == "greet"


def test_a_task_is_declared_with_options(drum):
    @drum.task(name="mail.greet", queue="mail", priority=5, max_attempts=6, backoff="500ms", timeout="30s", tags=["a"])
    async def greet() -> None: ...

    options = drum.tasks["mail.greet"].options
    assert (options.queue, options.priority, options.max_attempts) == ("mail", 5, 6)
    assert (options.backoff.initial.total_seconds(), options.timeout.total_seconds()) == (0.5, 30)
    assert drum.tasks["mail.greet"].tags == ("a",)


def test_the_tasks_of_a_program_are_listed_by_name(drum):
    @drum.task
    def beta() -> None: ...

    @drum.task(aliases=["old"])
    def alpha() -> None: ...

    assert list(drum.tasks) == ["alpha", "beta"]


def test_settings_are_the_defaults_of_every_task(monkeypatch):
    monkeypatch.setenv("DRUMLINE_JOBS__MAX_ATTEMPTS", "9")
    drum = Drumline("memory://")

    @drum.task
    def greet() -> None: ...

    @drum.task(max_attempts=2)
    def once() -> None: ...

    assert (drum.tasks["greet"].options.max_attempts, drum.tasks["once"].options.max_attempts) == (9, 2)


def test_a_bad_option_is_refused_where_it_is_declared(drum):
    with pytest.raises(BadOption, match="task greet: max_attempts must be a whole number of 1 or more, got 0"):

        @drum.task(max_attempts=0)
        def greet() -> None: ...


def test_an_unknown_option_is_refused_with_what_was_probably_meant(drum):
    with pytest.raises(BadOption, match="did you mean priority"):

        @drum.task(priorty=3)
        def greet() -> None: ...


def test_retries_is_refused_with_the_equivalent(drum):
    with pytest.raises(BadOption, match="max_attempts=4"):

        @drum.task(retries=3)
        def greet() -> None: ...


def test_calling_a_task_just_runs_the_function(drum):
    @drum.task
    def add(a: int, b: int = 1) -> int:
        return a + b

    assert add(2, b=3) == 5
    assert add.__wrapped__(1) == 2


def test_calling_an_async_task_gives_its_coroutine(drum):
    @drum.task
    async def add(a: int, b: int = 1) -> int:
        return a + b

    called = add(2)
    assert inspect.iscoroutine(called)
    assert asyncio.run(called) == 3


def test_a_task_that_takes_a_context_is_called_without_one_and_gets_a_detached_one(drum, caplog):
    @drum.task
    def tell(ctx: Context, name: str) -> tuple[str, str]:
        ctx.log("called", name=name)
        ctx.progress_sync(0.5)
        return ctx.job_id, name

    with caplog.at_level("INFO", "drumline.task"):
        assert tell("Ada") == ("", "Ada")
    assert "called name='Ada'" in caplog.text
    assert current().job_id == ""


def test_two_different_functions_of_one_name_are_refused_and_both_places_named(drum):
    def one():
        def greet() -> None: ...

        return greet

    def two():
        def greet() -> None: ...

        return greet

    first, second = one(), two()
    drum.task(first)
    with pytest.raises(BadOption) as refused:
        drum.task(second)
    for function in (first, second):
        assert f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}" in str(refused.value)
    assert drum.tasks["greet"].function is first


def test_the_same_function_declared_again_replaces(drum):
    def declare(attempts: int):
        @drum.task(max_attempts=attempts)
        def greet() -> None: ...

        return greet

    declare(2)
    declare(3)
    assert drum.tasks["greet"].options.max_attempts == 3


def test_a_module_that_is_loaded_again_declares_its_tasks_again(drum, folder, monkeypatch):
    (folder / "shop_again.py").write_text("def declare(drum):\n    @drum.task\n    def greet() -> int: return 1\n")
    monkeypatch.syspath_prepend(folder)
    module = importlib.import_module("shop_again")
    module.declare(drum)
    # A line further down, as after an edit.
    (folder / "shop_again.py").write_text("\n\ndef declare(drum):\n    @drum.task\n    def greet() -> int: return 22\n")
    importlib.invalidate_caches()
    importlib.reload(module).declare(drum)
    assert drum.tasks["greet"].function() == 22
    del sys.modules["shop_again"]


TWICE = """
def declare(drum):
    @drum.task
    def greet(x: int) -> None: ...

    @drum.task
    def greet(y: str) -> None: ...
"""


def load(folder, monkeypatch, name, text):
    """A module of that text, forgotten after the test."""
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    module = importlib.import_module(name)
    monkeypatch.delitem(sys.modules, name)
    return module


def test_two_functions_of_one_name_in_one_module_are_refused_and_both_places_named(drum, folder, monkeypatch):
    module = load(folder, monkeypatch, "shop_twice", TWICE)
    with pytest.raises(BadOption) as refused:
        module.declare(drum)
    assert f"at {module.__file__}:3 and {module.__file__}:6: give one of them name=" in str(refused.value)
    assert list(inspect.signature(drum.tasks["greet"].function).parameters) == ["x"]


@pytest.mark.parametrize("how", [["shop_run.py"], ["-m", "shop_run"]])
def test_two_functions_of_one_name_in_the_main_program_are_refused(folder, how):
    text = "from drumline import Drumline\n" + TWICE + "declare(Drumline('memory://'))\n"
    (folder / "shop_run.py").write_text(text)
    ran = subprocess.run([sys.executable, *how], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert "task greet: name must be unique, but two functions declare it" in ran.stderr


@pytest.mark.parametrize(
    ("file", "loader"),
    [("<stdin>", BuiltinImporter), ("<ipython-input-3-0a1b>", None), ("/tmp/ipykernel_7/42.py", None)],
)
def test_what_is_typed_again_at_a_prompt_replaces(drum, file, loader):
    typed = {"__name__": "__main__", "__loader__": loader, "__spec__": None, "drum": drum}
    for answer in (1, 2):
        lines = "\n" * answer
        exec(compile(f"{lines}@drum.task\ndef greet() -> int: return {answer}", file, "exec"), typed)
    assert drum.tasks["greet"].function() == 2


def test_a_task_is_not_made_of_a_task(drum):
    with pytest.raises(BadOption) as refused:

        @drum.task(queue="x")
        @drum.schedule(every="1h")
        def tidy() -> None: ...

    assert str(refused.value) == (
        "task tidy: task must be a function, and not a task already: "
        "write @drum.schedule(…) above @drum.task(…), or give the options to schedule(…), got <Task tidy>"
    )
    assert drum.tasks["tidy"].options.queue == "default"


def test_an_alias_may_not_be_the_name_of_another_task(drum):
    @drum.task
    def greet() -> None: ...

    with pytest.raises(BadOption, match="task greet: name must be unique"):

        @drum.task(aliases=["greet"])
        def welcome() -> None: ...

    assert list(drum.tasks) == ["greet"]


@pytest.mark.asyncio
async def test_a_task_is_found_by_its_alias_and_enqueued_under_its_own_name(drum):
    @drum.task(aliases=["salute"])
    async def greet() -> None: ...

    job = await drum.enqueue("salute")
    assert (await job.refresh()).info.task == "greet"


@pytest.mark.asyncio
async def test_an_unknown_name_is_refused_with_a_suggestion(drum):
    @drum.task
    async def send_welcome_email() -> None: ...

    with pytest.raises(UnknownTask, match="'send_welcom_email' is not registered; did you mean 'send_welcome_email'"):
        await drum.enqueue("send_welcom_email")
    with pytest.raises(UnknownTask, match="import the module that declares it"):
        await drum.enqueue("zzz")


@pytest.mark.asyncio
async def test_a_stub_can_be_enqueued_with_any_arguments_but_not_run(drum):
    encode = drum.stub("encode", queue="video")
    job = await encode.enqueue(path="a.mp4", quality=3)
    stored = (await job.refresh()).info
    assert (stored.task, stored.queue, stored.args) == ("encode", "video", b'{"path":"a.mp4","quality":3}')
    assert "encode" not in drum.tasks
    with pytest.raises(UnknownTask, match="its code lives in another program"):
        encode(path="a.mp4")


@pytest.mark.asyncio
async def test_modules_named_in_imports_are_imported_when_a_task_is_looked_for(folder, monkeypatch):
    (folder / "shop_main.py").write_text(
        "from drumline import Drumline\ndrum = Drumline('memory://', imports=['shop_tasks'])\n"
    )
    (folder / "shop_tasks.py").write_text(
        "from shop_main import drum\n@drum.task\ndef greet(name: str) -> str:\n    return name\n"
    )
    monkeypatch.syspath_prepend(folder)
    drum = importlib.import_module("shop_main").drum
    assert "shop_tasks" not in sys.modules
    assert (await drum.enqueue("greet", name="Ada")).created
    assert list(drum.tasks) == ["greet"]
    for name in ("shop_main", "shop_tasks"):
        del sys.modules[name]


@pytest.mark.asyncio
async def test_a_bad_argument_is_refused_in_the_caller_by_its_path(drum):
    @drum.task
    async def charge(user_id: int) -> None: ...

    with pytest.raises(BadArgument, match="task charge: user_id: expected int, got str"):
        await charge.enqueue(user_id="42")
    with pytest.raises(BadArgument, match="task charge: name: unknown argument"):
        await drum.enqueue("charge", user_id=1, name="x")
    assert (await drum.counts()).unfinished == 0
