"""Runs the Python blocks of one Markdown page in order, in one namespace and one event loop, as a reader would.

Run as a program, in an empty folder: python run_page.py PAGE.md
"""

import ast
import asyncio
import inspect
import sys
from pathlib import Path
from types import ModuleType

from tests.house.documents import Block, read_blocks


def run_page(page: Path) -> None:
    """Run every block that is meant to be run; the first error ends it, with the page's line in the traceback."""
    # A module of its own, so that a block cannot lean on what this program imports.
    module = sys.modules["__main__"] = ModuleType("__main__")
    with asyncio.Runner() as runner:
        for block in read_blocks(page.read_text()):
            if block.is_run:
                _run_block(block, page, vars(module), runner)


def _run_block(block: Block, page: Path, namespace: dict[str, object], runner: asyncio.Runner) -> None:
    # The leading newlines make line numbers those of the page.
    source = "\n" * (block.line - 1) + block.text
    code = compile(source, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    # Only a block that awaits runs inside the loop: the blocking verbs refuse to work there.
    awaitable = eval(code, namespace)
    if inspect.iscoroutine(awaitable):
        runner.run(awaitable)


if __name__ == "__main__":
    run_page(Path(sys.argv[1]))
