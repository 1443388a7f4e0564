"""Operations without I/O: generators that yield calls of scripts and receive the server's answers.

def count_lines(job_id: str) -> Operation[int]:
    lines = yield Call("logs", (pack_id(job_id), 0, 1000))
    return len(lines)
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

__all__ = ["Call", "Operation"]

T = TypeVar("T")


class Call(NamedTuple):
    """One script to run, and what it is given."""

    script: str
    args: tuple[bytes | str | int, ...] = ()
    # An enqueue takes a list of groups, and this is one of them, with so many jobs: others may join it.
    group: bytes = b""
    size: int = 0


Operation = Generator[Call, Any, T]
