"""What the harness asks of every system. Adapters run under the interpreter of their own environment."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence


class Adapter(ABC):
    """One system, as the process that enqueues sees it; the worker is another process."""

    # Whether an enqueue gives way to others while it waits for the store.
    is_async = True
    has_bulk = True

    @property
    def worker_command(self) -> list[str] | None:
        """What starts one worker process; None where jobs run in the process that enqueues."""
        return [sys.executable, "-m", "benchmarks.peers.drive", "work", type(self).__module__]

    async def lay_out(self) -> None:  # noqa: B027 - most systems need nothing
        """Make what the system needs in an empty store, before anybody opens it."""

    async def open(self) -> None:  # noqa: B027 - as above
        """Connect the side that enqueues."""

    async def close(self) -> None:  # noqa: B027 - as above
        """Disconnect it."""

    @abstractmethod
    async def enqueue(self, number: int) -> None:
        """Return when the job is accepted."""

    async def enqueue_many(self, numbers: Sequence[int]) -> None:
        """Return when all are accepted, by the system's own call for many jobs."""
        raise NotImplementedError

    @abstractmethod
    async def count_unfinished(self) -> int:
        """How many jobs the store still holds that it does not know to have ended."""

    def work(self) -> None:
        """Run one worker until it is told to stop."""
        raise NotImplementedError
