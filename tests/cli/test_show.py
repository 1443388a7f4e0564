import re
import sys

from drumline.cli import show
from drumline.cli.show import show_json, show_table


def test_json_is_ascii_and_stable(capsys):
    show_json({"b": "ü\x9b", "a": 2**70})
    assert capsys.readouterr().out == '{\n  "b": "\\u00fc\\u009b",\n  "a": 1180591620717411303424\n}\n'


def test_a_piped_table_is_aligned_and_whole(capsys):
    show_table(("id", "error"), [("1", "x" * 300), ("22", "")])
    assert capsys.readouterr().out == f"ID  ERROR\n1   {'x' * 300}\n22\n"


def test_a_table_without_rows_is_its_head(capsys):
    show_table(("id", "error"), [])
    assert capsys.readouterr().out == "ID  ERROR\n"


def test_a_table_on_a_terminal_is_cut_but_for_the_id(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    id_ = "01a1e190-9708-7263-943d-55ea0db35599"
    show_table(("id", "state", "last error"), [(id_, "dead", "[red]" + "x" * 300)])
    out = capsys.readouterr().out
    assert id_ in out
    assert "[red]xxx" in out
    assert "…" in out
    assert max(len(re.sub("\x1b\\[[0-9;]*m", "", line)) for line in out.splitlines()) <= 80


def test_a_complaint_goes_where_errors_go(capsys):
    show.complain("no\nway")
    assert capsys.readouterr() == ("", "drumline: no\\nway\n")
