"""The fast store: Redis or Valkey, one server, under Sentinel or in a cluster."""

from __future__ import annotations

from drumline.stores.redis.store import RedisStore

__all__ = ["RedisStore"]
