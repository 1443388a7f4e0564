import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from tests.house import ROOT
from tests.house.documents import find_faults, read_blocks, read_commands, read_targets

DRUMLINE = Path(sys.executable).with_name("drumline")
DEADLINE_S = 50


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("DRUMLINE_")}


def run_blocks(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a page in a process of its own, as a reader with an empty folder would."""
    return subprocess.run(
        [sys.executable, "-m", "tests.house.run_page", str(page)],
        cwd=folder,
        env={**clean_environment(), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


@lru_cache
def refuse_command(words: tuple[str, ...]) -> str | None:
    """Ask the command line whether it knows this command and its options, without doing what it says."""
    # --help is answered after the words are parsed and before anything is done.
    answer = subprocess.run(
        [DRUMLINE, *words, "--help"],
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return f"drumline {' '.join(words)}: {answer.stderr.strip()}" if answer.returncode else None


def find_unknown_targets(commands: list[tuple[str, ...]], makefile: Path) -> list[str]:
    targets = read_targets(makefile)
    return [
        word
        for command in commands
        if command[0] == "make"
        for word in command[1:]
        if not word.startswith("-") and "=" not in word and word not in targets
    ]


def test_blocks_of_the_document_are_what_they_claim(document):
    assert find_faults(read_blocks(document.read_text())) == []


def test_python_blocks_of_the_document_run(document, tmp_path):
    if not any(block.is_run for block in read_blocks(document.read_text())):
        return
    result = run_blocks(document, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


# Each command is a process of its own.
@pytest.mark.timeout(240)
def test_commands_of_the_document_exist(document):
    commands = read_commands(read_blocks(document.read_text()))
    ours = [command for command in commands if Path(command[0]).name == "drumline"]
    assert [refusal for command in ours if (refusal := refuse_command(command[1:]))] == []
    assert find_unknown_targets(commands, ROOT / "Makefile") == []


def test_blocks_share_names_and_one_loop(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nimport asyncio\nloop = []\nasync def note():\n    loop.append(asyncio.get_running_loop())\n```\n"
        "```python\nawait note()\n```\n```python\nawait note()\nassert loop[0] is loop[1]\nprint(__name__)\n```\n"
    )
    assert run_blocks(page, tmp_path).stdout == "__main__\n"


def test_a_block_without_await_runs_outside_the_loop(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nimport asyncio\nasyncio.run(asyncio.sleep(0))\n```\n")
    assert run_blocks(page, tmp_path).stderr == ""


def test_a_failing_block_names_the_line_of_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nx = 1\nraise ValueError(x)\n```\n")
    result = run_blocks(page, tmp_path)
    assert result.returncode == 1
    assert f'"{page}", line 5' in result.stderr


@pytest.mark.parametrize("info", ["python no-run", "python fragment"])
def test_a_block_is_left_out_only_for_a_reason(info):
    block = f"```{info}\nawait elsewhere()\n```\n"
    assert find_faults(read_blocks(block)) == [
        f"line 2: {info.split()[1]} needs a line above it: <!-- not run: the reason -->"
    ]
    explained = read_blocks(f"<!-- not run: needs a server -->\n{block}")
    assert find_faults(explained) == []
    assert not explained[0].is_run


@pytest.mark.parametrize("block", ["```toml\na = \n```", "```py\nx\n```", "```python quickly\nx\n```"])
def test_a_block_that_is_not_what_it_claims_is_a_fault(block):
    assert len(find_faults(read_blocks(block))) == 1


def test_an_indented_block_is_read_without_its_indent():
    (block,) = read_blocks("1. Write\n\n   ```python\n   if x:\n       y()\n   ```\n")
    assert block.text == "if x:\n    y()\n"


def test_commands_are_read_from_console_and_shell_blocks():
    page = (
        "```console\n$ A=1 drumline run app:drum \\\n    --web :8000 &\nlistening\n$ make test | tail\n```\n"
        "```bash\n# a comment\npip install drumline && drumline demo\n```\n"
    )
    assert read_commands(read_blocks(page)) == [
        ("drumline", "run", "app:drum", "--web", ":8000"),
        ("make", "test"),
        ("tail",),
        ("pip", "install", "drumline"),
        ("drumline", "demo"),
    ]


def test_a_make_target_that_does_not_exist_is_found(tmp_path):
    makefile = tmp_path / "Makefile"
    makefile.write_text("PIP := pip\ntest: x  ## run\n\tpytest\n")
    assert find_unknown_targets([("make", "test", "ARGS=-x"), ("make", "tset")], makefile) == ["tset"]


def test_a_command_that_exists_is_not_refused():
    assert refuse_command(("enqueue", "greet", '{"name": "Ada"}', "--json")) is None


def test_a_command_that_does_not_exist_is_refused():
    assert refuse_command(("no-such-command",)) is not None
    assert refuse_command(("jobs", "no-such-command")) is not None
    assert refuse_command(("demo", "--no-such-option")) is not None
