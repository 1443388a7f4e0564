"""The write mutex: of all threads and processes on one file, one writes, or writes back the log, at a time.

SQLite has locks of its own. Up to version 3.51.2 they have a gap through which two connections that commit and write
back the log at the same moment can lose a commit; this mutex closes it.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drumline.clock import SystemClock, pause
from drumline.errors import StoreUnreachable, StoreUnusable

__all__ = ["WriteMutex"]

_LOOK_EVERY = 0.0005
_MAKE_WAY = 0.002


class WriteMutex:
    """A lock on a file beside the database. Held by one thread of one process; a holder that dies lets go."""

    def __init__(self, database: Path, patience: float) -> None:
        self._database = database
        self._path = Path(f"{database}-lock")
        self._patience = patience
        self._clock = SystemClock()
        self._thread_lock = threading.Lock()
        self._file: int | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the mutex; StoreUnreachable if another holds it for longer than the patience lasts."""
        deadline = self._clock.monotonic() + self._patience
        if not self._thread_lock.acquire(timeout=self._patience):
            raise self._too_long()
        try:
            file = self._lock_newest(deadline)
            try:
                yield
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)
        finally:
            self._thread_lock.release()

    def close(self) -> None:
        """Give back the file; the next use opens it again."""
        with self._thread_lock:
            self._give_back()

    def forget(self) -> None:
        """In a child process: what was open is the parent's, and so is its lock."""
        self._thread_lock = threading.Lock()
        # Closing a copy of the parent's descriptor leaves the parent's lock alone; unlocking it would not.
        self._give_back()

    def _give_back(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> int:
        """The lock file as it is now: one that was removed and made anew is another lock."""
        try:
            if self._file is not None and not _is_same(self._file, self._path):
                self._give_back()
            if self._file is None:
                self._file = _open_like(self._path, self._database)
        except OSError as error:
            raise StoreUnusable(
                f"{self._path}: the lock file of the store cannot be opened ({error.strerror}):"
                " give this user the right to write it and its folder"
            ) from error
        return self._file

    def _lock_newest(self, deadline: float) -> int:
        while True:
            file = self._open()
            self._make_way(file)
            self._lock(file, deadline)
            if _is_same(file, self._path):
                return file
            # Removed while this one waited for it: by now others may hold the new one.
            self._give_back()

    def _lock(self, file: int, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if self._clock.monotonic() >= deadline:
                    raise self._too_long() from None
                # A knock on the door: without it a busy holder would take the lock again before anybody looks.
                os.pwrite(file, b"1", 0)
                pause(_LOOK_EVERY)
            else:
                return

    def _make_way(self, file: int) -> None:
        if os.pread(file, 1, 0) == b"1":
            os.pwrite(file, b"0", 0)
            pause(_MAKE_WAY)

    def _too_long(self) -> StoreUnreachable:
        return StoreUnreachable(
            f"{self._database}: another process has been writing for {self._patience:g} s: try again, or look which"
            f" process holds {self._path.name}"
        )


def _is_same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _open_like(path: Path, model: Path) -> int:
    """Open the file; one that has to be made gets rights and owner of the model, as SQLite does it with its own."""
    like = model.stat()
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    os.fchmod(file, like.st_mode & 0o777)
    if os.geteuid() == 0:
        os.fchown(file, like.st_uid, like.st_gid)
    return file
