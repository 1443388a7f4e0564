"""The scripts, one for each operation, and the parts that several of them share."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import NamedTuple

__all__ = ["SCRIPTS", "Script"]

_USES = re.compile(r"^ *-- uses +(.+)$", re.MULTILINE)


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
    """The script, with parts where it says that it uses them."""
    text = _USES.sub(lambda uses: "\n".join(parts[f"{name}.lua"] for name in uses[1].split()), main).encode()
    return Script(text, hashlib.sha1(text, usedforsecurity=False).hexdigest().encode())


SCRIPTS = _read_scripts()
