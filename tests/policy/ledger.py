"""A ledger as a fleet would have written it, made by hand or by a small play."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from drumline.model.instant import to_millis
from drumline.model.schedule import Coordination, Decision, Rule, Schedule, ScheduleStatus, Tick
from drumline.policy.due import due
from drumline.policy.rule import make_rule

NOON = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)
TEN = make_rule("schedule tick", every="10s")
SEVEN = make_rule("schedule tick", every="7s", start=NOON)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def row(seconds: float, decision: Decision = Decision.FIRED, **given: Any) -> Tick:
    """A row of that instant, recorded ten milliseconds later."""
    instant = after(seconds)
    mark = str(to_millis(instant)) + ("+" if "until" in given else "")
    usual: dict[str, Any] = {
        "schedule": "tick",
        "mark": mark,
        "replica": "",
        "instant": instant,
        "decision": decision,
        "reason": "on time",
        "by": "web-1:a",
        "recorded_at": instant + timedelta(milliseconds=10),
    }
    return Tick(**{**usual, **given})


def fired(*seconds: float, replica: str = "") -> list[Tick]:
    return [row(one, job_id=f"job-{replica}{one:g}", replica=replica) for one in seconds]


def changed(seconds: float, rule: Rule | None = TEN, version: int = 1) -> Tick:
    at = after(seconds)
    return row(seconds, Decision.CHANGED, mark=f"changed:{version}", recorded_at=at, count=0, rule=rule)


def paused(seconds: float, until: float) -> Tick:
    end = after(until)
    return row(seconds, Decision.PAUSED, mark="paused:1", recorded_at=end, until=end, count=0, reason="a deploy")


def orphaned(seconds: float, version: int = 1) -> Tick:
    return row(seconds, Decision.ORPHANED, mark=f"orphaned:{version}", count=0)


def status(last_tick: float, declared_at: float = 0, rule: Rule = TEN, **given: Any) -> ScheduleStatus:
    options = {name: given.pop(name) for name in ("coordination", "misfire_grace") if name in given}
    return ScheduleStatus(
        schedule=Schedule(name="tick", task="tick", rule=rule, **options),
        version=1,
        declared_at=after(declared_at),
        begun_at=after(declared_at),
        last_tick=after(last_tick),
        **given,
    )


OWN = Coordination.PER_REPLICA


class Play:
    """A fleet that decides every second, but for times in which it is away, and what is done to the schedule."""

    def __init__(self) -> None:
        self.rows: list[Tick] = []
        self.version = 0
        self.rule = TEN
        self.last_tick = 0.0
        self.paused_at: float | None = None
        self.orphaned_at: float | None = None
        self.is_away = False
        self._change(0)

    def run(self, seconds: int, deeds: Iterable[tuple[int, str]]) -> None:
        plan: dict[int, list[str]] = {}
        for second, deed in deeds:
            plan.setdefault(second, []).append(deed)
        for second in range(1, seconds + 1):
            for deed in plan.get(second, ()):
                getattr(self, deed)(second)
            self._decide(second)

    @property
    def status(self) -> ScheduleStatus:
        pause = None if self.paused_at is None else after(self.paused_at)
        return status(self.last_tick, rule=self.rule, paused_at=pause)

    def leave(self, second: int) -> None:
        self.is_away = True

    def come_back(self, second: int) -> None:
        self.is_away = False

    def pause(self, second: int) -> None:
        self.paused_at = second if self.paused_at is None else self.paused_at

    def resume(self, second: int) -> None:
        if self.paused_at is not None:
            self.version += 1
            self.rows.append(paused(self.paused_at, second))
            self.last_tick, self.paused_at = second, None

    def change(self, second: int) -> None:
        self.rule = SEVEN if self.rule == TEN else TEN
        self._change(second)

    def orphan(self, second: int) -> None:
        if self.orphaned_at is None:
            self.rows.append(orphaned(self.last_tick, self.version))
            self.orphaned_at = second

    def adopt(self, second: int) -> None:
        if self.orphaned_at is not None:
            self._change(second)

    def _change(self, second: int) -> None:
        self.version += 1
        self.rows.append(changed(second, self.rule, self.version))
        self.last_tick, self.orphaned_at = second, None

    def _decide(self, second: int) -> None:
        if self.is_away or self.paused_at is not None or self.orphaned_at is not None:
            return
        for ruling in due(self.status.schedule, after(self.last_tick), after(second)).rulings:
            place = (ruling.instant - NOON).total_seconds()
            job_id = f"job-{place:g}" if ruling.decision is Decision.FIRED else None
            self.rows.append(row(place, ruling.decision, job_id=job_id, recorded_at=after(second)))
            self.last_tick = place
