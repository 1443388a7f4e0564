"""What end users may see of their own jobs."""

from __future__ import annotations

from drumline.web.site import Entry

__all__ = ["TRACK"]

TRACK: tuple[Entry, ...] = ()
