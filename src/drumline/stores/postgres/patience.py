"""A connection that is given up when its server falls silent.

A server that dies says so, or the network does. One that hangs, or stands behind a wire that only swallows, leaves who
asked it waiting for ever: no answer, no error, and often a network that still acknowledges every byte.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

import psycopg

from drumline.clock import SystemClock

__all__ = ["SILENCE", "PatientConnection"]

T = TypeVar("T")

# No step takes so many seconds on a server that is well: who waits for a lock gives up sooner.
SILENCE = 20.0
_timer = SystemClock()


class PatientConnection(psycopg.Connection[Any]):
    """A connection whose statements fail, and close it, when no word of an answer has come for `SILENCE` seconds."""

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        return super().wait(self._listening(gen), *args, **kwargs)

    def _listening(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        heard = _timer.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    heard = _timer.monotonic()
                elif _timer.monotonic() - heard >= SILENCE:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer for {SILENCE:g} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            answer: T = end.value
            return answer
