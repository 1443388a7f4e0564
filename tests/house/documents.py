"""Reads the fenced blocks of a Markdown page, and says what a test can see to be wrong with them."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^`]*)$")
REASON = re.compile(r"^ *<!-- not run: \S.* -->$")
SKIPPED = ("no-run", "fragment")
COMMAND_END = re.compile(r"^[|&;()<>]+$")
ASSIGNMENT = re.compile(r"^\w+=")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its info string, its text, the line of its first line, and the line above the fence."""

    info: str
    text: str
    line: int
    above: str

    @property
    def language(self) -> str:
        return self.info.split()[0] if self.info else ""

    @property
    def is_run(self) -> bool:
        return self.info == "python"


def read_blocks(page: str) -> list[Block]:
    """Read the blocks of a page, in order."""
    blocks, lines = [], enumerate(page.splitlines(), start=1)
    above = ""
    for number, line in lines:
        if opening := FENCE.match(line):
            body = _body(lines, len(opening["indent"]))
            blocks.append(Block(opening["info"].strip(), body, number + 1, above))
        if line.strip():
            above = line
    return blocks


def find_faults(blocks: list[Block]) -> list[str]:
    """Say which blocks cannot be read as what they claim to be, or ask not to be run without a reason."""
    return [f"line {block.line}: {fault}" for block in blocks if (fault := _fault(block))]


def read_commands(blocks: list[Block]) -> list[tuple[str, ...]]:
    """List the commands that console and shell blocks show, as words, without variables set in front."""
    return [
        command
        for block in blocks
        if block.language in ("console", "bash", "sh")
        for line in _command_lines(block)
        for command in _simple_commands(line)
    ]


def read_targets(makefile: Path) -> set[str]:
    """List the targets that a Makefile offers by name."""
    return set(re.findall(r"^([a-z][a-z-]*):(?!=)", makefile.read_text(), flags=re.MULTILINE))


def _body(lines: Iterator[tuple[int, str]], indent: int) -> str:
    body = []
    for _, line in lines:
        if line.strip() == "```":
            break
        body.append(line[indent:] if not line[:indent].strip() else line)
    return "".join(f"{line}\n" for line in body)


def _fault(block: Block) -> str | None:
    match block.info.split():
        case [("py" | "python3" | "pycon") as language, *_]:
            return f"write python, not {language}: only those blocks are run"
        case ["python", word] if word in SKIPPED:
            return None if REASON.match(block.above) else f"{word} needs a line above it: <!-- not run: the reason -->"
        case ["python", *words] if words:
            return f"unknown words after python: {' '.join(words)}"
        case ["toml", *_]:
            return _toml_fault(block.text)
        case _:
            return None


def _toml_fault(text: str) -> str | None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return f"not TOML: {error}"
    return None


def _command_lines(block: Block) -> list[str]:
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [line for line in lines if line.strip()]


def _simple_commands(line: str) -> Iterator[tuple[str, ...]]:
    words: list[str] = []
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    for word in [*lexer, ";"]:
        if not COMMAND_END.match(word):
            words.append(word)
            continue
        while words and ASSIGNMENT.match(words[0]):
            words.pop(0)
        if words:
            yield tuple(words)
        words = []
