"""The embedded store: one file, one writer at a time, every process of the host."""

from __future__ import annotations

from drumline.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
