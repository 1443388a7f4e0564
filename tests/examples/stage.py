"""Runs a program of examples/ as its reader would: in its own folder, as processes of their own, on a fresh store."""

import asyncio
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from drumline import Drumline
from tests.end_to_end.fleet import PATIENCE, until
from tests.end_to_end.homes import Home

EXAMPLES = Path(__file__).parents[2] / "examples"
BIN = Path(sys.executable).parent


class Stage:
    """One example and its processes."""

    def __init__(self, folder: Path, home: Home, log: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.drum = Drumline(home.url, namespace=home.namespace)
        self.processes: list[subprocess.Popen[bytes]] = []
        self._log = log.open("ab")
        # What a reader types is found among the programs of this environment.
        outside = {name: value for name, value in os.environ.items() if not name.startswith("DRUMLINE_")}
        self.environment = {**outside, "PATH": f"{BIN}:{os.environ['PATH']}", **home.settings, **environment}
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def start(self, *command: str, **more: str) -> subprocess.Popen[bytes]:
        """Start a program that goes on until it is stopped."""
        environment = self.environment | more
        process = subprocess.Popen(command, cwd=self.folder, env=environment, stdout=self._log, stderr=self._log)
        self.processes.append(process)
        return process

    def run(self, *command: str, **more: str) -> str:
        """Run a program to its end, which has to be a good one; what it printed."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment | more,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def done(self, task: str) -> int:
        """How many jobs of this task are done."""
        return sum(count.done for count in self.drum.sync.counts() if count.task == task)

    def log(self) -> str:
        return Path(self._log.name).read_text()

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self._log.close()
        asyncio.run(self.drum.close())


@contextmanager
def stage(folder: str, home: Home, log: Path, environment: Mapping[str, str] | None = None) -> Iterator[Stage]:
    running = Stage(EXAMPLES / folder, home, log, environment or {})
    try:
        yield running
    finally:
        running.close()


class Site:
    """A program that serves HTTP on a port of this host."""

    def __init__(self, port: int, token: str = "") -> None:
        self._port = port
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def ask(self, method: str, path: str, form: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Ask, and give status and body; status 0 if nobody answers."""
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)) as connection:
            body = None if form is None else urlencode(form)
            kind = {} if form is None else {"Content-Type": "application/x-www-form-urlencoded"}
            try:
                connection.request(method, path, body, self._headers | kind)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            except (ConnectionError, http.client.HTTPException):
                return 0, ""

    def get_json(self, path: str) -> Any:
        status, body = self.ask("GET", path)
        assert status == 200, body
        return json.loads(body)

    def post_json(self, path: str, status: int, form: Mapping[str, str] | None = None) -> Any:
        answered, body = self.ask("POST", path, form)
        assert answered == status, body
        return json.loads(body)

    def wait(self, path: str) -> None:
        """Wait until it serves this path."""
        until(lambda: self.ask("GET", path)[0] == 200, f"it serves {path}")


__all__ = ["BIN", "EXAMPLES", "Site", "Stage", "stage"]
