"""Measures modules and functions; a docstring does not count against its function."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Size:
    """How many lines something has, and where it begins."""

    place: str
    lines: int

    def __str__(self) -> str:
        return f"{self.place} has {self.lines} lines"


def measure_modules(folder: Path) -> list[Size]:
    """Measure every module below the folder."""
    return [
        Size(str(path.relative_to(folder)), len(path.read_text().splitlines())) for path in sorted(folder.rglob("*.py"))
    ]


def measure_functions(folder: Path) -> list[Size]:
    """Measure every function and method below the folder; an inner one counts in the outer one too."""
    return [size for path in sorted(folder.rglob("*.py")) for size in _functions(path, path.relative_to(folder))]


def _functions(path: Path, shown: Path) -> Iterator[Size]:
    for node in ast.walk(ast.parse(path.read_text(), filename=str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = _span(node) - (_span(node.body[0]) if ast.get_docstring(node) else 0)
            yield Size(f"{shown}:{node.lineno} {node.name}", lines)


def _span(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1
