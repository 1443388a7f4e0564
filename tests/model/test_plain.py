import pytest

from drumline.model.plain import clean, clean_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Grüße 🥁", "Grüße 🥁"),
        ("two\nlines", "two\\nlines"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("half \ud800", "half \\ud800"),
        ("[red]not markup[/red]", "[red]not markup[/red]"),
    ],
)
def test_what_would_steer_a_terminal_is_escaped(text, shown):
    assert clean(text) == shown


def test_lines_stay_lines_where_they_are_wanted():
    assert clean_lines("a\n\tb\x1b") == "a\n    b\\x1b"
