"""The fleet's own secret, with which tokens for end users are sealed: the same in every process on one store."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from drumline.config.sections import Settings
from drumline.errors import BadSettings
from drumline.stores.open import sqlite_path

__all__ = ["fleet_secret"]

_KEY_BYTES = 32
# A store in memory is one process's own, and so is its secret.
_OF_THIS_PROCESS = secrets.token_bytes(_KEY_BYTES)


def fleet_secret(settings: Settings) -> bytes:
    """From the setting web.secret; else kept beside a SQLite file, or made of the password of the store."""
    if settings.web.secret is not None:
        return _digest(settings.web.secret)
    parts = urlsplit(settings.store.url)
    if parts.scheme == "memory":
        return _OF_THIS_PROCESS
    if parts.scheme == "sqlite":
        return _keep(Path(f"{sqlite_path(settings.store.url)}-secret"))
    if parts.password:
        return _digest(f"{settings.store.namespace} {parts.password}")
    raise BadSettings(
        "tracking tokens need the setting web.secret: a text of 16 characters or more, the same everywhere"
    )


def _digest(text: str) -> bytes:
    return hashlib.sha256(f"drumline {text}".encode()).digest()


def _keep(file: Path) -> bytes:
    """What the file holds; made by the first process that asks, whole or not at all."""
    if not file.exists():
        fresh = file.with_name(f"{file.name}.{os.getpid()}-{secrets.token_hex(4)}")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(secrets.token_bytes(_KEY_BYTES))
        # Whoever was quicker has made it: theirs counts.
        with contextlib.suppress(FileExistsError):
            os.link(fresh, file)
        fresh.unlink()
    return file.read_bytes()
