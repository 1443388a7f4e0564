"""Dead letters by what they died of: the same error of the same task is one group, whatever numbers stand in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from drumline.model.job import Job
from drumline.model.redact import Redactor
from drumline.web.dashboard.wording import cut

__all__ = ["Letters", "group_letters", "kind_of_error"]

# Ids, numbers and quoted texts differ from job to job; what is left is the kind of the error.
_VARYING = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]+|'[^']{0,200}'|\"[^\"]{0,200}\"|\d+(?:[.,:]\d+)*",
    re.IGNORECASE,
)
_LONGEST_KIND = 200
NO_ERROR = "no error is recorded"


class Letters(msgspec.Struct, frozen=True, kw_only=True):
    """The dead jobs of one task that died of the same."""

    task: str
    kind: str
    # One of them, in its own words.
    example: str
    jobs: list[Job]

    @property
    def first(self) -> datetime:
        return min(_died_at(job) for job in self.jobs)

    @property
    def last(self) -> datetime:
        return max(_died_at(job) for job in self.jobs)

    @property
    def queues(self) -> list[str]:
        return sorted({job.queue for job in self.jobs})


def kind_of_error(error: str | None) -> str:
    """What is the same in all errors of one kind; it stands in addresses, so no secret does in it."""
    first = Redactor().text(error or NO_ERROR).partition("\n")[0]
    return cut(_VARYING.sub("…", first), _LONGEST_KIND)


def group_letters(jobs: Iterable[Job]) -> list[Letters]:
    """The groups, the largest first."""
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.task, kind_of_error(job.last_error)), []).append(job)
    letters = [
        Letters(task=task, kind=kind, example=_example(members), jobs=members)
        for (task, kind), members in groups.items()
    ]
    return sorted(letters, key=lambda group: (-len(group.jobs), group.task, group.kind))


def _example(jobs: Sequence[Job]) -> str:
    return jobs[0].last_error or NO_ERROR


def _died_at(job: Job) -> datetime:
    return job.finished_at or job.created_at
