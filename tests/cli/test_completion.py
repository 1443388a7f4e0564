"""What a shell is told when somebody presses Tab."""

import subprocess
import sys

import pytest

COMMAND = (sys.executable, "-c", "from drumline.cli import main; main()")


def complete(shop, line, monkeypatch):
    words = line.split(" ")
    monkeypatch.setenv("_DRUMLINE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    answer = subprocess.run(COMMAND, cwd=shop.folder, capture_output=True, text=True, timeout=60, check=True)
    assert answer.stderr == ""
    return answer.stdout.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("drumline jo", ["jobs"]),
        ("drumline jobs re", ["retry", "reschedule"]),
        ("drumline schedules ba", ["backfill"]),
        ("drumline jobs list --st", ["--state", "--store"]),
    ],
)
def test_commands_and_options_are_completed(shop, monkeypatch, line, words):
    assert complete(shop, line, monkeypatch) == words


def test_the_shell_s_own_words_are_shown_to_be_installed_by_hand(shop):
    command = f"{sys.executable} -c 'from drumline.cli import main; main()' --show-completion; echo"
    answer = subprocess.run(
        ["bash", "-c", command], cwd=shop.folder, capture_output=True, text=True, timeout=60, check=True
    )
    assert "complete -o default -F _drumline_completion drumline" in answer.stdout
