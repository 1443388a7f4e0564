"""When an enqueue counts as accepted: once the server has it, once its disk has it, or once a replica has it."""

from __future__ import annotations

from typing import Any, Literal

from redis import exceptions

from drumline.errors import StoreError, StoreUnreachable, StoreUnusable

__all__ = ["CONFIRMATIONS", "Confirm", "find_doubt", "refuse"]

Confirm = Literal["server", "disk", "replica"]

# For how long a confirmation is waited for, in milliseconds.
_WITHIN = 2_000
# The command that asks whether what this connection wrote before is there.
CONFIRMATIONS: dict[Confirm, tuple[str | int, ...]] = {
    "disk": ("WAITAOF", 1, 0, _WITHIN),
    "replica": ("WAIT", 1, _WITHIN),
}


def find_doubt(confirm: Confirm, answer: Any, shown: str) -> StoreError | None:
    """What to tell the callers if the answer confirms nothing."""
    confirmed = answer[0] if isinstance(answer, list) else answer
    if confirmed >= 1:
        return None
    return StoreUnreachable(
        f"{shown}: stored, but not confirmed by its {confirm} within {_WITHIN} ms: repeat it with the same id"
    )


def refuse(confirm: Confirm, error: exceptions.ResponseError, shown: str) -> StoreError:
    """What it means that the server does not know the command."""
    return StoreUnusable(
        f"{shown}: store.confirm = {confirm!r} needs Redis 7.2 or Valkey with appendonly yes: mend either ({error})"
    )
