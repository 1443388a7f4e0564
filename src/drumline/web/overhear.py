"""Overhearing the signals by which somebody else is asked to stop, without taking them away."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["overhearing"]


@contextmanager
def overhearing(hear: Callable[[], None]) -> Iterator[None]:
    """Call `hear`, on this event loop, for each SIGTERM or SIGINT that the program handles; it handles it as before.

    Where it handles none, and elsewhere than in the main thread, there is nothing to be heard. When the context is
    left, what SIGTERM asked for is done, and the process shall not die of it all the same.
    """
    loop = asyncio.get_running_loop()
    ours: dict[signal.Signals, tuple[Any, Any]] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.getsignal(number)
            if callable(before):
                handler = _follow(before, lambda: loop.call_soon_threadsafe(hear))
                signal.signal(number, handler)
                ours[number] = (handler, before)
    try:
        yield
    finally:
        for number, (handler, before) in ours.items():
            if signal.getsignal(number) is handler:
                signal.signal(number, before)
            if number is signal.SIGTERM:
                _let_rest(before)


def _let_rest(handler: Any) -> None:
    """Have uvicorn forget SIGTERM: after a clean shutdown it raises it once more, so that no exit code could be 0."""
    captured = getattr(getattr(handler, "__self__", None), "_captured_signals", None)
    if isinstance(captured, list):
        captured[:] = [number for number in captured if number != signal.SIGTERM]


def _follow(
    before: Callable[[int, FrameType | None], object], hear: Callable[[], object]
) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        hear()
        before(number, frame)

    return handle
