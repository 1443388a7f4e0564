"""Addresses without their secrets, fit for logs, messages and pages."""

from __future__ import annotations

import re

__all__ = ["mask_url"]

_QUERY = re.compile(r"(?i)([?&;][^=&;]*(?:pass|secret|token|key)[^=&;]*=)[^&;#]*")
# Up to the last @, also behind a slash that was not escaped: better to mask too much than too little.
_PASSWORD = re.compile(r"^([^:/]+://[^:/?#@]*):(?:[^/?#]*|.*)@", re.DOTALL)
_PASSWORD_WITHOUT_SCHEME = re.compile(r"^([^:/?#@]*):.*@", re.DOTALL)


def mask_url(url: str) -> str:
    """The URL with *** for its password, and for every parameter that sounds like a secret."""
    masked = _QUERY.sub(r"\1***", url)
    pattern = _PASSWORD if "://" in masked else _PASSWORD_WITHOUT_SCHEME
    return pattern.sub(r"\1:***@", masked)
