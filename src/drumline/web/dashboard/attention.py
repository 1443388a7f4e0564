"""What needs a person, in words, with the one action that helps. When all is well this is empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from drumline.model.options import PRIVATE
from drumline.model.query import Count
from drumline.model.redact import Redactor
from drumline.model.replica import Replica, ReplicaState
from drumline.model.schedule import ScheduleStatus
from drumline.policy.lateness import late_by
from drumline.web.dashboard.depths import Depth
from drumline.web.dashboard.wording import cut, plural, span

__all__ = ["Item", "find_attention"]

# A queue is not unserved because its workers are just being replaced.
UNSERVED_AFTER = timedelta(seconds=5)
MOST_TASKS = 3
_LONGEST_ERROR = 110


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One line: what, about which, in which words, and where to go."""

    # `bad` is loud, `warn` less so.
    tone: str
    head: str
    subject: str = ""
    words: str = ""
    do: str
    # The page that helps, and the filter or name that it is asked with.
    page: str
    query: dict[str, str] = {}


def find_attention(
    counts: Sequence[Count],
    depths: Sequence[Depth],
    schedules: Iterable[ScheduleStatus],
    workers: Sequence[Replica],
    now: datetime,
) -> list[Item]:
    return [
        *_dead_letters(counts),
        *(item for depth in depths if (item := _unserved(depth, now))),
        *(item for status in schedules if (item := _late(status, now))),
        *(item for worker in workers if (item := _ailing(worker))),
    ]


def _dead_letters(counts: Sequence[Count]) -> list[Item]:
    """The tasks with the most of them; a line for each, and one for the rest."""
    tasks: dict[str, list[Count]] = {}
    for row in counts:
        if row.dead and not row.queue.startswith(PRIVATE):
            tasks.setdefault(row.task, []).append(row)
    ordered = sorted(tasks.items(), key=lambda item: (-sum(row.dead for row in item[1]), item[0]))
    items = [_dead_letter(task, rows) for task, rows in ordered[:MOST_TASKS]]
    rest = ordered[MOST_TASKS:]
    if rest:
        number = sum(row.dead for _, rows in rest for row in rows)
        head = plural(number, "more dead letter")
        items.append(
            Item(tone="bad", head=head, words=f"of {plural(len(rest), 'other task')}", do="Review all", page="dead")
        )
    return items


def _dead_letter(task: str, rows: Sequence[Count]) -> Item:
    error = next((row.last_error for row in rows if row.last_error), None) or ""
    return Item(
        tone="bad",
        head=plural(sum(row.dead for row in rows), "dead letter"),
        subject=task,
        words=cut(Redactor().text(error).partition("\n")[0], _LONGEST_ERROR),
        do="Review and retry",
        page="dead",
        query={"task": task},
    )


def _unserved(depth: Depth, now: datetime) -> Item | None:
    if not depth.unserved or depth.paused or depth.oldest is None or now - depth.oldest < UNSERVED_AFTER:
        return None
    verb = "waits" if depth.ready == 1 else "wait"
    return Item(
        tone="warn",
        head="Waiting",
        subject=depth.name,
        words=f"{plural(depth.ready, 'job')} {verb} for {span(now - depth.oldest)}: {depth.unserved}",
        do="See why",
        page="jobs",
        query={"queue": depth.name, "state": "ready"},
    )


def _late(status: ScheduleStatus, now: datetime) -> Item | None:
    name = status.schedule.name
    if status.orphaned and status.paused_at is None:
        words = "is declared in code, but by no live replica: it does not fire"
        return Item(
            tone="warn", head="Orphaned", subject=name, words=words, do="See it", page="schedule", query={"name": name}
        )
    late = late_by(status, now)
    if late is None:
        return None
    words = f"should have fired {span(late)} ago"
    return Item(tone="bad", head="Late", subject=name, words=words, do="See it", page="schedule", query={"name": name})


def _ailing(worker: Replica) -> Item | None:
    if worker.state is ReplicaState.RUNNING and worker.info.stuck:
        slots = plural(worker.info.stuck, "slot")
        words = f"{slots} held by a task that does not end though its time is over"
        return Item(tone="bad", head="Stuck", subject=worker.shown, words=words, do="See it", page="workers")
    if worker.state is ReplicaState.LOST and worker.running:
        words = f"is silent and held {plural(len(worker.running), 'job')}: others take over as leases end"
        return Item(tone="warn", head="Lost", subject=worker.shown, words=words, do="See it", page="workers")
    return None
