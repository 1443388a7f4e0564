"""How often, and when, each job started: a file that the worker and the harness both map into memory."""

import mmap
import os
import struct
import time
from functools import cache

from benchmarks.peers.place import FOLDER

SLOTS = 1_000_000
# A byte that counts, and a time.
_SIZE = SLOTS * 9
_TIME = struct.Struct("d")


def note(number: int) -> None:
    """The only line of every job: it has started."""
    at = time.time()
    starts = _map()
    starts[number] += 1
    _TIME.pack_into(starts, SLOTS + _TIME.size * number, at)


def read_time(number: int) -> float:
    """When the job started last, in seconds of Unix time."""
    at: float = _TIME.unpack_from(_map(), SLOTS + _TIME.size * number)[0]
    return at


def read_counts(first: int, end: int) -> bytes:
    """How often each job of the range has started."""
    return _map()[first:end]


@cache
def _map() -> mmap.mmap:
    file = os.open(FOLDER / "starts.bin", os.O_RDWR | os.O_CREAT)
    os.ftruncate(file, _SIZE)
    return mmap.mmap(file, _SIZE)
