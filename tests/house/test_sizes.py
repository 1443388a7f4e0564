import warnings

import pytest

from tests.house import ROOT
from tests.house.sizes import Size, measure_functions, measure_modules

MODULE_BUDGET, MODULE_LIMIT = 400, 600
FUNCTION_BUDGET, FUNCTION_LIMIT = 40, 80
TEST_MODULE_LIMIT = 900


def above(limit: int, sizes: list[Size]) -> list[str]:
    return [str(size) for size in sizes if size.lines > limit]


def test_no_module_outgrows_its_limit():
    assert above(MODULE_LIMIT, measure_modules(ROOT / "src")) == []


def test_no_function_outgrows_its_limit():
    assert above(FUNCTION_LIMIT, measure_functions(ROOT / "src")) == []


def test_no_test_module_outgrows_its_limit():
    assert above(TEST_MODULE_LIMIT, measure_modules(ROOT / "tests")) == []


@pytest.mark.filterwarnings("default")
def test_what_is_above_budget_is_named_but_not_refused():
    modules = above(MODULE_BUDGET, measure_modules(ROOT / "src"))
    functions = above(FUNCTION_BUDGET, measure_functions(ROOT / "src"))
    if modules or functions:
        summary = f"sizes: {len(modules)} modules and {len(functions)} functions are above budget"
        warnings.warn("\n  ".join([summary, *modules, *functions]), stacklevel=1)


def test_a_module_is_measured_in_lines(tmp_path):
    (tmp_path / "long.py").write_text("x = 1\n" * 601)
    assert above(600, measure_modules(tmp_path)) == ["long.py has 601 lines"]


def test_a_function_is_measured_without_its_docstring(tmp_path):
    (tmp_path / "work.py").write_text('async def do():\n    """Do.\n\n    More.\n    """\n    a = 1\n    return a\n')
    assert measure_functions(tmp_path) == [Size("work.py:1 do", 3)]
