"""Recording: how executions ended, through the verdict, into the store, in batches.

Nobody waits for company: what has come together while one batch was being written is the next one. In a flood, where a
whole batch has, it is written beside the first. What running jobs say of themselves goes the same way, and before the
outcome of the job that said it: after its end it would be refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from drumline.clock import Clock
from drumline.engine.closing import tell_closed
from drumline.engine.execution import Execution, Executions
from drumline.engine.failure import without_secrets
from drumline.errors import StoreError
from drumline.events import ClaimLost, Events, StaleWrite
from drumline.failpoint import failpoint
from drumline.model.claim import Claim, ClaimRef, Note
from drumline.model.job import Failure
from drumline.model.outcome import Outcome
from drumline.policy.verdict import Ending, Raised, Stopped, verdict
from drumline.stores.base import Store

__all__ = ["Recorder"]

logger = logging.getLogger("drumline.engine")

# The least seconds between two batches that hold only words.
WORDS_EVERY = 0.1
UNWRITABLE = Failure("OutcomeUnwritable", "what came of the attempt cannot be written: see the worker's log", "")


class Recorder:
    """Writes outcomes and words; keeps them until they are written."""

    def __init__(
        self,
        store: Store,
        executions: Executions,
        *,
        by: str,
        clock: Clock,
        events: Events,
        on_outcome: Callable[[], None],
        on_written: Callable[[], None],
    ) -> None:
        self.stale_writes = 0
        # The most outcomes in one batch.
        self.largest_batch = store.batch
        self._store = store
        self._executions = executions
        self._by = by
        self._clock = clock
        self._events = events
        self._on_outcome = on_outcome
        self._on_written = on_written
        self._loop = asyncio.get_running_loop()
        # All that are unwritten, and of them those that are not on their way.
        self._outcomes: dict[ClaimRef, Outcome] = {}
        self._due: dict[ClaimRef, Outcome] = {}
        self._notes: list[Note] = []
        self._talking: dict[ClaimRef, Execution] = {}
        self._words_at = float("-inf")

    @property
    def backlog(self) -> int:
        """Outcomes that are not yet written."""
        return len(self._outcomes)

    def has_outcome(self, ref: ClaimRef) -> bool:
        """Whether it is decided how this claim ended, and the store's answer has yet to come."""
        return ref in self._outcomes

    @property
    def idle(self) -> bool:
        return not (self._outcomes or self._notes or self._talking)

    def close(self, execution: Execution, ending: Ending) -> None:
        """Record how an execution ended."""
        if not execution.held:
            # Taken over by the fleet: whatever we wrote would be refused.
            self._executions.remove(execution)
            self._on_written()
            return
        kept = without_secrets(execution.definition, execution.claim.args, ending)
        outcome = verdict(execution.claim, kept, by=self._by, started_at=execution.started_at, ended_at=execution.now())
        self._add(execution.ref, outcome)

    def give_back(self, claim: Claim) -> None:
        """Release a claim that never came to run here."""
        at = claim.claimed_at
        self._add(claim.ref, verdict(claim, Stopped(), by=self._by, started_at=at, ended_at=at))

    def _add(self, ref: ClaimRef, outcome: Outcome) -> None:
        if ref in self._outcomes:
            # Decided, and perhaps on its way: beats tell of an unknown claim until it is written.
            return
        self._outcomes[ref] = self._due[ref] = outcome
        self._on_outcome()

    def listen(self, execution: Execution) -> None:
        """An execution has something to say. Called from any thread."""
        if self._executions.get(execution.ref) is not execution:
            # A thread that was left to itself: nobody would keep what it says.
            return
        self._talking[execution.ref] = execution
        with suppress(RuntimeError):
            # Unless the event loop has gone, and with it all that was to be recorded.
            self._loop.call_soon_threadsafe(self._on_outcome)

    def lost(self, ref: ClaimRef, operation: str) -> None:
        """A write was refused: somebody else has taken the claim over."""
        self.stale_writes += 1
        self._events.emit(StaleWrite(ref.id, ref.fence, operation))
        if operation != "report":
            self._events.emit(ClaimLost(ref.id, ref.fence))

    async def step(self) -> float | None:
        """Write one batch."""
        pause = self._words_at + WORDS_EVERY - self._clock.monotonic()
        if not self._due and pause > 0:
            return pause if self._talking else None
        # Before words are waited for: what has ended by now has said its last.
        batch = dict(islice(self._due.items(), self.largest_batch))
        self._collect_words()
        if self._notes:
            await self._write_words()
        if batch:
            await self._write_outcomes(batch)
        return 0 if self._due or self._notes or self._talking else None

    async def step_beside(self) -> float | None:
        """Write one more batch while another is on its way, if it is a whole one and nothing has to go before it."""
        if not self.has_whole_batch or self._notes or self._talking:
            return None
        await self._write_outcomes(dict(islice(self._due.items(), self.largest_batch)))
        return 0

    @property
    def has_whole_batch(self) -> bool:
        """Whether so much waits to be written that it should not wait for what is on its way."""
        return len(self._due) >= self.largest_batch

    def _collect_words(self) -> None:
        while self._talking:
            _, execution = self._talking.popitem()
            note = execution.take_words()
            if note is not None:
                self._notes.append(note)

    async def _write_words(self) -> None:
        notes = list(self._notes)
        try:
            answers = await self._store.report(notes)
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - said of the one note that it is about
            answers = [await self._write_note(note) for note in notes]
        failpoint("report.answered")
        for note, kept in zip(notes, answers, strict=True):
            if not kept:
                self.lost(note.ref, "report")
        del self._notes[: len(notes)]
        self._words_at = self._clock.monotonic()

    async def _write_note(self, note: Note) -> bool:
        """Write one; what cannot be written is left out, for behind it others wait."""
        try:
            (kept,) = await self._store.report([note])
        except StoreError:
            raise
        except Exception:
            logger.exception("job %s: what it said cannot be written, and is left out", note.ref.id)
            return True
        return kept

    async def _write_outcomes(self, batch: dict[ClaimRef, Outcome]) -> None:
        for ref in batch:
            del self._due[ref]
        try:
            await self._write(batch)
        except BaseException:
            # It may come back, or be mended: nothing is given up.
            self._due = {ref: outcome for ref, outcome in batch.items() if ref in self._outcomes} | self._due
            raise
        self._on_written()

    async def _write(self, batch: dict[ClaimRef, Outcome]) -> None:
        failpoint("finish.before")
        try:
            answers = await self._store.finish([*batch.values()])
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - said of the one outcome that it is about
            await self._write_one_by_one(batch)
        else:
            failpoint("finish.answered")
            for (ref, outcome), applied in zip(batch.items(), answers, strict=True):
                self._settle(ref, outcome, applied=applied)

    async def _write_one_by_one(self, batch: dict[ClaimRef, Outcome]) -> None:
        """Find the outcome that cannot be written, and let its attempt count as failed."""
        for ref, outcome in batch.items():
            try:
                (applied,) = await self._store.finish([outcome])
            except StoreError:
                raise
            except Exception:
                logger.exception("job %s: its outcome cannot be written; it will be retried", ref.id)
                await self._write_plainly(ref, outcome)
            else:
                self._settle(ref, outcome, applied=applied)

    async def _write_plainly(self, ref: ClaimRef, outcome: Outcome) -> None:
        """Write what can be written of it: a claim that is only let go is given back, and its attempt never spent."""
        line = outcome.attempt
        plain = verdict(
            outcome.claim, Raised(UNWRITABLE), by=self._by, started_at=line.started_at, ended_at=line.ended_at
        )
        try:
            (applied,) = await self._store.finish([plain])
        except StoreError:
            raise
        except Exception:
            logger.exception("job %s: nothing of its outcome can be written", ref.id)
            self._forget(ref)
        else:
            self._settle(ref, plain, applied=applied)

    def _settle(self, ref: ClaimRef, outcome: Outcome, *, applied: bool) -> None:
        self._forget(ref)
        if not applied:
            self.lost(ref, "finish")
        elif self._events:
            for event in tell_closed(outcome):
                self._events.emit(event)

    def _forget(self, ref: ClaimRef) -> None:
        del self._outcomes[ref]
        execution = self._executions.get(ref)
        if execution is not None:
            self._executions.remove(execution)
