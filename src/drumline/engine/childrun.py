"""The run of a task in a child process, as the rest of the engine sees it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from drumline.engine.border import Answer, unpack
from drumline.engine.execution import Execution
from drumline.engine.options import WorkerOptions
from drumline.model.job import Failure
from drumline.model.result import decode_result, encode_result
from drumline.policy.options import Executor
from drumline.policy.task import TaskDefinition
from drumline.policy.verdict import Misfit, Raised, Returned

__all__ = ["ChildRun", "Children", "Died", "EndedInChild", "open_children"]


class Died(msgspec.Struct, frozen=True):
    """The child ended before its task did."""

    # As of `subprocess`: negative is the number of a signal.
    code: int
    # Whether the task had been called.
    has_begun: bool
    # How long it had to come so far, where it was killed because it did not.
    limit: float | None = None

    @property
    def failure(self) -> Failure:
        if self.limit is not None:
            return Failure("ProcessDied", f"the child process was not ready within {self.limit:g} s, and was killed")
        if self.code >= 0:
            return Failure("ProcessDied", f"process died: exit code {self.code}")
        try:
            name = f" ({signal.Signals(-self.code).name})"
        except ValueError:
            name = ""
        return Failure("ProcessDied", f"process died: signal {-self.code}{name}")


class Children(Protocol):
    """Child processes to run tasks in."""

    # The most that may run at once.
    size: int

    async def run(self, execution: Execution, began: Callable[[], None]) -> Answer | Died:
        """Have the execution's task run in a child. `began` is called, on the event loop, when the task is."""

    def resize(self, size: int) -> None:
        """Keep at most so many children from now on: idle ones beyond it go now, busy ones when they are through."""

    async def close(self) -> None:
        """Let idle children close what they have open, and kill the rest. None is left."""

    def shut(self) -> None:
        """Kill every child that is left, at once."""


def open_children(definitions: Iterable[TaskDefinition], options: WorkerOptions) -> Children | None:
    """Child processes for those of the tasks that ask for one; None if none does, or there are to be none."""
    asking = {d.name: d for d in definitions if d.executor is Executor.PROCESS}
    if not asking or options.children == 0:
        return None
    # It takes a while to import, which only a worker with such tasks need spend.
    from drumline.engine.processes import ProcessPool, count_cores

    size = options.children or count_cores()
    return ProcessPool(asking.values(), size=size, jobs_per_child=options.jobs_per_child)


class EndedInChild(Exception):
    """The task did not return. Its own error stays in the child: this one tells of it, to middleware among others."""

    def __init__(self, ending: Raised | Misfit) -> None:
        self.ending = ending
        super().__init__(f"{ending.failure.type}: {ending.failure.message}")


class ChildRun:
    """The run of one execution in a child, as middleware can have it around itself: it gives a value, or raises."""

    def __init__(self, pool: Children, execution: Execution, began: Callable[[], None]) -> None:
        self._pool = pool
        self._execution = execution
        self._began = began
        self._value: Any = None
        self._returned: Returned | None = None

    async def __call__(self) -> Any:
        answer = await self._pool.run(self._execution, self._began)
        ending = Raised(answer.failure) if isinstance(answer, Died) else unpack(answer)
        if not isinstance(ending, Returned):
            raise EndedInChild(ending)
        self._returned = ending
        if ending.result is not None:
            annotation = Any if ending.is_repr else self._execution.definition.returns
            self._value = decode_result(ending.result, annotation)
        return self._value

    def returned(self, value: Any) -> Returned:
        """What to record for the value that came out of the middleware."""
        # As the child wrote it, unless somebody has put another in its place.
        if self._returned is not None and value is self._value:
            return self._returned
        return Returned(*encode_result(value))
