"""Passwords, kept as scrypt hashes: `scrypt$n$r$p$salt$hash`, all that is needed to check one."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode

from drumline.errors import BadOption

__all__ = ["check_hash", "hash_password", "is_password"]

# 16 MiB and some 50 ms for each guess.
_COST, _BLOCK, _LANES = 2**14, 8, 1
_MOST_COST = 2**17
_SALT_BYTES = 16
_SHORTEST = 8
_LONGEST = 1024


def hash_password(password: str) -> str:
    """The hash to keep in the place of this password; BadOption for one that is too short to be any use."""
    if not _SHORTEST <= len(password) <= _LONGEST:
        raise BadOption("password", f"{_SHORTEST} to {_LONGEST} characters long", f"{len(password)} characters")
    salt = secrets.token_bytes(_SALT_BYTES)
    made = _derive(password, salt, _COST, _BLOCK, _LANES)
    return "$".join(
        ("scrypt", str(_COST), str(_BLOCK), str(_LANES), b64encode(salt).decode(), b64encode(made).decode())
    )


def check_hash(text: str, option: str) -> str:
    """The text, if it is a hash that `hash_password` could have made; BadOption otherwise, without repeating it."""
    try:
        _read(text)
    except ValueError:
        expected = "a hash made by `drumline web --hash-password`, never the password itself"
        raise BadOption(option, expected, f"{len(text)} characters") from None
    return text


def is_password(password: str, kept: str) -> bool:
    """Whether the hash is that of this password. Takes its time: not for an event loop."""
    cost, block, lanes, salt, expected = _read(kept)
    if len(password) > _LONGEST:
        return False
    return hmac.compare_digest(_derive(password, salt, cost, block, lanes), expected)


def _read(text: str) -> tuple[int, int, int, bytes, bytes]:
    name, cost, block, lanes, salt, made = text.split("$")
    if name != "scrypt" or not 2 <= int(cost) <= _MOST_COST:
        raise ValueError(name)
    return int(cost), int(block), int(lanes), b64decode(salt, validate=True), b64decode(made, validate=True)


def _derive(password: str, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    room = 132 * cost * block * lanes
    return hashlib.scrypt(password.encode(), salt=salt, n=cost, r=block, p=lanes, maxmem=room, dklen=32)
