"""purge: forget what has outlived its retention, a slice at a time.

It also folds what the steps have appended to the counts: somebody calls it every minute.
"""

from __future__ import annotations

from drumline.model.options import PRIVATE
from drumline.model.query import HISTOGRAM_MILLIS, Keep
from drumline.stores.postgres.step import Step
from drumline.stores.postgres.ways import WAYS
from drumline.stores.relational.purge import purge_records
from drumline.stores.statements import Operation, Statement

__all__ = ["fold", "purge"]

_TOKEN_LIFE = 60_000
# Names that begin so lie between these two.
_PRIVATE_QUEUES = {"private": PRIVATE, "behind": chr(ord(PRIVATE) + 1)}


def purge(step: Step, keep: Keep, limit: int) -> Operation[int]:
    ((count,),) = yield Statement(WAYS.sql["forget_old_jobs"], {"limit": limit})
    forgotten: int = count
    forgotten += yield from purge_records(WAYS, step, keep, limit - forgotten)
    yield Statement(WAYS.sql["forget_tokens"], {"oldest": step.now - _TOKEN_LIFE})
    yield Statement(WAYS.sql["forget_watches"], {"oldest": step.now})
    return forgotten


def fold(namespace: str) -> Operation[None]:
    """Add what was appended to the counts, unless somebody else does it just now."""
    ((is_ours,),) = yield Statement(WAYS.sql["lock_flow"], {"what": f"{namespace} flow"})
    if is_ours:
        yield Statement(WAYS.sql["fold"], {"last": len(HISTOGRAM_MILLIS)})
        yield Statement(WAYS.sql["join_private_totals"], _PRIVATE_QUEUES)
