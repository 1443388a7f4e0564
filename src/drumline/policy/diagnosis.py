"""Is the fleet well? What was read of it in, findings out: reach, clock, schema, queues, schedules, replicas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from drumline.model.finding import Finding, Level
from drumline.model.options import PRIVATE
from drumline.model.query import By, Count
from drumline.model.replica import Replica, ReplicaState
from drumline.model.schedule import ScheduleStatus
from drumline.model.schema import Pending
from drumline.model.view import instant_text, span_text
from drumline.policy.lateness import late_by
from drumline.policy.serving import live_workers, serves

__all__ = ["check_clock", "check_queues", "check_reach", "check_replicas", "check_schedules", "check_schema"]

# Each claim and each outcome takes at least one.
SLOW = timedelta(milliseconds=100)
SKEWED = timedelta(seconds=1)
# What code works out by its own clock, such as at=, is then plainly wrong.
BADLY_SKEWED = timedelta(seconds=30)
# A queue is not unserved because its workers are just being replaced.
UNSERVED_AFTER = timedelta(seconds=5)


def check_reach(where: str, round_trip: timedelta) -> Finding:
    """How fast the store answers."""
    found = f"{where} answers in {round_trip / timedelta(milliseconds=1):.1f} ms"
    if round_trip < SLOW:
        return Finding("store", Level.OK, found)
    why = "each claim and each outcome takes at least one answer"
    return Finding("store", Level.ADVICE, found, why, "run the workers near the store")


def check_clock(skew: timedelta, round_trip: timedelta) -> Finding:
    """`skew`: how far the store's clock is ahead of this host's, as seen from the middle of a round trip."""
    if abs(skew) < SKEWED + round_trip / 2:
        return Finding("clock", Level.OK, "this host's clock agrees with the store's")
    direction = "behind" if skew > timedelta() else "ahead of"
    return Finding(
        "clock",
        Level.WRONG if abs(skew) >= BADLY_SKEWED else Level.ADVICE,
        f"this host's clock is {abs(skew).total_seconds():.1f} s {direction} the store's",
        "leases and ticks follow the store's clock; instants that code works out here, such as at=, are wrong",
        "let both hosts follow a time server (NTP)",
    )


def check_schema(pending: Sequence[Pending]) -> Finding:
    """Whether the store has all that this code needs."""
    if not pending:
        return Finding("schema", Level.OK, "the schema is that of this version")
    missing = ", ".join(f"{one.version} ({one.name})" for one in pending)
    return Finding(
        "schema",
        Level.WRONG,
        f"not yet migrated, missing: {missing}",
        "this version cannot use it",
        "run `drumline migrate`",
    )


def check_queues(
    counts: Sequence[Count], replicas: Sequence[Replica], paused: Mapping[str, By], now: datetime
) -> list[Finding]:
    """Whether every job that waits can begin."""
    live = live_workers(replicas)
    public = [row for row in counts if not row.queue.startswith(PRIVATE) and (row.ready or row.delayed)]
    findings = [_paused_queue(name, public, by) for name, by in sorted(paused.items())]
    findings += [
        _unserved(row, why, now)
        for row in sorted(public, key=lambda row: (row.queue, row.task))
        if row.queue not in paused and (why := _why_unserved(row, live))
    ]
    return findings or [Finding("queues", Level.OK, "every job that waits has a live worker that can run it")]


def _paused_queue(name: str, rows: Sequence[Count], by: By) -> Finding:
    waiting = sum(row.ready + row.delayed for row in rows if row.queue == name)
    found = f"queue {name} is paused by {by.who}" + (f" ({by.why})" if by.why else "") + f"; jobs waiting: {waiting}"
    return Finding("queues", Level.ADVICE, found, "it gives no job to anybody", f"drumline queues resume {name}")


def _why_unserved(row: Count, live: Sequence[Replica]) -> str:
    if not live:
        return "no worker is alive"
    serving = [worker for worker in live if serves(worker, row.queue)]
    if not serving:
        return f"no live worker serves queue {row.queue}"
    if not any(row.task in worker.info.tasks for worker in serving):
        return f"no live worker of queue {row.queue} knows task {row.task}"
    return ""


def _unserved(row: Count, why: str, now: datetime) -> Finding:
    has_waited = row.oldest_ready is not None and now - row.oldest_ready >= UNSERVED_AFTER
    return Finding(
        "queues",
        Level.WRONG if row.ready and has_waited else Level.ADVICE,
        f"queue {row.queue}, task {row.task}: {row.ready} ready and {row.delayed} delayed, and {why}",
        "these jobs wait until somebody can run them",
        f"start a worker whose app has task {row.task} and that serves queue {row.queue}",
    )


def check_schedules(statuses: Sequence[ScheduleStatus], replicas: Iterable[Replica], now: datetime) -> list[Finding]:
    """Whether every schedule fires when it should."""
    if not statuses:
        return [Finding("schedules", Level.OK, "there are none")]
    is_fired = any(replica.state is ReplicaState.RUNNING and replica.info.role.fires for replica in replicas)
    findings = [] if is_fired else [_unfired(statuses)]
    findings += [finding for status in statuses if (finding := _check_schedule(status, now, is_fired=is_fired))]
    return findings or [Finding("schedules", Level.OK, f"all fire on time: {len(statuses)}")]


def _unfired(statuses: Sequence[ScheduleStatus]) -> Finding:
    return Finding(
        "schedules",
        Level.WRONG,
        f"no live replica fires schedules, and there are {len(statuses)}",
        "no tick fires; what is missed follows each schedule's misfire policy",
        "start `drumline run` or `drumline scheduler`",
    )


def _check_schedule(status: ScheduleStatus, now: datetime, *, is_fired: bool) -> Finding | None:
    name = status.schedule.name
    if status.paused_at is not None:
        why = f" ({status.paused_why})" if status.paused_why else ""
        found = f"{name} is paused by {status.paused_by} since {instant_text(status.paused_at)}{why}"
        return Finding("schedules", Level.ADVICE, found, "it does not fire", f"drumline schedules resume {name}")
    if not is_fired:
        # Said once, of all.
        return None
    if status.orphaned:
        found = f"{name} is orphaned: declared in code, but by no live replica"
        do = "start a replica whose code declares it, if it shall fire"
        return Finding("schedules", Level.ADVICE, found, "it does not fire", do)
    late = late_by(status, now)
    if late is None:
        return None
    found = f"{name} should have fired {span_text(timedelta(seconds=round(late.total_seconds())))} ago"
    return Finding("schedules", Level.WRONG, found, "its jobs come late", "look at the log of the replicas that fire")


def check_replicas(replicas: Sequence[Replica]) -> list[Finding]:
    """Whether those who are there are well."""
    running = [replica for replica in replicas if replica.state is ReplicaState.RUNNING]
    findings = [_ailing(replica) for replica in running if replica.info.stuck]
    return findings or [Finding("replicas", Level.OK, f"running and well: {len(running)}")]


def _ailing(replica: Replica) -> Finding:
    return Finding(
        "replicas",
        Level.WRONG,
        f"{replica.shown} has stuck slots: {replica.info.stuck}",
        "a task there does not end though its time is over, and keeps its slot",
        "look at its log for the place where the task hangs, then restart it",
    )
