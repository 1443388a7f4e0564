import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from drumline.clock import ManualClock
from drumline.stores.sqlite import SqliteStore
from drumline.stores.sqlite.connect import Place


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def store(path: Path, clock: ManualClock) -> Iterator[SqliteStore]:
    """A migrated store on a file of its own."""
    made = SqliteStore(path, clock=clock, synchronous="normal")
    made.migrate().run()
    yield made
    made.close().run()


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What every writer that connects from now on says to SQLite."""
    said: list[str] = []
    connect = Place.connect_writer

    def connect_and_listen(place: Place) -> sqlite3.Connection:
        connection = connect(place)
        connection.set_trace_callback(said.append)
        return connection

    monkeypatch.setattr(Place, "connect_writer", connect_and_listen)
    return said
