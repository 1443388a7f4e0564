"""purge: forget what has outlived its retention, a slice at a time."""

from __future__ import annotations

from drumline.model.options import PRIVATE
from drumline.model.query import Keep
from drumline.stores.relational.purge import purge_records
from drumline.stores.sqlite.forget import forget_old
from drumline.stores.sqlite.step import Step
from drumline.stores.sqlite.ways import WAYS
from drumline.stores.statements import Operation, Statement

__all__ = ["purge"]

_HINT_LIFE = 24 * 3600 * 1000
# Names that begin so lie between these two.
_PRIVATE_QUEUES = {"private": PRIVATE, "behind": chr(ord(PRIVATE) + 1)}


def purge(step: Step, keep: Keep, limit: int) -> Operation[int]:
    forgotten = yield from forget_old(step, limit)
    forgotten += yield from purge_records(WAYS, step, keep, limit - forgotten)
    yield Statement(WAYS.sql["forget_hints"], {"oldest": step.now - _HINT_LIFE})
    for name in ("join_private_totals", "drop_private_totals"):
        yield Statement(WAYS.sql[name], _PRIVATE_QUEUES)
    return forgotten
