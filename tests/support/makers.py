"""Every store that has to pass the conformance suite, in one place: adding a store is adding one maker to `ALL`."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from drumline.clock import ManualClock, fresh_id
from drumline.model.instant import to_millis
from drumline.stores.base import Store
from drumline.stores.memory import MemoryStore
from tests.support.broken import BROKEN

# Names of the stores to run the suite on, if not all: how the broken ones are chosen.
CHOICE = "DRUMLINE_TEST_STORES"


@dataclass(frozen=True)
class Maker:
    """How to make a fresh, empty store, and what can be done to it from outside."""

    name: str
    # Opens the store at an address, with a clock.
    open: Callable[[str, ManualClock], Store]
    # An address that no store has used, in a folder of the test's own.
    address: Callable[[Path], str] = str
    # Whether another process that opens the address sees the same jobs.
    is_shared: bool = False
    # Makes the present known to the store at an address that cannot take a clock, such as a server with its own.
    follow: Callable[[str, datetime], None] | None = None
    # A connection as a caller would have it for data of its own, in the same place as the jobs.
    connect: Callable[[str], Any] | None = None
    # Makes the stored schema look as if a later version of Drumline had written it; gives a way to read all of it.
    age: Callable[[str], Callable[[], object]] | None = None


def _open_memory(address: str, clock: ManualClock) -> Store:
    return MemoryStore(clock=clock)


def _open_sqlite(address: str, clock: ManualClock) -> Store:
    from drumline.stores.sqlite import SqliteStore

    # Nothing here cuts the power, so no commit has to wait for the disk.
    return SqliteStore(Path(address), clock=clock, synchronous="normal")


def _age_sqlite(address: str) -> Callable[[], object]:
    with closing(sqlite3.connect(address)) as connection:
        connection.execute(
            "insert into drumline_migration select max(version) + 1000, 'later', '', 0 from drumline_migration"
        )
        connection.commit()

    def read_all() -> object:
        with closing(sqlite3.connect(address)) as connection:
            return list(connection.iterdump())

    return read_all


def _open_redis(address: str, clock: ManualClock) -> Store:
    from tests.support import valkey

    store = valkey.open_store(address)
    valkey.follow(address, clock.now())
    return store


def _redis_address(folder: Path) -> str:
    from tests.support import valkey

    return f"{valkey.shared_url()} t{fresh_id()}"


def _follow_redis(address: str, now: datetime) -> None:
    from tests.support import valkey

    valkey.follow(address, now)


def _age_redis(address: str) -> Callable[[], object]:
    from tests.support import valkey

    return valkey.age(address)


def _open_postgres(address: str, clock: ManualClock) -> Store:
    from drumline.stores.postgres import PostgresStore
    from tests.support.postgres import direct

    url, _, namespace = address.partition(" ")
    return PostgresStore(url, namespace=namespace, listen_url=direct(url))


def _follow_postgres(address: str, now: datetime) -> None:
    from tests.support.postgres import set_clock

    set_clock(address, to_millis(now))


def _connect_postgres(address: str) -> Any:
    import psycopg

    from tests.support.postgres import direct

    url, _, namespace = address.partition(" ")
    # A table of the caller's own lands beside the store's, for many tests share one database.
    return psycopg.connect(direct(url), options=f"-c search_path={namespace}")


def _age_postgres(address: str) -> Callable[[], object]:
    from tests.support.postgres import add_migration, dump

    add_migration(address)
    return lambda: dump(address)


def _address_postgres(folder: Path) -> str:
    from tests.support.postgres import new_address

    return new_address()


ALL = (
    Maker("memory", _open_memory),
    Maker(
        "sqlite",
        _open_sqlite,
        address=lambda folder: str(folder / "jobs.db"),
        is_shared=True,
        connect=sqlite3.connect,
        age=_age_sqlite,
    ),
    Maker(
        "redis",
        _open_redis,
        address=_redis_address,
        is_shared=True,
        follow=_follow_redis,
        age=_age_redis,
    ),
    Maker(
        "postgres",
        _open_postgres,
        address=_address_postgres,
        is_shared=True,
        follow=_follow_postgres,
        connect=_connect_postgres,
        age=_age_postgres,
    ),
)


def _address_newest(folder: Path) -> str:
    from tests.support.postgres import new_address, server_url

    return new_address(server_url("18"))


def _address_pooled(folder: Path) -> str:
    from tests.support.postgres import new_address, pooled_url

    return new_address(pooled_url("16"))


def _address_redis(folder: Path) -> str:
    from tests.support import valkey

    return f"{valkey.redis_url()} t{fresh_id()}"


def _address_cluster(folder: Path) -> str:
    from tests.support import valkey

    return f"{valkey.cluster_url()} t{fresh_id()}"


_REDIS, _POSTGRES = ALL[2:]
OTHER_SERVERS = (
    replace(_POSTGRES, name="postgres-18", address=_address_newest),
    replace(_POSTGRES, name="postgres-pooled", address=_address_pooled),
    replace(_REDIS, name="redis-7", address=_address_redis),
    replace(_REDIS, name="redis-cluster", address=_address_cluster),
)


def racing() -> list[Maker]:
    """The stores that are raced: the chosen ones, and those on other servers, which `make matrix` tests in full."""
    others = () if os.environ.get(CHOICE) else OTHER_SERVERS
    return [*chosen(), *others]


def chosen() -> list[Maker]:
    """The stores that the suite runs on: all of them, or those that the environment names."""
    names = os.environ.get(CHOICE)
    if not names:
        return list(ALL)
    known = {
        maker.name: maker for maker in (*ALL, *OTHER_SERVERS, *(Maker(name, make) for name, make in BROKEN.items()))
    }
    return [known[name] for name in names.split(",")]


def is_chosen(kind: str) -> bool:
    """Whether tests shall run on a store of this kind."""
    names = os.environ.get(CHOICE)
    return not names or kind in names.split(",")


def named(name: str) -> Maker:
    """The maker of that name, for a process that was told only the name."""
    return next(maker for maker in racing() if maker.name == name)
