"""How a worker works: what the settings and the command line choose."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from drumline.model.queues import QueueRules
from drumline.model.replica import Role

__all__ = ["WorkerOptions"]


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How this replica works."""

    name: str
    role: Role = Role.COMBINED
    # In the order in which they are served; none named: every queue.
    queues: tuple[str, ...] = ()
    # What is arranged for single ones of them.
    rules: QueueRules = QueueRules()
    concurrency: int = 100
    threads: int = 32
    # Child processes at once; None: one for each core; 0: tasks that ask for one run in threads instead.
    children: int | None = None
    # After so many jobs a child gives way to a fresh one.
    jobs_per_child: int = 1000
    # How long a task past its time limit may take to end before its slot counts as stuck.
    timeout_grace: timedelta = timedelta(seconds=30)
    shutdown_timeout: timedelta = timedelta(seconds=25)
    poll_interval: timedelta = timedelta(seconds=10)
    # Stop by itself once nothing is left that this worker could run.
    drain: bool = False
    version: str = ""
