"""The scripts, one for each operation, and the parts that several of them share."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import NamedTuple

__all__ = ["SCRIPTS", "Script"]

_USES = re.compile(r"^-- uses +(.+)$", re.MULTILINE)


class Script(NamedTuple):
    """One operation as the server runs it."""

    text: bytes
    # By which the server knows it.
    digest: bytes


def _read_scripts() -> Mapping[str, Script]:
    folder = files(__package__)
    parts = {item.name: item.read_text(encoding="utf-8") for item in folder.joinpath("parts").iterdir()}
    return {
        item.name.removesuffix(".lua"): _join(item.read_text(encoding="utf-8"), parts)
        for item in folder.iterdir()
        if item.name.endswith(".lua")
    }


def _join(main: str, parts: Mapping[str, str]) -> Script:
    """The script with the parts before it that it says it uses."""
    uses = _USES.search(main)
    names = uses[1].split() if uses else []
    text = "\n".join([*(parts[f"{name}.lua"] for name in names), main]).encode()
    return Script(text, hashlib.sha1(text, usedforsecurity=False).hexdigest().encode())


SCRIPTS = _read_scripts()
