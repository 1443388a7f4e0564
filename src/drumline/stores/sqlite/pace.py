"""When to look into the file: soon after its log was written to, else seldom.

The kernel tells of each write to the log (inotify, on Linux), so a watcher at rest costs nothing. A write becomes a
commit only a little later, when it is on disk, and of that nobody tells: so looks follow each other closely for a
while. Where there are no such events, looks follow each other at an even pace.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
import threading
from pathlib import Path

from drumline.clock import SystemClock, pause

__all__ = ["Pace", "listen_to_writes"]

# Seconds between looks: without events, as seldom as a hint within 10 ms allows; right after a write; in the second
# behind it; and at rest, where a look finds what no event told of.
_EVEN = 0.008
_CLOSE = 0.002
_REST = 0.25
_CLOSE_FOR = 0.1
_EVEN_FOR = 1.0
# From <sys/inotify.h>: the file was written to, moved or removed.
_MODIFY, _MOVE_SELF, _DELETE_SELF = 0x2, 0x800, 0x400


class Pace:
    """How long the watcher of a log waits between looks."""

    def __init__(self, log: Path) -> None:
        self._clock = SystemClock()
        self._last_write = self._clock.monotonic()
        self._poll = select.poll()
        self._events = listen_to_writes(log)
        self._bell: int | None = None
        # A number that was given back may already be another file's: no bell may be rung by it.
        self._lock = threading.Lock()
        if self._events is not None:
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._poll.register(self._events, select.POLLIN)
            self._poll.register(self._bell, select.POLLIN)

    def wait(self, *, found: bool) -> None:
        """Wait until the next look is due; `found` says whether the last one found a commit."""
        since = self._clock.monotonic() - self._last_write
        if self._events is None:
            pause(_EVEN)
        elif found and since > _EVEN_FOR and not self._poll.poll(0):
            # No event told of it, nor is about to: this file system tells of none.
            self.close()
        else:
            if found:
                # One commit seldom comes alone, and a busy log shall not make a busy watcher.
                pause(_EVEN)
            self._wait_for_write(_CLOSE if since < _CLOSE_FOR else _EVEN if since < _EVEN_FOR else _REST)

    def wake(self) -> None:
        """End a wait, from any thread."""
        with self._lock:
            if self._bell is not None:
                os.eventfd_write(self._bell, 1)

    def close(self) -> None:
        """Give back what the kernel lent; from now on the pace is even."""
        with self._lock:
            given, self._events, self._bell = (self._events, self._bell), None, None
            for descriptor in given:
                if descriptor is not None:
                    os.close(descriptor)

    def _wait_for_write(self, seconds: float) -> None:
        for descriptor, _ in self._poll.poll(seconds * 1000):
            if descriptor == self._events:
                os.read(descriptor, 65536)
                self._last_write = self._clock.monotonic()
                # What is being written takes a moment; and so a busy log does not make a busy watcher.
                pause(_CLOSE)


def listen_to_writes(log: Path) -> int | None:
    """A descriptor that can be read from when the log was written to, if there can be one."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    events: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if events < 0:
        return None
    if library.inotify_add_watch(events, os.fsencode(log), _MODIFY | _MOVE_SELF | _DELETE_SELF) < 0:
        os.close(events)
        return None
    return events
