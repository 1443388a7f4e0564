"""A step that has to be taken anew."""

from __future__ import annotations

__all__ = ["Again"]


class Again(Exception):
    """What the step saw at its beginning is no longer so: undo it, and take it anew."""
