"""What a step leaves beside its rows: moves from state to state for the counts, and hints for whoever waits."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from drumline.stores.base import Topic, topic
from drumline.stores.files import read_statements
from drumline.stores.rows import json_text
from drumline.stores.statements import Operation, Statement

__all__ = ["News", "Step", "settle"]

_SQL = read_statements(__package__, "step.sql")
# The column in which the jobs of each stored state are counted.
_COLUMNS = {
    "r": "ready",
    "d": "delayed",
    "b": "delayed",
    "x": "running",
    "o": "done",
    "f": "dead",
    "c": "cancelled",
}


class News(NamedTuple):
    """A job that has just come."""

    id: str
    queue: str
    task: str


class Step:
    """The present instant of one step, where it is known, and what it adds to counts and hints."""

    __slots__ = ("_moves", "ended", "is_quick", "is_told", "message", "news", "now", "topics", "tries")

    def __init__(self, *, is_quick: bool = False, news: News | None = None, message: str | None = None) -> None:
        # Whether what was made or finished may be lost in a crash of the server: then nobody waits for its disk.
        self.is_quick = is_quick
        # The job that it makes, if it is one and nothing else.
        self.news = news
        # What tells the fleet of all that this step has news about; None: that is not known before.
        self.message = message
        # So often it was begun before, and disturbed.
        self.tries = 0
        self.begin(0)

    def begin(self, now: int) -> None:
        """Begin, or begin anew: what a try before has left is nothing."""
        self.now = now
        # What to tell once all is committed.
        self.topics: set[Topic] = set()
        # Whether the commit itself tells the fleet, by the message.
        self.is_told = False
        # The same, for this process only: elsewhere nobody waits for these jobs.
        self.ended: list[Topic] = []
        self._moves: Counter[tuple[str, str, str]] = Counter()

    def move(self, queue: str, task: str, before: str | None, after: str | None) -> None:
        """Count a job that goes from one stored state to another; None is outside the store."""
        if before is not None:
            self._moves[queue, task, _COLUMNS[before]] -= 1
        if after is not None:
            self._moves[queue, task, _COLUMNS[after]] += 1

    def hint(self, news: Topic) -> None:
        self.topics.add(news)

    def end(self, job_id: str, *, is_watched: bool) -> None:
        """A job has ended; if it is watched, another process may wait for it."""
        if is_watched:
            self.topics.add(topic.ended(job_id))
        else:
            self.ended.append(topic.ended(job_id))

    def rows(self) -> list[dict[str, object]]:
        """What to add to the counts."""
        lanes: dict[tuple[str, str], dict[str, object]] = {}
        for (queue, task, column), count in self._moves.items():
            if count:
                lanes.setdefault((queue, task), {"queue": queue, "task": task})[column] = count
        return list(lanes.values())


def settle(step: Step) -> Operation[None]:
    """Write what the step's moves add to the counts. A step that moved nothing writes nothing."""
    rows = step.rows()
    if rows:
        yield Statement(_SQL["add_moves"], {"moves": json_text(rows), "now": step.now})
