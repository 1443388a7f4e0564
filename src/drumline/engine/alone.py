"""A process that is ours alone: its event loop, the turns of its threads, its garbage. A host sees to its own."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["run_alone", "settle_heap"]

T = TypeVar("T")

# The jobs in flight make a few thousand values, none of which is garbage: by Python's own measure of 700 they would be
# looked at several times each before they end.
_YOUNG = 20_000
# The event loop runs jobs while threads talk to the store, and a thread that has its answer cannot go on before the
# loop lets it. By Python's own measure of 5 ms that takes longer than the store did, and the loop runs out of jobs.
_TURN = 0.0005


def run_alone(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, on uvloop where it is installed."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None
    try:
        from uvloop import new_event_loop as factory
    except ImportError:
        factory = None
    settle_heap()
    sys.setswitchinterval(_TURN)
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


def settle_heap() -> None:
    """Look no more for garbage among what the start has made, and less often among what comes."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
