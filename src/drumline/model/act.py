"""Acts: operations that somebody asked for, which stand in the audit with what became of each of their targets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from drumline.model.job import Enqueued, NewJob
from drumline.model.query import Answer, AuditRow, By
from drumline.model.schedule import Fired, FiredAnswer, Firing

__all__ = ["Act", "Fate", "fates_of_firings", "fates_of_jobs", "fates_of_names"]

# A target, and what the act did to it.
Fate = tuple[str, Answer]


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """Who does what, and why. Its id, made by the caller, is also its audit row's: a repeat adds none."""

    id: str
    by: By
    action: str
    # The audit row of a larger act of which this is a slice.
    part_of: str | None = None

    def row(self, at: datetime, fates: Sequence[Fate]) -> AuditRow:
        return AuditRow(
            id=self.id,
            at=at,
            by=self.by,
            action=self.action,
            targets=tuple(target for target, _ in fates),
            answers=tuple(answer for _, answer in fates),
            part_of=self.part_of,
        )


def fates_of_jobs(jobs: Sequence[NewJob], answers: Sequence[Enqueued]) -> list[Fate]:
    """Of an enqueue: the ids that were asked for; refused where another job stands for it."""
    return [
        (job.id, _answer(is_done=enqueued.created or enqueued.replaced))
        for job, enqueued in zip(jobs, answers, strict=True)
    ]


def fates_of_names(names: Sequence[str], changed: Sequence[bool]) -> list[Fate]:
    """Of a declaration or withdrawal: each schedule, refused where nothing was changed."""
    return [(name, _answer(is_done=is_changed)) for name, is_changed in zip(names, changed, strict=True)]


def fates_of_firings(firings: Sequence[Firing], answers: Sequence[Fired]) -> list[Fate]:
    """Of firings: each schedule once, refused where no job of it was made."""
    fired = {f.schedule for f, a in zip(firings, answers, strict=True) if a.answer is FiredAnswer.FIRED}
    names = dict.fromkeys(firing.schedule for firing in firings)
    return [(name, _answer(is_done=name in fired)) for name in names]


def _answer(*, is_done: bool) -> Answer:
    return Answer.APPLIED if is_done else Answer.REFUSED
