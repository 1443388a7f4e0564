"""The statements that are worth preparing: those of every batch, which need no more rows by any plan of theirs.

Planning a claim anew takes as long as a third of its work.
"""

from __future__ import annotations

from drumline.stores.files import read_statements

__all__ = ["HOT"]

_SQL = read_statements(__package__, "claim.sql", "finish.sql", "produce.sql", "wakeups.sql")
HOT = frozenset(_SQL[name] for name in ("claim", "take_new", "finish", "add_jobs", "notify"))
