"""A fleet of real worker processes on one store."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import psutil

from drumline import Drumline
from drumline.model.job import Attempt, Job
from drumline.model.query import Counts
from drumline.model.replica import Replica
from tests.end_to_end.homes import Home
from tests.support.skew import skewed

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-c", "from drumline.cli import main; main()")
APP = "tests.end_to_end.band:drum"
NONE = timedelta()
# A command may take long to start on a machine that has other things to do.
PATIENCE = 120.0


class Fleet:
    """Workers, the store they share, and the ledger of what they did."""

    def __init__(self, folder: Path, home: Home, app: str = APP) -> None:
        self.app = app
        self.home = home
        self.ledger = folder / "ledger.txt"
        self.ledger.touch()
        self.drum = Drumline(home.url, namespace=home.namespace)
        self.workers: list[subprocess.Popen[bytes]] = []
        self._log = (folder / "workers.log").open("ab")
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("DRUMLINE_")},
            **home.settings,
            "DRUMLINE_TEST_LEDGER": str(self.ledger),
            "PYTHONPATH": str(ROOT),
        }

    def start(
        self, *options: str, command: str = "worker", skew: timedelta = NONE, **settings: str
    ) -> subprocess.Popen[bytes]:
        """Start one more worker, or by `run` a scheduler too; settings by variable, `DRUMLINE_` left out."""
        return self.launch([*COMMAND, command, self.app, *options], skew, **settings)

    def launch(self, command: Sequence[str], skew: timedelta = NONE, /, **settings: str) -> subprocess.Popen[bytes]:
        """Start one more process on the fleet's store, by whose clock it is so much later."""
        given = {f"DRUMLINE_{name}": value for name, value in settings.items()}
        environment = self._environment | given | skewed(skew)
        worker = subprocess.Popen(command, env=environment, stdout=self._log, stderr=self._log)
        self.workers.append(worker)
        return worker

    def put_to_sleep(self, worker: subprocess.Popen[bytes]) -> None:
        """Stop a worker in its tracks, but not in the midst of a write: there it would hold up all others."""
        process = psutil.Process(worker.pid)
        while True:
            worker.send_signal(signal.SIGSTOP)
            until(lambda: process.status() == psutil.STATUS_STOPPED, "the worker sleeps")
            if self.home.is_at_rest():
                return
            worker.send_signal(signal.SIGCONT)

    def command(self, *words: str, skew: timedelta = NONE) -> subprocess.CompletedProcess[bytes]:
        """Run a command of `drumline` on the fleet's store."""
        environment = self._environment | skewed(skew)
        return subprocess.run([*COMMAND, *words], env=environment, capture_output=True, check=False, timeout=PATIENCE)

    def program(self, module: str, *words: str, skew: timedelta = NONE) -> str:
        """Run a module as a program on the fleet's store; what it prints."""
        words = (sys.executable, "-m", module, *words)
        environment = self._environment | skewed(skew)
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def lines(self, word: str) -> list[list[str]]:
        """The ledger's lines that begin with a word."""
        return [line.split() for line in self.ledger.read_text().splitlines() if line.startswith(f"{word} ")]

    def counts(self) -> Counts:
        return self.drum.sync.counts()

    def jobs(self, **where: Any) -> list[Job]:
        return [handle.info for handle in self.drum.sync.jobs.find(**where)]

    def job(self, job_id: str) -> Job:
        return self.drum.sync.jobs.get(job_id).info

    def replicas(self) -> list[Replica]:
        return self.drum.sync.workers()

    def log(self) -> str:
        self._log.flush()
        return Path(self._log.name).read_text()

    def close(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.wait()
        self._log.close()
        asyncio.run(self.drum.close())


@contextmanager
def fleet(folder: Path, home: Home, app: str = APP) -> Iterator[Fleet]:
    band = Fleet(folder, home, app)
    try:
        yield band
    finally:
        band.close()


def runs_of(job: Job) -> list[Attempt]:
    """The attempts that count: one may have been claimed a moment ahead of a slot, and given back unstarted."""
    return [attempt for attempt in job.attempts if attempt.ended != "released"]


def until(condition: Callable[[], T], what: str, deadline: float = 40.0) -> T:
    """Wait until the condition holds; what it found. Fails, saying what was waited for, when it does not in time."""
    end = time.monotonic() + deadline
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {deadline} s: {what}"
        time.sleep(0.01)
    return found


__all__ = ["Fleet", "fleet", "runs_of", "until"]
