"""The key ring of this process, from the settings."""

from __future__ import annotations

from drumline.config.sections import Settings
from drumline.sealing import KeyRing

__all__ = ["find_ring"]


def find_ring(settings: Settings) -> KeyRing | None:
    """None if no key is set; BadSettings if one is, and the package that encrypts is not installed."""
    given = settings.encryption
    return None if given.key is None else KeyRing(given.key, given.older_keys)
