"""A lane: where the jobs of one executor come in, and what is known of the last look at the store for them."""

from __future__ import annotations

from drumline.clock import Clock
from drumline.engine.ahead import Ahead
from drumline.policy.options import Executor

__all__ = ["Lane"]


class Lane:
    """One call of claim at a time, with a token of its own."""

    __slots__ = ("ahead", "executor", "is_reserved", "look_at", "tasks", "token")

    def __init__(self, executor: Executor, clock: Clock, batch: int, *, is_reserved: bool) -> None:
        self.executor = executor
        # Whether its jobs are for slots that single queues have for themselves; what it claims starts at once.
        self.is_reserved = is_reserved
        self.tasks: list[str] = []
        self.ahead = Ahead(clock, batch)
        # Kept until an answer came: a call that was executed, but whose reply was lost, answers again.
        self.token: str | None = None
        # When to look again. A look that found less than it had room for need not be repeated when a slot falls
        # free; a hint or the time says when.
        self.look_at = float("-inf")

    def hint(self) -> None:
        """There may be work: look at once."""
        self.look_at = float("-inf")
