"""The table of queues: what is arranged for each of them by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from drumline.errors import BadOption
from drumline.model.claim import ANY_QUEUE
from drumline.model.options import check_count, check_name
from drumline.model.queues import QueueRules, check_weights

__all__ = ["read_queue_rules"]

_KEYS = ("weight", "cap", "reserved")


def read_queue_rules(value: Any) -> QueueRules:
    """From a table of tables, one for each queue; in a variable, the same as JSON."""
    tables = _parse(value) if isinstance(value, str) else value
    if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
        raise BadOption("queues", "a table for each queue, such as {mail = {cap = 5}}", value)
    found: dict[str, dict[str, int]] = {key: {} for key in _KEYS}
    for queue, table in tables.items():
        for key, number in table.items():
            found[_known(queue, key)][queue] = _number(number, f"queues.{queue}.{key}")
    weights = found["weight"]
    if weights:
        check_weights({queue: weights.get(queue) for queue in tables}, "queues")
    return QueueRules(weights=weights, caps=found["cap"], reserved=found["reserved"])


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _known(queue: str, key: str) -> str:
    if queue != ANY_QUEUE:
        check_name(queue, "queues")
    # What has no table of its own has a weight in common, and nothing else.
    known = _KEYS if queue != ANY_QUEUE else _KEYS[:1]
    if key in known:
        return key
    near = get_close_matches(key, known, n=1)
    raise BadOption(
        f"queues.{queue}", f"a table of {', '.join(known)}" + (f" (did you mean {near[0]}?)" if near else ""), key
    )


def _number(value: Any, option: str) -> int:
    # A variable is always text.
    return check_count(int(value) if isinstance(value, str) and value.isdecimal() else value, option)
