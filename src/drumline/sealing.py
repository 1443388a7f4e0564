"""Encryption at rest: a ring of keys that seals bodies with the current key and opens those of older ones.

AES-SIV, which forgives a repeated nonce, with keys derived from those of the settings. What a body belongs to is part
of what is checked, so a body that was moved to another job does not open.
"""

from __future__ import annotations

import hashlib
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING

from drumline.errors import BadOption, BadSettings
from drumline.model.redact import HIDDEN
from drumline.model.sealed import Scope, is_sealed, join, split, spoil

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

__all__ = ["KeyRing", "check_key", "generate_key"]

_KEY_BYTES = 32
_NONCE_BYTES = 16
# Instead of a nonce, where equal arguments shall look equal.
_NO_NONCE = bytes(_NONCE_BYTES)
_EXPECTED = "a key as `drumline keys generate` prints it"


def generate_key() -> str:
    """A new key, as the settings take it."""
    return urlsafe_b64encode(os.urandom(_KEY_BYTES)).decode()


def check_key(key: object, option: str = "key") -> str:
    """The key, if it is one; BadOption, which does not repeat it, if not."""
    try:
        if isinstance(key, str) and len(urlsafe_b64decode(key)) == _KEY_BYTES:
            return key
    except ValueError:
        pass
    raise BadOption(option, _EXPECTED, HIDDEN)


class KeyRing:
    """The keys of this process: one that seals, and all that open."""

    def __init__(self, current: str, older: Sequence[str] = ()) -> None:
        """BadSettings if the package that encrypts is not installed."""
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV
        except ImportError as error:
            raise BadSettings(
                "encryption.key is set, but the package that encrypts is missing: pip install 'drumline[crypto]'"
            ) from error
        keys = [urlsafe_b64decode(check_key(key)) for key in (current, *older)]
        self._ciphers: dict[str, AESSIV] = {_id_of(key): AESSIV(_derive(key)) for key in reversed(keys)}
        # The id of the key that seals.
        self.current = _id_of(keys[0])

    def __repr__(self) -> str:
        return f"<KeyRing {', '.join(self._ciphers)}>"

    def seal(self, body: bytes, scope: Scope, *owner: str) -> bytes:
        """The body, sealed for its owner. The same arguments of a schedule give the same: it has not changed then."""
        nonce = _NO_NONCE if scope is Scope.SCHEDULE else os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self.current].encrypt(body, [*_bind(scope, owner), nonce])
        return join(self.current, scope, urlsafe_b64encode(nonce + sealed).decode())

    def open(self, body: bytes, scope: Scope, *owner: str) -> bytes:
        """The body in clear; as it is where no key here fits or it is in clear, spoiled where it fails its check."""
        if not is_sealed(body):
            return body
        key, _, text = split(body)
        cipher = self._ciphers.get(key)
        if cipher is None:
            return body
        from cryptography.exceptions import InvalidTag

        try:
            data = urlsafe_b64decode(text)
            return cipher.decrypt(data[_NONCE_BYTES:], [*_bind(scope, owner), data[:_NONCE_BYTES]])
        except (InvalidTag, ValueError):
            return spoil(body)


def _bind(scope: Scope, owner: Sequence[str]) -> list[bytes]:
    return [b"drumline 1", scope.encode(), *(name.encode() for name in owner)]


def _derive(key: bytes) -> bytes:
    """Both halves of an AES-256-SIV key."""
    return hashlib.blake2b(key, digest_size=64, person=b"drumline body").digest()


def _id_of(key: bytes) -> str:
    """By which a key is known without being told."""
    return hashlib.blake2b(key, digest_size=4, person=b"drumline key id").hexdigest()
