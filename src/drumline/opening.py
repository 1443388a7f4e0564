"""A program's store: opened at first use, migrated once in every process, opened again after it was closed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from drumline.clock import Clock
from drumline.engine.preparing import refuse_while_preparing
from drumline.stores.base import Store
from drumline.stores.forks import watch_forks
from drumline.stores.open import open_store
from drumline.stores.sealed import SealedStore

if TYPE_CHECKING:
    from drumline.config import Settings

__all__ = ["OwnStore"]


class OwnStore:
    """The store that the settings name, or one that stands in for it."""

    def __init__(self, settings: Callable[[], Settings], clock: Clock, stand_in: Store | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._stand_in = stand_in
        self._store: Store | None = None
        # The process in which the store was made ready: after a fork it is made ready again.
        self._ready_in: int | None = None
        # Threads that come at once open one store.
        self._opening = threading.RLock()
        watch_forks(self)

    @property
    def is_stand_in(self) -> bool:
        return self._stand_in is not None

    async def ready(self) -> Store:
        """The store, opened and migrated."""
        store = self.as_it_is()
        if not self._is_ready:
            # Callers that come meanwhile migrate too, and find nothing left to do.
            await store.migrate()
            self._ready_in = os.getpid()
        return store

    def ready_sync(self) -> Store:
        """The same, for code that is not async."""
        store = self.as_it_is()
        if not self._is_ready:
            store.migrate().run()
            self._ready_in = os.getpid()
        return store

    def as_it_is(self) -> Store:
        """The store, which may have to be migrated before it can be used."""
        store = self._store
        if store is None:
            refuse_while_preparing()
            with self._opening:
                store = self._store = self._store or self._stand_in or self._open()
        return store

    async def close(self) -> None:
        """Give back what the store holds; used again, it opens again."""
        store, self._store, self._ready_in = self._store, None, None
        if store is not None:
            await store.close()

    def stop_for_fork(self) -> None:
        """Let nobody be in the middle of opening."""
        self._opening.acquire()

    def go_on(self) -> None:
        self._opening.release()

    def forget(self) -> None:
        self._opening = threading.RLock()

    def _open(self) -> Store:
        settings = self._settings()
        given = settings.store
        store = open_store(
            given.url,
            namespace=given.namespace,
            listen_url=given.listen_url,
            clock=self._clock,
            synchronous=given.synchronous,
            allow_network_fs=given.allow_network_fs,
            confirm=given.confirm,
        )
        # Where no key is set, nobody need have what encrypts.
        from drumline.config.keys import find_ring

        ring = find_ring(settings)
        return store if ring is None else cast("Store", SealedStore(store, ring))

    @property
    def _is_ready(self) -> bool:
        """Whether it can be used as it is: it was migrated in this process, or somebody else sees to that."""
        return self._ready_in == os.getpid() or not self._settings().store.auto_migrate
