"""What a store's schema lacks."""

from __future__ import annotations

import msgspec

__all__ = ["Pending"]


class Pending(msgspec.Struct, frozen=True):
    """A migration that this code knows and the store has not seen."""

    version: int
    name: str
    # The statements that do it by hand; none where the store has no such language.
    sql: str = ""
