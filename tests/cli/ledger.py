"""A store file with schedules, in which a small fleet lived at noon of a day that has passed."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from drumline.clock import ManualClock, fresh_id
from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.query import By, PauseKind
from drumline.model.replica import ReplicaInfo
from drumline.model.schedule import FiredAnswer, Schedule, Tick
from drumline.policy.due import due
from drumline.policy.firing import orphan_firing, tick_firings
from drumline.policy.rule import make_rule
from drumline.stores.sqlite import SqliteStore
from tests.support.build import done

NOON = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)
BY = By("ada", "code", "")
RULE = ("every", "cron", "timezone")


class Ledger:
    """The store, with a clock that begins at noon."""

    def __init__(self, file: Path) -> None:
        self.clock = ManualClock(NOON)
        self.store = SqliteStore(file, clock=self.clock)

    def __enter__(self) -> Self:
        self.store.migrate().run()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.store.close().run()

    def declare(self, name: str, **options: Any) -> None:
        """Register a schedule, or declare it in code with `in_code`."""
        rule = make_rule(name, **{option: options.pop(option) for option in RULE if option in options})
        self.store.declare([Schedule(name=name, task="work", rule=rule, **{"in_code": False, **options})], by=BY).run()

    def withdraw(self, name: str) -> None:
        self.store.withdraw([name], by=BY).run()

    def beat(self, *replicas: str, tasks: Sequence[str] = ("work",)) -> None:
        for replica in replicas:
            name = replica.partition(":")[0]
            info = ReplicaInfo(id=replica, name=name, tasks=tuple(tasks), beat_every=timedelta(days=3650))
            self.store.beat(info, []).run()

    def play(self, name: str, seconds: float, *replicas: str, step: float = 0.25) -> None:
        """Let time pass in steps, and the replicas fire what is due: for the fleet, or each its own."""
        end = self.clock.now() + timedelta(seconds=seconds)
        decided: dict[str, datetime] = {}
        while self.clock.now() < end:
            self.clock.advance(min(timedelta(seconds=step), end - self.clock.now()))
            for replica in replicas or ("web-1:a",):
                self.fire(name, replica, decided)

    def fire(self, name: str, replica: str = "web-1:a", decided: dict[str, datetime] | None = None) -> None:
        """Fire what is due now; of per_replica, what has come since this replica last did."""
        (status,) = self.store.schedules([name]).run()
        is_own = status.schedule.coordination == "per_replica"
        known = {} if decided is None else decided
        after = known.get(replica, status.begun_at) if is_own else status.last_tick
        rulings = due(status.schedule, after, self.clock.now()).rulings
        firings = [*tick_firings(status, rulings, replica)]
        assert all(fired.answer is not FiredAnswer.STALE for fired in self.store.fire(firings, by=replica).run())
        known[replica] = max([after, *(ruling.instant for ruling in rulings)])

    def set_paused(self, name: str, *, paused: bool, why: str = "") -> None:
        by = By("ada", "code", why)
        self.store.pause(PauseKind.SCHEDULE, [name], paused=paused, by=by, token=fresh_id()).run()

    def orphan(self, name: str) -> None:
        (status,) = self.store.schedules([name]).run()
        self.store.fire([orphan_firing(status)], by="web-1:a").run()

    def fired(self, name: str) -> list[Tick]:
        rows = self.store.ticks(name, limit=1000).run().items
        return [row for row in rows if row.job_id is not None]

    def run_jobs(self, taking: float) -> None:
        """Let a worker claim what waits, and finish it after that time."""
        claimed = self.store.claim("web-1:a", [Share(ANY_QUEUE, 100)], 100, ["work"], fresh_id()).run()
        self.clock.advance(taking)
        self.store.finish([done(claim, ran=taking) for claim in claimed.claims]).run()
