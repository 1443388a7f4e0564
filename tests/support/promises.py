"""Quoting the promises of the store protocol, and finding what no test quotes.

A test says what it proves by the words of the docstring: `@promises("claim", "Paused queues give nothing")`. The first
word is the method (`Listener.watch`, or just `claim` for one of `Store`), a class, or `base` for the module.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

Test = TypeVar("Test", bound=Callable[..., object])

_WORD = re.compile(r"[^\s.,;:()]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*])")


class Quote(NamedTuple):
    """What a test says that it proves."""

    test: str
    about: str
    text: str


def promises(about: str, *texts: str) -> Callable[[Test], Test]:
    """Say which sentences, or parts of one, the test proves. Read from the source, so it leaves the test as it is."""
    assert texts, f"a test of {about} quotes nothing"
    return lambda test: test


def read_promises(module: Path) -> dict[str, str]:
    """The docstrings of a module, its public classes and their methods, each as one line."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    found = {module.stem: ast.get_docstring(tree)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = ast.get_docstring(node)
            for item in node.body:
                if isinstance(item, ast.FunctionDef):
                    prefix = "" if node.name == "Store" else f"{node.name}."
                    found[prefix + item.name] = ast.get_docstring(item)
    return {name: " ".join(text.split()) for name, text in found.items() if text}


def read_quotes(folder: Path) -> list[Quote]:
    """What the tests in the folder quote, by decorator."""
    return [quote for path in sorted(folder.rglob("test_*.py")) for quote in _quotes_of(path)]


def find_unquoted(docstring: str, quotes: list[str]) -> list[str]:
    """The sentences of which some word is in no quote, with those words in brackets."""
    is_quoted = [False] * len(docstring)
    for quote in quotes:
        start = docstring.find(quote)
        if start >= 0:
            is_quoted[start : start + len(quote)] = [True] * len(quote)
    unquoted = []
    for start, sentence in _sentences(docstring):
        missing = [
            word.group()
            for word in _WORD.finditer(sentence)
            if not all(is_quoted[start + word.start() : start + word.end()])
        ]
        if missing:
            unquoted.append(f"{sentence} [{' '.join(missing)}]")
    return unquoted


def _sentences(docstring: str) -> Iterator[tuple[int, str]]:
    start = 0
    for sentence in _SENTENCE.split(docstring):
        start = docstring.index(sentence, start)
        yield start, sentence
        start += len(sentence)


def _quotes_of(path: Path) -> Iterator[Quote]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
            continue
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "promises":
                about, *texts = (ast.literal_eval(argument) for argument in call.args)
                yield from (Quote(f"{path.name}::{node.name}", about, text) for text in texts)
