"""Two stores that are told the same at the same time, and have to answer the same: one is the reference model."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from drumline.clock import ManualClock
from drumline.errors import DrumlineError, KeyTaken
from drumline.model.job import Job
from drumline.model.query import AuditRow, JobFilter, Keep, PauseKind
from drumline.model.replica import Beat
from drumline.model.schedule import Decision, Tick
from drumline.stores.base import Op, Store
from drumline.stores.memory import MemoryStore
from tests.support.makers import Maker
from tests.support.rig import follow_pages

T = TypeVar("T")

_LONG = timedelta(days=400)
# What a ledger row of these says in words and calls itself is the store's own affair.
_ABOUT_THE_SCHEDULE = {Decision.PAUSED, Decision.CHANGED, Decision.ORPHANED}


class Twins:
    """The reference model and the store under test, over one clock."""

    def __init__(self, maker: Maker, folder: Path) -> None:
        self.clock = ManualClock()
        self._maker = maker
        self.reference: Store = MemoryStore(clock=self.clock)
        self._address = maker.address(folder)
        self.subject = maker.open(self._address, self.clock)
        self.subject.migrate().run()
        self._follow()
        # Of each store: the epoch and version it told last, for only that they grow is promised.
        self._told: dict[Store, tuple[int, int]] = {}

    def now(self) -> datetime:
        return self.clock.now()

    def move(self, seconds: float) -> None:
        """Move time, also backwards."""
        self.clock.set(self.now() + timedelta(seconds=seconds))
        self._follow()

    def _follow(self) -> None:
        if self._maker.follow is not None:
            self._maker.follow(self._address, self.now())

    def close(self) -> None:
        for store in (self.reference, self.subject):
            store.close().run()

    def do(self, act: Callable[[Store], Op[T]], shown: Callable[[T], object] = lambda answer: answer) -> T | None:
        """Tell both the same; their answers, as `shown`, have to be equal. None if both refused."""
        expected, got = attempt(self.reference, act), attempt(self.subject, act)
        assert show(got, shown) == show(expected, shown)
        return None if isinstance(expected, DrumlineError) else expected

    def beat(self, act: Callable[[Store], Op[Beat]]) -> None:
        """Beat on both; epoch and version have to grow on both or on neither."""
        answers = {store: act(store).run() for store in (self.reference, self.subject)}
        grown = {store: self._growth(store, beat) for store, beat in answers.items()}
        assert show_beat(answers[self.subject]) == show_beat(answers[self.reference])
        assert grown[self.subject] == grown[self.reference]

    def running(self, ids: tuple[str, ...]) -> list[Job]:
        """Those of the jobs that run now."""
        return [job for job in self.reference.jobs(JobFilter(ids=ids)).run().items if job.lease_until is not None]

    def purge(self, keep: Keep) -> None:
        """Forget all that may be forgotten; slices may be cut as each store likes."""
        for store in (self.reference, self.subject):
            for _ in range(1000):
                if not store.purge(keep, 1000).run():
                    break

    def compare(self) -> None:
        """All that can be seen of the one can be seen of the other."""
        expected, got = see(self.reference, self.now()), see(self.subject, self.now())
        for part, wanted in expected.items():
            assert got[part] == wanted, f"{part}: {tell_difference(got[part], wanted)}"

    def _growth(self, store: Store, beat: Beat) -> tuple[bool, bool]:
        epoch, version = self._told.get(store, (0, 0))
        self._told[store] = (beat.epoch, beat.version)
        return beat.epoch > epoch, beat.version > version


def attempt(store: Store, act: Callable[[Store], Op[T]]) -> T | DrumlineError:
    try:
        return act(store).run()
    except DrumlineError as error:
        return error


def show(answer: T | DrumlineError, shown: Callable[[T], object]) -> object:
    """An answer as it is to be compared; of a refusal, that which a caller can act on."""
    if isinstance(answer, KeyTaken):
        return KeyTaken, answer.task, answer.key, answer.job_id
    return type(answer) if isinstance(answer, DrumlineError) else shown(answer)


def show_beat(beat: Beat) -> object:
    """What is promised of a beat but for growth: in which order claims are named is not."""
    return (
        beat.now,
        set(beat.lost),
        set(beat.cancelling),
        by_id(beat.unknown),
        beat.next_lease_end,
    )


def by_id(items: Iterable[Any]) -> list[Any]:
    return sorted(items, key=lambda item: item.id)


def see(store: Store, now: datetime) -> dict[str, object]:
    """The whole visible state, without what is a store's own affair."""
    jobs = follow_pages(lambda after: store.jobs(JobFilter(), after=after, limit=20))
    ticks = follow_pages(lambda after: store.ticks(after=after, limit=20))
    audit = follow_pages(lambda after: store.audit(after=after, limit=20))
    assert [tick.recorded_at for tick in ticks] == sorted((tick.recorded_at for tick in ticks), reverse=True)
    assert [row.at for row in audit] == sorted((row.at for row in audit), reverse=True)
    counts = store.counts().run()
    return {
        "jobs": jobs,
        "counts": sorted(
            [count for count in counts if any(msgspec.structs.astuple(count)[2:])],
            key=lambda count: (count.queue, count.task),
        ),
        "expired": by_id(store.expired(1000).run()),
        "logs": {job.id: store.logs(job.id).run() for job in jobs},
        "paused": {kind: store.paused(kind).run() for kind in PauseKind},
        "schedules": store.schedules().run(),
        "ticks": sorted(map(show_tick, ticks), key=repr),
        "audit": by_id(map(show_audit, audit)),
        "series": store.series(now - _LONG, now + _LONG).run(),
        "workers": sorted(
            (
                msgspec.structs.replace(replica, running=tuple(sorted(replica.running)))
                for replica in store.workers().run()
            ),
            key=lambda replica: replica.info.id,
        ),
    }


def tell_difference(got: Any, wanted: Any) -> str:
    """What only one of the two shows."""
    if isinstance(got, dict) and isinstance(wanted, dict):
        got, wanted = list(got.items()), list(wanted.items())
    surplus = [item for item in got if item not in wanted]
    missing = [item for item in wanted if item not in got]
    if not surplus and not missing:
        return f"in another order: {[getattr(item, 'id', item) for item in got]}"
    return f"\n  it shows {surplus}\n  and not {missing}"


def show_tick(tick: Tick) -> Tick:
    if tick.decision in _ABOUT_THE_SCHEDULE:
        return msgspec.structs.replace(tick, mark="", reason="")
    return tick if tick.decision is not Decision.OVERLAP else msgspec.structs.replace(tick, reason="")


def show_audit(row: AuditRow) -> AuditRow:
    return msgspec.structs.replace(row, action="")
