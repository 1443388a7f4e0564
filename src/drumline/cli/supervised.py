"""A child of the supervisor: the same command, which stops in good order when the supervisor is gone."""

from __future__ import annotations

import os
import signal
import threading

from drumline.cli.root import main

__all__ = ["run"]


def run() -> None:
    """Be `drumline` with the words of this process."""
    lifeline = os.dup(0)
    # What user code starts must not read from it.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_watch, args=(lifeline,), name="drumline-lifeline", daemon=True).start()
    main()


def _watch(lifeline: int) -> None:
    # Nobody writes: it ends when the supervisor does.
    while os.read(lifeline, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    run()
