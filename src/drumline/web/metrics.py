"""Metrics for Prometheus, from a registry of their own: the fleet's state from the store, and what this replica did.

Every name, its labels and its meaning stand in docs/http.md. Labels are queues, tasks and schedules, of which there are
few; beyond `MOST_LABELS` of them the rest share the label `other`. Private queues are not shown.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

from drumline.events import ClaimLost, Event, JobClosed, JobStarted, StaleWrite, TickFired
from drumline.model.options import PRIVATE
from drumline.model.query import Count, Counts, PauseKind
from drumline.model.replica import Replica
from drumline.model.schedule import ScheduleStatus
from drumline.policy.serving import find_unserved, live_workers
from drumline.web.answers import Refusal
from drumline.web.site import Ask

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from drumline.events import Events

__all__ = ["Labels", "Metrics", "answer_metrics", "open_metrics"]

MOST_LABELS = 1_000
OTHER = "other"
_STATES = ("ready", "delayed", "running", "done", "dead", "cancelled")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)


class Metrics:
    """What this process did, counted as it happens."""

    def __init__(self, events: Events) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self._registry = CollectorRegistry()
        of_job, own = ("queue", "task"), dict[str, Any](registry=self._registry)
        self._wait = Histogram("drumline_wait_seconds", "From due to started.", of_job, buckets=_SECONDS, **own)
        self._run = Histogram("drumline_run_seconds", "From started to ended.", of_job, buckets=_SECONDS, **own)
        self._attempts = Counter("drumline_attempts", "Attempts ended.", (*of_job, "ended"), **own)
        self._retries = Counter("drumline_retries", "Attempts after which another follows.", of_job, **own)
        self._dead = Counter("drumline_dead", "Jobs that became dead.", of_job, **own)
        self._lag = Histogram("drumline_tick_lag_seconds", "Lateness of ticks.", ("schedule",), buckets=_SECONDS, **own)
        self._lost = Counter("drumline_claims_lost", "Claims that were taken over.", **own)
        self._stale = Counter("drumline_stale_writes", "Writes refused because the claim was lost.", ("write",), **own)
        self._labels = Labels()
        events.subscribe(self._hear)

    @property
    def registry(self) -> CollectorRegistry:
        return self._registry

    def _hear(self, event: Event) -> None:
        match event:
            case JobStarted():
                self._wait.labels(*self._of(event)).observe(event.waited.total_seconds())
            case JobClosed():
                self._close(event)
            case TickFired():
                self._lag.labels(self._labels.bound(event.schedule)).observe(max(event.late.total_seconds(), 0))
            case ClaimLost():
                self._lost.inc()
            case StaleWrite():
                self._stale.labels(event.operation).inc()
            case _:
                pass

    def _close(self, event: JobClosed) -> None:
        place = self._of(event)
        self._run.labels(*place).observe(event.ran.total_seconds())
        self._attempts.labels(*place, event.ended).inc()
        if event.outcome == "retry":
            self._retries.labels(*place).inc()
        if event.outcome == "dead":
            self._dead.labels(*place).inc()

    def _of(self, event: JobStarted | JobClosed) -> tuple[str, str]:
        queue = "private" if event.queue.startswith(PRIVATE) else event.queue
        return self._labels.bound(queue), self._labels.bound(event.task)


def open_metrics(events: Events) -> Metrics | None:
    """Counters of these events; None where the package for it is not installed."""
    try:
        return Metrics(events)
    except ModuleNotFoundError:
        return None


class Labels:
    """The labels in use, of which there are never more than so many."""

    def __init__(self, most: int = MOST_LABELS) -> None:
        self._most = most
        self._known: set[str] = set()

    def bound(self, label: str) -> str:
        if label in self._known:
            return label
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(label)
        return label


class _Fleet:
    """The fleet's state as a collector, of what was read from the store for one scrape."""

    def __init__(
        self, counts: Iterable[Count], statuses: list[ScheduleStatus], replicas: list[Replica], paused: Collection[str]
    ) -> None:
        public = [count for count in counts if not count.queue.startswith(PRIVATE)]
        self._counts = [*public[:MOST_LABELS], *_add_up(public[MOST_LABELS:])]
        self._statuses = statuses[:MOST_LABELS]
        self._replicas = replicas
        self._paused = list(paused)[:MOST_LABELS]
        self._unserved = _list_unserved(public, replicas, paused)[:MOST_LABELS]

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        jobs = GaugeMetricFamily("drumline_jobs", "Jobs by state.", labels=("queue", "task", "state"))
        done = CounterMetricFamily("drumline_jobs_done", "Jobs done, ever.", labels=("queue", "task"))
        failed = CounterMetricFamily("drumline_attempts_failed", "Attempts failed, ever.", labels=("queue", "task"))
        for count in self._counts:
            for state in _STATES:
                jobs.add_metric((count.queue, count.task, state), getattr(count, state))
            done.add_metric((count.queue, count.task), count.total_done)
            failed.add_metric((count.queue, count.task), count.total_failures)
        yield from (jobs, done, failed)
        yield from self._collect_rest(GaugeMetricFamily, CounterMetricFamily)

    def _collect_rest(self, gauge: Any, counter: Any) -> Iterator[Metric]:
        runs = counter("drumline_schedule_runs", "Attempts ended, by schedule.", labels=("schedule",))
        failures = counter("drumline_schedule_failures", "Attempts failed, by schedule.", labels=("schedule",))
        for status in self._statuses:
            runs.add_metric((status.schedule.name,), status.total_runs)
            failures.add_metric((status.schedule.name,), status.total_failures)
        replicas = gauge("drumline_replicas", "Replicas by role and state.", labels=("role", "state"))
        for place, number in Tally((one.info.role.value, one.state.value) for one in self._replicas).items():
            replicas.add_metric(place, number)
        paused = gauge("drumline_queue_paused", "1 for each queue that is paused.", labels=("queue",))
        for queue in self._paused:
            paused.add_metric((queue,), 1)
        unserved = gauge(
            "drumline_queue_unserved", "1 for each queue whose ready jobs nobody takes.", labels=("queue",)
        )
        for queue in self._unserved:
            unserved.add_metric((queue,), 1)
        yield from (runs, failures, replicas, paused, unserved)


