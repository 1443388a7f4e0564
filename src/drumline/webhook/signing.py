"""The signature of a delivery: `t=SECONDS,v1=HMAC`, where the HMAC is SHA-256 over `SECONDS.BODY`, in hexadecimal."""

from __future__ import annotations

import hashlib
import hmac
import re
from datetime import datetime, timedelta

__all__ = ["SIGNATURE", "check_signature", "sign"]

SIGNATURE = "Drumline-Signature"

_FORM = re.compile(r"t=(\d{1,12}),v1=([0-9a-f]{64})")


def sign(secret: str, body: bytes, now: datetime) -> str:
    """What stands in the header."""
    seconds = int(now.timestamp())
    return f"t={seconds},v1={_digest(secret, body, seconds)}"


def check_signature(
    secret: str, header: str, body: bytes, *, now: datetime, tolerance: timedelta = timedelta(minutes=5)
) -> bool:
    """Whether whoever knows the secret sent this body, and did so lately: an old delivery may be somebody's replay."""
    found = _FORM.fullmatch(header)
    if found is None:
        return False
    seconds = int(found[1])
    is_recent = abs(now.timestamp() - seconds) <= tolerance.total_seconds()
    return hmac.compare_digest(_digest(secret, body, seconds), found[2]) and is_recent


def _digest(secret: str, body: bytes, seconds: int) -> str:
    return hmac.new(secret.encode(), b"%d." % seconds + body, hashlib.sha256).hexdigest()
