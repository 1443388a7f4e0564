"""The reference model: the store's semantics in plain Python, for tests and for `memory://`."""

from __future__ import annotations

from drumline.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
