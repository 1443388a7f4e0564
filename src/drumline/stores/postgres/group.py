"""Enqueues that share a commit: nobody waits for company, but what arrives while one is under way is the next one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import islice

from drumline.errors import StoreUnreachable
from drumline.model.job import Enqueued, NewJob
from drumline.stores.base import MOST_JOBS
from drumline.stores.postgres.session import Sessions
from drumline.stores.replies import Asked, LoopReply, Reply, deliver

__all__ = ["Group"]

Enqueue = Callable[[Sequence[NewJob]], list[Enqueued]]
_INTERRUPTED = "the enqueue was interrupted, and it is not known whether it was done: repeat it with the same id"


class _Call(Asked):
    """One caller's jobs."""

    __slots__ = ("jobs",)

    def __init__(self, jobs: Sequence[NewJob], reply: Reply) -> None:
        super().__init__(reply)
        self.jobs = jobs


class Group:
    """The enqueues of one process, one commit after the other."""

    def __init__(self, sessions: Sessions, enqueue: Enqueue) -> None:
        self._sessions = sessions
        self._enqueue = enqueue
        self.forget()

    def forget(self) -> None:
        """Begin anew: in a child process, those who wait are the parent's."""
        self._lock = threading.Lock()
        self._waiting: list[_Call] = []
        self._is_busy = False

    def call(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue, blocking this thread."""
        reply: Future[list[Enqueued]] = Future()
        if self._join(_Call(jobs, reply)):
            # Nobody is under way: without another thread, it is done a little sooner.
            self._serve_next()
            self._go_on()
        return reply.result()

    async def wait(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue, and wait on this event loop. The others are answered whether this caller still waits or not."""
        reply = LoopReply()
        if self._join(_Call(jobs, reply)):
            self._sessions.hands.give(self._serve)
        answers: list[Enqueued] = await reply.future
        return answers

    def _join(self, call: _Call) -> bool:
        """Stand in line, and say whether to lead it."""
        with self._lock:
            self._waiting.append(call)
            is_leader, self._is_busy = not self._is_busy, True
            return is_leader

    def _go_on(self) -> None:
        with self._lock:
            if not self._waiting:
                self._is_busy = False
                return
        self._sessions.hands.give(self._serve)

    def _serve(self) -> None:
        while self._serve_next():
            pass

    def _serve_next(self) -> bool:
        """Serve those who have come together, and say whether there were any."""
        calls = self._take()
        if not calls:
            return False
        try:
            self._answer(calls)
        except BaseException:
            # A signal broke in on the caller whose thread this is: nobody else must wait for ever.
            for call in calls:
                if call.answer is None and call.error is None:
                    call.error = StoreUnreachable(_INTERRUPTED)
            deliver(calls)
            self._go_on()
            raise
        deliver(calls)
        return True

    def _answer(self, calls: Sequence[_Call]) -> None:
        jobs = [job for call in calls for job in call.jobs]
        try:
            answers = iter(self._enqueue(jobs))
        except Exception as error:  # noqa: BLE001 - given to the callers
            self._fail(calls, error)
        else:
            for call in calls:
                call.answer = list(islice(answers, len(call.jobs)))

    def _take(self) -> list[_Call]:
        with self._lock:
            size = count = 0
            for call in self._waiting:
                if count and size + len(call.jobs) > MOST_JOBS:
                    break
                size += len(call.jobs)
                count += 1
            calls, self._waiting = self._waiting[:count], self._waiting[count:]
            if not calls:
                self._is_busy = False
            return calls

    def _fail(self, calls: Sequence[_Call], error: Exception) -> None:
        """Fail one caller; several are served one by one, so that each meets only its own error."""
        if len(calls) == 1 or isinstance(error, StoreUnreachable):
            for call in calls:
                call.error = error
            return
        for call in calls:
            try:
                call.answer = self._enqueue(call.jobs)
            except Exception as own:  # noqa: BLE001 - given to the caller
                call.error = own
