"""Tokens by which an end user may follow one job: its id, and a seal that only the fleet can make."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID

__all__ = ["make_token", "read_token"]

_ID_BYTES = 16
_SEAL_BYTES = 16


def make_token(key: bytes, job_id: str) -> str:
    """The token of this job: 43 characters that fit into an address."""
    raw = UUID(job_id).bytes
    return urlsafe_b64encode(raw + _seal(key, raw)).decode().rstrip("=")


def read_token(key: bytes, token: str) -> str | None:
    """The id of the job that the token is for; None for one that this key did not make."""
    try:
        raw = urlsafe_b64decode(f"{token}=")
    except ValueError:
        return None
    job, seal = raw[:_ID_BYTES], raw[_ID_BYTES:]
    if len(raw) != _ID_BYTES + _SEAL_BYTES or not hmac.compare_digest(seal, _seal(key, job)):
        return None
    return str(UUID(bytes=job)) if make_token(key, str(UUID(bytes=job))) == token else None


def _seal(key: bytes, raw: bytes) -> bytes:
    return hmac.digest(key, b"drumline track" + raw, hashlib.sha256)[:_SEAL_BYTES]
