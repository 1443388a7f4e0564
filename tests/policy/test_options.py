import pytest

from drumline.errors import BadOption
from drumline.policy.options import list_modules


def test_modules_are_named_in_a_list():
    assert list_modules(["shop.tasks", "shop.more"], "imports") == ("shop.tasks", "shop.more")
    assert list_modules((), "imports") == ()


@pytest.mark.parametrize("given", ["json", b"json", [pytest], {"json": 1}, None])
def test_what_is_no_list_of_names_is_refused(given):
    with pytest.raises(BadOption, match="imports must be a list of names of modules, got"):
        list_modules(given, "imports")