def _add_up(counts: list[Count]) -> list[Count]:
    """What there is no room for, in one."""
    if not counts:
        return []
    states = msgspec.structs.asdict(Counts(counts).total)
    done, failures = sum(count.total_done for count in counts), sum(count.total_failures for count in counts)
    return [Count(queue=OTHER, task=OTHER, total_done=done, total_failures=failures, **states)]


def _list_unserved(counts: list[Count], replicas: list[Replica], paused: Collection[str]) -> list[str]:
    """The queues whose ready jobs, or some of them, no live worker can take, though nobody has paused them."""
    live = live_workers(replicas)
    by_queue: dict[str, list[Count]] = {}
    for count in counts:
        by_queue.setdefault(count.queue, []).append(count)
    return [queue for queue, rows in by_queue.items() if queue not in paused and find_unserved(queue, rows, live)]


async def answer_metrics(ask: Ask) -> Response:
    """The fleet's state, and what this replica did since it began."""
    metrics = ask.web.metrics
    if metrics is None:
        raise Refusal(501, "metrics need the package prometheus-client: pip install 'drumline[metrics]'")
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

    store = await ask.web.drum.store()
    fleet = CollectorRegistry()
    fleet.register(
        _Fleet(
            await store.counts(), await store.schedules(), await store.workers(), await store.paused(PauseKind.QUEUE)
        )
    )
    text = generate_latest(metrics.registry) + generate_latest(fleet)
    return Response(text, headers={"Content-Type": CONTENT_TYPE_LATEST})
