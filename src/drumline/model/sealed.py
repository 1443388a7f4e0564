"""Sealed bodies: arguments and results as a store holds them where they are encrypted.

A sealed body is a JSON text, `"drumline:sealed:1:KEY:SCOPE:CIPHERTEXT"`. Arguments in clear are an object, so the two
cannot be taken for each other, and a store need not know what it holds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

__all__ = [
    "Resealing",
    "Scope",
    "body_text",
    "find_fault",
    "is_sealed",
    "is_spoiled",
    "join",
    "read_body",
    "split",
    "spoil",
]

_SEALED = b'"drumline:sealed:1:'
_SPOILED = b'"drumline:spoiled:1:'
_MARKS = (_SEALED, _SPOILED)


class Scope(StrEnum):
    """What a sealed body belongs to; anywhere else it cannot be opened."""

    # The arguments of one job.
    JOB = "j"
    # The arguments of a job that may take the place of a waiting one, and then goes by that one's id.
    TASK = "t"
    # The arguments of a schedule, and of the jobs of its ticks.
    SCHEDULE = "s"
    # The result of one job.
    RESULT = "r"


class Resealing(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of a job or of a schedule, as they were read, and as they shall be written."""

    before: bytes
    after: bytes
    # One of the two.
    job: str | None = None
    schedule: str | None = None


def join(key: str, scope: Scope, ciphertext: str) -> bytes:
    """The sealed body; `key` is the id of the key."""
    return b'%s%s:%s:%s"' % (_SEALED, key.encode(), scope.encode(), ciphertext.encode())


def is_sealed(body: bytes) -> bool:
    return body.startswith(_SEALED)


def split(body: bytes) -> tuple[str, str, bytes]:
    """The id of the key, the scope and the ciphertext of a sealed body; empty texts where they are missing."""
    key, _, rest = body[len(_SEALED) : -1].partition(b":")
    scope, _, ciphertext = rest.partition(b":")
    return key.decode("ascii", "replace"), scope.decode("ascii", "replace"), ciphertext


def spoil(body: bytes) -> bytes:
    """What stands for a sealed body that does not pass its check."""
    return b'%s%s"' % (_SPOILED, split(body)[0].encode("ascii", "replace"))


def is_spoiled(body: bytes) -> bool:
    return body.startswith(_SPOILED)


def find_fault(body: bytes) -> str:
    """Why the body cannot be read here, as the end of a sentence; an empty text if it can."""
    if not body.startswith(_MARKS):
        return ""
    if is_sealed(body):
        return f"encrypted with key {split(body)[0]}, which is not in the key ring of this process"
    key = body[len(_SPOILED) : -1].decode()
    return f"encrypted with key {key}, and no longer what was written: changed, or moved here from elsewhere"


def read_body(body: bytes) -> Any:
    """The body as a value to show; one that cannot be read here as a word that says so."""
    if is_sealed(body):
        return "encrypted"
    return "encrypted, and not what was written" if is_spoiled(body) else msgspec.json.decode(body)


def body_text(body: bytes) -> str:
    """The same as a text, for a person: what is in clear as it stands."""
    return str(read_body(body)) if is_sealed(body) or is_spoiled(body) else body.decode()
