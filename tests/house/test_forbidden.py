import pytest

from tests.house import ROOT
from tests.house.forbidden import find_forbidden


def test_no_file_holds_a_forbidden_text():
    assert find_forbidden(ROOT) == []


@pytest.mark.parametrize(
    "text",
    ["https://pypi" + ".org/simple", "-" + "-index-url x", "cd /" + "root/drumline", "'/" + "work/main'"],
)
def test_a_forbidden_text_is_found_in_any_file(tmp_path, text):
    (tmp_path / "notes.md").write_text(f"first line\n{text}\n")
    assert find_forbidden(tmp_path)[0].startswith("notes.md:2: ")


def test_notes_to_self_are_found_in_the_source_only(tmp_path):
    for folder in ("src", "docs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "page.txt").write_text("# TODO later")
    assert find_forbidden(tmp_path) == ["src/page.txt:1: note to self: TODO"]


def test_harmless_text_is_left_alone(tmp_path):
    (tmp_path / "page.md").write_text("tests/root/x, example.com/work/, $HOME/work/")
    assert find_forbidden(tmp_path) == []
