"""The actuator: what the fleet does, in the words that supervisors and dashboards of other systems know.

All of it is read from the store, so every replica gives the same answer; only `replica_id` tells who gave it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from starlette.responses import Response

from drumline.model.options import PRIVATE
from drumline.model.query import Count, Counts
from drumline.model.redact import Redactor
from drumline.model.replica import Replica, ReplicaState
from drumline.model.result import cut
from drumline.model.view import instant_text
from drumline.schedules import ScheduleView
from drumline.web.access import UserRole
from drumline.web.answers import answer_json
from drumline.web.health import answer_health, answer_live, answer_ready, answer_startup
from drumline.web.metrics import answer_metrics
from drumline.web.site import Ask, Entry

__all__ = ["ACTUATOR", "AT_ROOT"]

# Of an error, what a page of many tasks has room for.
ERROR_LENGTH = 500
_ALIVE = (ReplicaState.RUNNING, ReplicaState.DRAINING)


async def answer_tasks(ask: Ask) -> Response:
    """Every schedule of the fleet, by name."""
    web = ask.web
    schedules = await web.schedules(ask.who).refresh()
    backend = web.drum.settings.scheduler.backend
    kind = "in_process" if backend == "in_process" else (await web.drum.store()).kind
    shown = {name: _schedule_json(view, kind, web.drum.replica_name) for name, view in schedules.items()}
    return answer_json({"scheduled_tasks": shown})


def _schedule_json(view: ScheduleView, backend: str, replica: str) -> dict[str, Any]:
    return {
        "schedule": view.schedule,
        "coordination": view.coordination.value,
        "scheduler_backend": backend,
        "replica_id": replica,
        "current_leader": view.current_leader,
        "last_tick": view.last_tick,
        "last_fired_at": _instant(view.last_fired_at),
        "status": view.status,
        "total_runs": view.total_runs,
        "total_failures": view.total_failures,
        "next_run_at": _instant(view.next_run_at),
        "paused": view.paused,
    }


async def answer_jobs(ask: Ask) -> Response:
    """What waits, runs and has come of it: by task and by queue."""
    store = await ask.web.drum.store()
    counts = await store.counts()
    now = await store.now()
    names = _tasks_of(await store.workers()) | {count.task for count in counts}
    tasks = {name: _task_json([count for count in counts if count.task == name]) for name in sorted(names)}
    queues = sorted({count.queue for count in counts if not count.queue.startswith(PRIVATE)})
    shown = {name: _queue_json([count for count in counts if count.queue == name], now) for name in queues}
    return answer_json({"jobs": tasks, "queues": shown})


def _tasks_of(replicas: Iterable[Replica]) -> set[str]:
    """The tasks that a live replica knows, also those of which there never was a job."""
    return {task for replica in replicas if replica.state in _ALIVE for task in replica.info.tasks}


def _task_json(counts: list[Count]) -> dict[str, Any]:
    total = Counts(counts).total
    error = next((count.last_error for count in counts if count.last_error), None)
    return {
        "queued": total.ready + total.delayed,
        "in_flight": total.running,
        "total_successes": sum(count.total_done for count in counts),
        "total_failures": sum(count.total_failures for count in counts),
        "dead_letters": total.dead,
        "last_error": None if error is None else cut(Redactor().text(error), ERROR_LENGTH),
    }


def _queue_json(counts: list[Count], now: datetime) -> dict[str, Any]:
    total = Counts(counts).total
    oldest = min((count.oldest_ready for count in counts if count.oldest_ready), default=None)
    return {
        "depth": total.ready + total.delayed,
        "in_flight": total.running,
        "oldest_waiting_age_ms": 0 if oldest is None else max(int((now - oldest).total_seconds() * 1000), 0),
    }


async def answer_info(ask: Ask) -> Response:
    """What this process is."""
    from importlib.metadata import version

    drum = ask.web.drum
    return answer_json(
        {
            "drumline": version("drumline"),
            "replica_id": drum.replica_name,
            "replicas": [worker.id for worker in drum.running_here],
            "store": (await drum.store()).kind,
            "namespace": drum.settings.store.namespace,
            "tasks": len(drum.tasks),
            "schedules": len(drum.schedules),
        }
    )


def _instant(instant: datetime | None) -> str | None:
    return None if instant is None else instant_text(instant)


# Whoever starts and stops this process asks these, and has no credentials.
_OPEN = (
    Entry(method="GET", path="/live", role=None, handle=answer_live),
    Entry(method="GET", path="/ready", role=None, handle=answer_ready),
    Entry(method="GET", path="/startup", role=None, handle=answer_startup),
)
_METRICS = Entry(method="GET", path="/metrics", role=UserRole.VIEWER, handle=answer_metrics)
ACTUATOR = (
    *_OPEN,
    Entry(method="GET", path="/health", role=None, handle=answer_health),
    Entry(method="GET", path="/tasks", role=UserRole.VIEWER, handle=answer_tasks),
    Entry(method="GET", path="/jobs", role=UserRole.VIEWER, handle=answer_jobs),
    Entry(method="GET", path="/info", role=UserRole.VIEWER, handle=answer_info),
    _METRICS,
)
AT_ROOT = (*_OPEN, _METRICS)
