"""`--processes N`: a process that starts N others of the same command, replaces those that die, and ends with them."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta

from drumline.cli.exits import Exit
from drumline.clock import Clock, SystemClock
from drumline.model.options import Backoff
from drumline.policy.retry import wait_after

__all__ = ["Supervisor", "supervise"]

_AGAIN = Backoff(initial=timedelta(milliseconds=500), factor=2, cap=timedelta(seconds=30))
# A child that has lived so long did not die of its start: the next one is started at once.
_WELL_AFTER = 60.0

logger = logging.getLogger("drumline.supervisor")


def supervise(words: Sequence[str], number: int, name: str, *, drain: bool) -> int:
    """Run so many processes of `drumline` with these words, as replicas `name-1`, `name-2`, …; the exit code of all.

    SIGTERM and SIGINT are passed on; asked again, the children hurry. With `drain`, a child that ends well is not
    replaced.
    """
    supervisor = Supervisor(words, number, name, drain=drain, clock=SystemClock())
    return asyncio.run(supervisor.run())


class Supervisor:
    """Keeps its children alive until it is asked to stop."""

    def __init__(self, words: Sequence[str], number: int, name: str, *, drain: bool, clock: Clock) -> None:
        self._words = words
        self._names = [f"{name}-{place}" for place in range(1, number + 1)]
        self._drain = drain
        self._clock = clock
        self._stopping = asyncio.Event()
        self._children: dict[str, asyncio.subprocess.Process] = {}
        # What was found that no new start mends.
        self._refusal: int = Exit.DONE

    async def run(self) -> int:
        """Until every child has ended for good; 0 if all did so well."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        async with asyncio.TaskGroup() as group:
            kept = [group.create_task(self._keep(name)) for name in self._names]
        codes = [task.result() for task in kept]
        logger.info("all %d processes have ended", len(codes))
        return self._refusal or max(codes)

    def stop(self) -> None:
        """Ask all children to stop; asked again, to hurry."""
        self._stopping.set()
        for child in self._children.values():
            if child.returncode is None:
                _ask_to_stop(child)

    async def _keep(self, name: str) -> int:
        """Start this child, again and again, until it has ended for good."""
        deaths = 0
        while True:
            began = self._clock.monotonic()
            code = await self._live(name)
            if self._stopping.is_set() or (self._drain and code == Exit.DONE):
                return _as_exit(code)
            if code == Exit.USAGE:
                # Bad settings are as bad for the next one, and it has said so.
                self._refusal = Exit.USAGE
                self.stop()
                return code
            deaths = 1 if self._clock.monotonic() - began >= _WELL_AFTER else deaths + 1
            again_in = wait_after(_AGAIN, deaths, name).total_seconds()
            logger.error("process %s has ended %s; another one in %.1f s", name, _describe(code), again_in)
            await self._clock.wait(self._stopping, again_in)
            if self._stopping.is_set():
                return Exit.DONE

    async def _live(self, name: str) -> int:
        """One life of a child: its exit code, or minus the signal that ended it."""
        if self._stopping.is_set():
            return Exit.DONE
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "drumline.cli.supervised", *self._words),
            env=_environment(name, os.environ),
            # Held open as long as we live: its end tells the child that we are gone, however we went.
            stdin=asyncio.subprocess.PIPE,
            # Ctrl-C reaches a whole group: the child shall hear of it once, by us.
            process_group=0,
        )
        self._children[name] = child
        if self._stopping.is_set():
            _ask_to_stop(child)
        logger.info("process %s is pid %d", name, child.pid)
        return await child.wait()


def _ask_to_stop(child: asyncio.subprocess.Process) -> None:
    # Not by its own method: that looks first whether the child has ended, and one that just has is then unknown to the
    # thread that waits for its exit code.
    with suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGTERM)


def _environment(name: str, environ: Mapping[str, str]) -> dict[str, str]:
    return {**environ, "DRUMLINE_SCHEDULER__REPLICA_ID": name}


def _as_exit(code: int) -> int:
    """How a child that shall not be replaced has ended; one that was killed while it drained has not ended well."""
    if code == -signal.SIGTERM:
        # By our own signal, before it listened to signals: it had claimed nothing.
        return Exit.DONE
    return code if code >= 0 else Exit.NO


def _describe(code: int) -> str:
    return f"with code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
