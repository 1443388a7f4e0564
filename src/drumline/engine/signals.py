"""The signals that ask a worker to stop."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Signals"]


class Signals:
    """SIGTERM and SIGINT call `stop` while the context is open; elsewhere than in the main thread there are none."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        # What the host program has set up, to be given back to it.
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.getsignal(number)
            asyncio.get_running_loop().add_signal_handler(number, self._stop)

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            asyncio.get_running_loop().remove_signal_handler(number)
            if handler is not None:
                signal.signal(number, handler)
