"""One worker process of a chaos fleet. Its store and its ledger come from the environment."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path

from drumline import Drumline
from drumline.chaos.ledger import Ledger
from drumline.chaos.program import declare
from drumline.engine.alone import run_alone
from drumline.errors import StoreError
from drumline.events import ReplicaStarted

__all__ = ["CONCURRENCY", "LEASE", "LEDGER", "OUT_OF_REACH", "run"]

LEDGER = "DRUMLINE_CHAOS_LEDGER"
LEASE = "DRUMLINE_CHAOS_LEASE"
CONCURRENCY = 20
# The exit code of a worker that cannot begin because the store is away.
OUT_OF_REACH = 75


def run(around: Callable[[Drumline], AbstractContextManager[object]] = nullcontext) -> None:
    """Work until told to stop, inside a context that may change the app."""
    threading.Thread(target=_die_with_parent, name="drumline-lifeline", daemon=True).start()
    drum = Drumline()
    declare(drum, Ledger(Path(os.environ[LEDGER])), timedelta(seconds=float(os.environ[LEASE])))
    begun: list[ReplicaStarted] = []
    drum.events.subscribe(lambda event: begun.append(event) if isinstance(event, ReplicaStarted) else None)
    try:
        with around(drum):
            run_alone(drum.run(concurrency=CONCURRENCY))
    except StoreError:
        if begun:
            raise
        # As the command says it: whoever supervises it tries again. Once begun, no worker ends for that.
        sys.exit(OUT_OF_REACH)


def _die_with_parent() -> None:
    # Nobody writes: it ends when whoever started this process does, however that went.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    run()
