"""A process that is ours alone: its event loop, and how its garbage is collected. In a host's process neither is."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["run_alone", "settle_heap"]

T = TypeVar("T")

# The jobs in flight make a few thousand values, none of which is garbage: by Python's own measure of 700 they would be
# looked at several times each before they end.
_YOUNG = 20_000


def run_alone(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, on uvloop where it is installed."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None
    try:
        from uvloop import new_event_loop as factory
    except ImportError:
        factory = None
    settle_heap()
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


def settle_heap() -> None:
    """Look no more for garbage among what the start has made, and less often among what comes."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
