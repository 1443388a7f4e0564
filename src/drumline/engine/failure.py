"""An exception as text: what the store keeps of it, and what it asks for."""

from __future__ import annotations

import traceback

import msgspec

from drumline.errors import BadOption, GiveUp, Retry, Snooze
from drumline.model.claim import Claim
from drumline.model.job import Failure
from drumline.model.redact import Redactor
from drumline.model.result import cut
from drumline.model.sealed import find_fault, is_sealed
from drumline.policy.retry import parse_after
from drumline.policy.task import TaskDefinition
from drumline.policy.verdict import Ending, Misfit, Raised, Unreadable, Wish

__all__ = ["failure", "find_unreadable", "raised", "without_secrets"]


def failure(error: BaseException) -> Failure:
    """The error as text, even if it cannot print itself."""
    kind = type(error).__qualname__
    try:
        message = str(error)
    except Exception as broken:  # noqa: BLE001 - user code may fail in any way while it describes its failure
        message = f"(its message cannot be shown: {type(broken).__name__})"
    try:
        trace = "".join(traceback.format_exception(error))
    except Exception as broken:  # noqa: BLE001 - the same
        trace = f"(its traceback cannot be shown: {type(broken).__name__})"
    return Failure(kind, cut(message), cut(trace))


def without_secrets(definition: TaskDefinition, args: bytes, ending: Ending) -> Ending:
    """The same ending, whose error does not repeat what the arguments hold of secrets."""
    if not isinstance(ending, (Raised, Misfit)):
        return ending
    try:
        redact = Redactor(msgspec.json.decode(args), definition.codec.signature.secrets)
    except (msgspec.DecodeError, BadOption):
        # What cannot be read was not given to the task, so its error does not repeat it.
        return ending
    told = ending.failure
    kept = Failure(told.type, redact.known(told.message), redact.known(told.traceback))
    return msgspec.structs.replace(ending, failure=kept)


def find_unreadable(claim: Claim) -> Ending | None:
    """How an attempt ends whose arguments cannot be read here; None if they can."""
    fault = find_fault(claim.args)
    if not fault:
        return None
    if is_sealed(claim.args):
        return Unreadable(Failure("KeyMissing", f"its arguments are {fault}"))
    # No key and no other worker would mend that.
    return Raised(Failure("BodySpoiled", f"its arguments are {fault}"), Wish.GIVE_UP)


def raised(definition: TaskDefinition, error: BaseException) -> Raised:
    """What the task's error says shall become of its job."""
    try:
        if isinstance(error, Snooze):
            return Raised(failure(error), Wish.SNOOZE, parse_after(error.after))
        if isinstance(error, Retry):
            return Raised(failure(error), Wish.RETRY, None if error.after is None else parse_after(error.after))
        if isinstance(error, GiveUp) or not definition.is_worth_retrying(error):
            return Raised(failure(error), Wish.GIVE_UP)
    except BadOption as bad:
        return Raised(failure(bad.at(f"task {definition.name}")))
    except Exception as broken:  # noqa: BLE001 - a task's own kind of error may fail in any way when it is asked
        return Raised(failure(broken))
    return Raised(failure(error))
