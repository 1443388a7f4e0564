import asyncio
import importlib
import json
import os
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from drumline import Drumline
from drumline.cli.root import app
from drumline.model.query import AuditRow
from tests.cli.ledger import Ledger

APP = """
from drumline import Context, Drumline

drum = Drumline()
not_an_app = 3


@drum.task(queue="mail", priority=7, max_attempts=6, backoff="500ms", timeout="30s", tags=["welcome"], retention="2h")
async def send_welcome_email(user_id: int, subject: str = "Welcome") -> str:
    return f"sent to {user_id}"


@drum.task(max_attempts=2, backoff="1ms")
async def fail(ctx: Context, words: str = "boom") -> None:
    ctx.log("about to fail", words=words)
    raise ValueError(words)


@drum.task
def add(a: int, b: int) -> int:
    return a + b
"""


@dataclass(frozen=True)
class Answer:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shop:
    """An app in an empty folder, and the command line in it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.app = f"{name}:drum"
        self.store = f"sqlite:///{folder / 'drumline.db'}"

    def run(self, *words: str, input: str | None = None) -> Answer:
        """Run a command; any exception that it lets through fails the test."""
        result = CliRunner().invoke(app, list(words), input=input, catch_exceptions=False)
        return Answer(result.exit_code, result.stdout, result.stderr)

    def enqueue(self, task: str, args: str = "{}", *options: str) -> str:
        answer = self.run("enqueue", task, args, "--app", self.app, "--json", *options)
        assert answer.code == 0, answer.err
        return str(answer.json["id"])

    def show(self, job_id: str) -> Any:
        return self.run("jobs", "show", job_id, "--store", self.store, "--json").json

    @property
    def drum(self) -> Drumline:
        drum = importlib.import_module(self.app.partition(":")[0]).drum
        assert isinstance(drum, Drumline)
        return drum

    def audit(self) -> list[AuditRow]:
        """Who did what, newest first."""

        async def read() -> list[AuditRow]:
            async with self.drum as drum:
                return list((await (await drum.store()).audit()).items)

        return asyncio.run(read())

    def work(self) -> None:
        """Run what there is to run."""

        async def work() -> None:
            async with self.drum as drum:
                await drum.run(drain=True)

        asyncio.run(work())


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    for variable in os.environ:
        if variable.startswith("DRUMLINE_"):
            monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    # A name of its own: modules stay in memory from one test to the next.
    name = f"shop_{uuid.uuid4().hex}"
    (tmp_path / f"{name}.py").write_text(APP)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return Shop(tmp_path, name)


@pytest.fixture
def ledger(shop: Shop) -> Iterator[Ledger]:
    """The shop's store file, for what a fleet did there."""
    with Ledger(shop.folder / "drumline.db") as opened:
        yield opened
