"""A private pgbouncer in transaction mode, before a server."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from drumline.clock import pause
from tests.support.ports import free_port
from tests.support.postgres import as_nobody, die_with_parent
from tests.support.require import give_up

_DEADLINE = 20.0
_SETTINGS = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
auth_file =
pool_mode = transaction
max_client_conn = 500
default_pool_size = 10
logfile =
pidfile =
"""


@contextmanager
def new_pooler(url: str) -> Iterator[str]:
    """A URL that leads to the same database through a pooler."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        give_up("pgbouncer is not installed")
    parts, listen = urlsplit(url), free_port()
    with tempfile.TemporaryDirectory(prefix="drumline-pooler-") as folder:
        file = Path(folder) / "pgbouncer.ini"
        file.write_text(_SETTINGS.format(host=parts.hostname, port=parts.port, user=parts.username, listen=listen))
        Path(folder).chmod(0o755)
        process = subprocess.Popen(
            [program, str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - it takes no lock
            **as_nobody(),
        )
        pooled = parts._replace(netloc=f"{parts.username}@127.0.0.1:{listen}").geturl()
        try:
            _wait(pooled, process)
            yield pooled
        finally:
            process.kill()
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(int(_DEADLINE * 100)):
        assert process.poll() is None, "pgbouncer has ended"
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            pause(0.01)
        else:
            return
    raise TimeoutError("pgbouncer does not answer")
