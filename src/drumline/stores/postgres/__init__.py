"""The store of a fleet: a schema in a Postgres database, shared by any number of hosts."""

from __future__ import annotations

from drumline.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
