"""Finding the app, and what is said when it is not found."""

import pytest

BROKEN = "import os\n\nvalue = 1 / 0\n"


def test_the_app_is_found_in_the_current_folder(shop):
    assert shop.run("tasks", "--app", shop.app).code == 0


def test_the_app_is_named_by_the_environment(shop, monkeypatch):
    monkeypatch.setenv("DRUMLINE_APP", shop.app)
    assert shop.run("tasks").code == 0


def test_the_app_is_named_by_the_settings_file(shop):
    (shop.folder / "drumline.toml").write_text(f'app = "{shop.app}"\n')
    assert shop.run("tasks").code == 0


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (None, "no app is named"),
        ("shop", "app 'shop' is not understood"),
        ("no_such_module:drum", "there is no module no_such_module"),
        ("{module}:dram", "has no dram; it has drum"),
        ("{module}:not_an_app", "is a int, not a Drumline"),
    ],
)
def test_a_wrong_app_is_refused_in_one_sentence(shop, name, sentence):
    module = shop.app.partition(":")[0]
    words = [] if name is None else ["--app", name.format(module=module)]
    answer = shop.run("tasks", *words)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("drumline: ")
    assert answer.err.count("\n") == 1
    assert sentence in answer.err


def test_an_error_in_the_apps_own_code_names_its_place(shop):
    (shop.folder / "broken_shop.py").write_text(BROKEN)
    answer = shop.run("tasks", "--app", "broken_shop:drum")
    assert answer.code == 2
    assert "broken_shop.py:3: ZeroDivisionError: division by zero" in answer.err
    assert answer.err.count("\n") == 1


def test_a_syntax_error_in_the_apps_own_code_names_its_place(shop):
    (shop.folder / "unreadable_shop.py").write_text("x = 1\ndef\n")
    answer = shop.run("tasks", "--app", "unreadable_shop:drum")
    assert answer.code == 2
    assert "unreadable_shop.py:2: SyntaxError" in answer.err


def test_a_module_that_the_app_misses_is_not_taken_for_the_app(shop):
    (shop.folder / "hungry_shop.py").write_text("import no_such_library\n")
    answer = shop.run("tasks", "--app", "hungry_shop:drum")
    assert "hungry_shop.py:1: ModuleNotFoundError: No module named 'no_such_library'" in answer.err


def test_a_bad_option_of_a_task_is_told_as_code_would_tell_it(shop):
    (shop.folder / "odd_shop.py").write_text(
        "from drumline import Drumline\ndrum = Drumline()\n@drum.task(max_attempts=0)\ndef work(): ...\n"
    )
    answer = shop.run("tasks", "--app", "odd_shop:drum")
    assert answer.code == 2
    assert answer.err == "drumline: task work: max_attempts must be a whole number of 1 or more, got 0\n"


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("no_such_tasks", "there is no module no_such_tasks, here or installed"),
        ("broken_tasks", "broken_tasks.py:3: ZeroDivisionError: division by zero"),
    ],
)
@pytest.mark.parametrize("words", [("tasks", "--app"), ("schedules", "--app"), ("enqueue", "ring", "--app")])
def test_a_module_of_the_imports_that_cannot_be_had_is_named_in_one_sentence(shop, monkeypatch, words, module, says):
    (shop.folder / "broken_tasks.py").write_text(BROKEN)
    monkeypatch.setenv("DRUMLINE_IMPORTS", module)
    answer = shop.run(*words, shop.app)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"drumline: imports '{module}': ")
    assert says in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("words", [("schedules", "list"), ("ledger",), ("ledger", "verify"), ("jobs", "list")])
def test_the_store_alone_needs_none_of_the_modules_that_the_settings_name(shop, monkeypatch, words):
    monkeypatch.setenv("DRUMLINE_IMPORTS", "no_such_tasks")
    assert shop.run(*words, "--store", shop.store).code == 0


def test_app_and_store_together_are_refused(shop):
    assert shop.run("jobs", "list", "--app", shop.app, "--store", shop.store).code == 2


def test_a_command_that_needs_no_code_works_with_the_store_alone(shop):
    job_id = shop.enqueue("add", '{"a": 1, "b": 2}')
    (shop.folder / f"{shop.app.partition(':')[0]}.py").unlink()
    assert [job["id"] for job in shop.run("jobs", "list", "--store", shop.store, "--json").json] == [job_id]
