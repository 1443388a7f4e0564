import sys
from types import ModuleType

import pytest

from drumline import BadOption, Drumline, UnknownTask
from drumline.engine.border import Main
from drumline.engine.finding import Address, check_can_be_found, find_main, find_task, locate
from drumline.policy.task import define
from tests.engine import process_tasks

HERE = process_tasks.__name__


def at_home() -> None: ...


class Touchy:
    """Fails when it is looked at, as a proxy without its request does."""

    def __getattr__(self, name):
        raise RuntimeError("no request")


def test_a_task_is_found_where_it_is_written():
    found = find_task(Address(HERE, "plain"), "plain")
    assert found is process_tasks.plain
    assert found.lifespan is process_tasks.lifespan


def test_a_task_is_found_under_another_name_and_by_its_alias():
    for name in ("renamed", "older"):
        assert find_task(Address(HERE, "written_here"), name) is process_tasks.renamed


def test_what_is_not_there_is_said_with_where_it_was_looked_for():
    with pytest.raises(UnknownTask, match=f"task 'strange' is not plain of module {HERE} in a child process"):
        find_task(Address(HERE, "plain"), "strange")


def test_the_address_of_a_task_is_its_module_and_name():
    assert locate(process_tasks.plain.definition) == Address(HERE, "plain")


def test_a_task_that_is_declared_elsewhere_than_it_is_written_has_the_address_of_its_declaration(monkeypatch):
    module = ModuleType("tests_made_up")
    chore = Drumline("memory://").task(executor="process")(at_home)
    vars(module).update(touchy=Touchy(), chore=chore)
    monkeypatch.setitem(sys.modules, "tests_made_up", module)
    address = locate(chore.definition)
    assert address == Address("tests_made_up", "chore")
    assert find_task(address, "at_home") is chore


def test_a_task_that_stands_nowhere_is_refused():
    with pytest.raises(BadOption, match=r"task at_home: executor must be given to a task that stands in a module"):
        locate(define(at_home, executor="process"))


def test_a_function_inside_another_is_refused_where_it_is_declared():
    def inner() -> None: ...

    with pytest.raises(BadOption, match=r"task inner: executor must be given to a function of a module, .* 'process'"):
        Drumline("memory://").task(executor="process")(inner)
    with pytest.raises(BadOption, match="task nameless: executor must be"):
        Drumline("memory://").task(executor="process", name="nameless")(lambda: None)


def test_a_stub_may_say_what_it_likes():
    assert Drumline("memory://").stub("elsewhere", executor="process").name == "elsewhere"


def test_without_a_file_the_main_program_cannot_be_loaded_elsewhere(monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    assert find_main() is None
    monkeypatch.setattr(at_home, "__module__", "__main__")
    with pytest.raises(BadOption, match=r"task at_home: executor must be given to a function of a file"):
        check_can_be_found(define(at_home, executor="process"))


def test_the_main_program_is_a_file_or_a_module_that_was_run_by_name(monkeypatch):
    script = ModuleType("__main__")
    script.__file__ = "app.py"
    monkeypatch.setitem(sys.modules, "__main__", script)
    assert find_main() == Main(None, "app.py")
    script.__spec__ = sys.modules[HERE].__spec__
    assert find_main() == Main(HERE, "app.py")
