"""Claims that stand by: made by the thread that hears of a job, in the moment in which it hears of it.

For an ordinary claim that thread wakes the event loop, and the loop another thread, before the server is asked, which
then looks through lanes for what comes first. Who stands by has seen that there is nothing else, and takes the very job
of which it hears. Whatever is left so is left to ordinary claims: the same news is told to those who listen.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from drumline.clock import SystemClock
from drumline.errors import StoreError
from drumline.model.claim import ANY_QUEUE, Claimed, Share
from drumline.model.options import PRIVATE
from drumline.model.replica import ReplicaInfo
from drumline.stores.base import Op
from drumline.stores.hands import Hands
from drumline.stores.postgres.claim import Asked
from drumline.stores.postgres.step import News
from drumline.stores.replies import Asked as Caller
from drumline.stores.replies import LoopReply, Reply, deliver

__all__ = ["Standbys"]

# So long a token is good, in seconds.
_TOKEN_LIFE = 60.0
# A beat that is late by half: the replica may be frozen.
_LATE = 1.5
# What a claim that stands by was answered, besides claims: nothing, and no more is to be taken; and that time is over.
_RECALLED, _OVER = object(), object()


class _Standing(Caller):
    """One that stands by. The lock is held while it is made: who has it knows what has become of it."""

    __slots__ = ("asked", "is_over", "lock")

    def __init__(self, asked: Asked, reply: Reply) -> None:
        super().__init__(reply)
        self.asked = asked
        self.lock = threading.Lock()
        self.is_over = False

    def end(self, answer: object) -> Any:
        """Take nothing from now on; the answer, unless there was one before."""
        with self.lock:
            if not self.is_over:
                self.is_over, self.answer = True, answer
            return self.answer


class Standbys:
    """Those of one store in this process. They stand by while a thread of it hears."""

    def __init__(self, hands: Hands, take: Callable[[Asked, str], Claimed | None]) -> None:
        """`take` makes the claim of one job, by its id; None if it is not to be had."""
        self._hands = hands
        self._take = take
        self._timer = SystemClock()
        self.forget()

    def forget(self) -> None:
        """Begin anew: in a child process, those who wait are the parent's."""
        self._lock = threading.Lock()
        self._is_open = False
        self._out: dict[str, _Standing] = {}
        self._used_up: dict[str, float] = {}
        self._alive_until: dict[str, float] = {}

    # For those who stand by.

    def claim(self, asked: Asked, seconds: float, settle: Callable[[int], Op[Claimed]]) -> Op[Claimed | None]:
        """Stand by; `settle` is the ordinary claim with the same token, of so many jobs."""

        def blocking() -> Claimed | None:
            reply: Future[Any] = Future()
            standing = _Standing(asked, reply)
            if not self._begin(standing):
                return None
            try:
                answer = reply.result(seconds)
            except TimeoutError:
                answer = self._end(standing)
            except BaseException:
                self._end(standing)
                raise
            rest = self._rest_of(asked, answer)
            return answer if rest is None else settle(rest).run()

        async def asynchronous() -> Claimed | None:
            reply = LoopReply()
            standing = _Standing(asked, reply)
            if not self._begin(standing):
                return None
            try:
                async with asyncio.timeout(seconds):
                    answer = await reply.future
            except TimeoutError:
                answer = await self._hands.wait(lambda: self._end(standing))
            except asyncio.CancelledError:
                # Nobody is here any more to get what it would take.
                await asyncio.shield(self._hands.wait(lambda: self._end(standing)))
                raise
            rest = self._rest_of(asked, answer)
            return answer if rest is None else await settle(rest)

        return Op(blocking, asynchronous)

    def recall(self, token: str) -> None:
        """Let the one with this token be answered: with what it has taken, or with nothing."""
        now = self._timer.monotonic()
        with self._lock:
            self._used_up = {used: at for used, at in self._used_up.items() if at > now - _TOKEN_LIFE}
            self._used_up[token] = now
            standing = self._out.pop(token, None)
        if standing is not None and standing.end(_RECALLED) is _RECALLED:
            deliver([standing])

    def hear_beat(self, info: ReplicaInfo) -> None:
        """The replica is alive, and is taken to be until its next beat is overdue."""
        self._alive_until[info.id] = self._timer.monotonic() + _LATE * info.beat_every.total_seconds()

    def _begin(self, standing: _Standing) -> bool:
        token = standing.asked.token
        with self._lock:
            if not self._is_open or token in self._used_up:
                return False
            self._out[token] = standing
            return True

    def _end(self, standing: _Standing) -> Any:
        with self._lock:
            self._out.pop(standing.asked.token, None)
        return standing.end(_OVER)

    def _rest_of(self, asked: Asked, answer: object) -> int | None:
        """How many jobs to claim in the ordinary way, where that has to tell what is the case; None: it is known."""
        if answer is _OVER:
            return int(self._is_alive(asked.replica))
        return 0 if answer is _RECALLED else None

    def _is_alive(self, replica: str) -> bool:
        return self._timer.monotonic() < self._alive_until.get(replica, float("-inf"))

    # For the thread that hears.

    def open(self) -> None:
        """News arrive from now on."""
        with self._lock:
            self._is_open = True

    def shut(self) -> None:
        """No news arrive: nobody can wait for them."""
        with self._lock:
            self._is_open = False
            out, self._out = list(self._out.values()), {}
        deliver([standing for standing in out if standing.end(None) is None])

    def want(self, news: News) -> bool:
        """Whether anybody waits for such a job."""
        return bool(self._out) and bool(self._find(news))

    def ring(self, news: News) -> None:
        """Let the first who can have it take the job."""
        for standing in self._find(news):
            if self._make(standing, news.id):
                return

    def _find(self, news: News) -> list[_Standing]:
        with self._lock:
            return [standing for standing in self._out.values() if _serves(standing.asked, news)]

    def _make(self, standing: _Standing, job_id: str) -> bool:
        """Make the claim, and say whether it was."""
        asked = standing.asked
        with standing.lock:
            if standing.is_over:
                return False
            standing.answer = self._try(asked, job_id)
            if standing.answer is None:
                return False
            standing.is_over = True
        with self._lock:
            self._out.pop(asked.token, None)
        deliver([standing])
        return standing.answer is not _RECALLED

    def _try(self, asked: Asked, job_id: str) -> object:
        if not self._is_alive(asked.replica):
            return _RECALLED
        try:
            return self._take(asked, job_id)
        except StoreError:
            # What has become of it is told by an ordinary call, or the error, if it lasts.
            return _RECALLED


def _serves(asked: Asked, news: News) -> bool:
    return news.task in asked.tasks and any(_gives(share, news.queue) for share in asked.queues)


def _gives(share: Share, queue: str) -> bool:
    if share.queue == ANY_QUEUE:
        return not queue.startswith(PRIVATE) and queue not in share.but
    return share.queue == queue
