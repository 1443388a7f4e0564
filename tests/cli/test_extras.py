"""Commands in a Python that lacks what an extra would bring: one sentence, and no traceback."""

import subprocess
import sys

import pytest

# Stands before every other way to find a module, as if the packages were not installed.
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages}:
            raise {error}

sys.meta_path.insert(0, Missing())
from drumline.cli.root import main

main()
"""
NOT_FOUND = 'ModuleNotFoundError(f"No module named {name!r}", name=name)'
# What psycopg says where it finds no libpq.
NO_LIBRARY = 'ImportError("no pq wrapper available.\\nAttempts made:\\n- libpq library not found")'


def run(shop, packages, *words, error=NOT_FOUND):
    program = WITHOUT.replace("{packages}", repr(packages)).replace("{error}", error)
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, cwd=shop.folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("packages", "error", "words", "says"),
    [
        (
            ("psycopg", "psycopg_binary"),
            NOT_FOUND,
            ("jobs", "list", "--store", "postgresql://u:secret@h/db"),
            "store URL 'postgresql://u:***@h/db': the driver for Postgres is missing: pip install 'drumline[postgres]'",
        ),
        (
            ("psycopg", "psycopg_binary"),
            NO_LIBRARY,
            ("doctor", "--store", "postgresql://h/db"),
            "store URL 'postgresql://h/db': the driver for Postgres is missing: pip install 'drumline[postgres]'",
        ),
        (
            ("redis",),
            NOT_FOUND,
            ("migrate", "--store", "redis://h/0"),
            "store URL 'redis://h/0': the driver for Redis is missing: pip install 'drumline[redis]'",
        ),
        (
            ("starlette",),
            NOT_FOUND,
            ("web", "APP"),
            "the pages need the package starlette: pip install 'drumline[web]'",
        ),
        (
            ("uvicorn",),
            NOT_FOUND,
            ("run", "APP", "--web", "127.0.0.1:0"),
            "the pages need the package uvicorn: pip install 'drumline[web]'",
        ),
    ],
)
def test_what_is_missing_is_named_with_the_words_that_bring_it(shop, packages, error, words, says):
    ended = run(shop, packages, *(shop.app if word == "APP" else word for word in words), error=error)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"drumline: {says}\n"


def test_an_app_that_installs_pages_in_itself_is_told_too(shop):
    (shop.folder / "site_.py").write_text("from drumline import Drumline\ndrum = Drumline()\npages = drum.asgi()\n")
    ended = run(shop, ("jinja2",), "worker", "site_:drum")
    assert ended.returncode == 2
    assert ended.stderr == "drumline: this needs the package jinja2: pip install 'drumline[web]'\n"
