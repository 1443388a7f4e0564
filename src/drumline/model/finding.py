"""What `drumline doctor` found, why it matters, and what to do."""

from __future__ import annotations

from enum import StrEnum

import msgspec

__all__ = ["Finding", "Level"]


class Level(StrEnum):
    """How bad it is: only what is wrong needs a person."""

    OK = "ok"
    ADVICE = "advice"
    WRONG = "wrong"


class Finding(msgspec.Struct, frozen=True):
    """One answer of one check."""

    check: str
    level: Level
    found: str
    why: str = ""
    do: str = ""
