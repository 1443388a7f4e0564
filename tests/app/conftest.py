import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from drumline import Drumline


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and no settings but those of the test."""
    for variable in os.environ:
        if variable.startswith("DRUMLINE_"):
            monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def drum() -> Drumline:
    return Drumline("memory://")


@pytest.fixture(params=["memory://", "sqlite:///jobs.db"], ids=["memory", "sqlite"])
def any_drum(request: pytest.FixtureRequest) -> Iterator[Drumline]:
    """The same program on each store."""
    drum = Drumline(request.param)
    yield drum
    asyncio.run(drum.close())
