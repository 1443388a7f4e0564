"""A worker's options: what the settings say, unless the call says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from drumline.config.sections import Settings
from drumline.engine.options import WorkerOptions
from drumline.model.options import check_count, check_name
from drumline.model.replica import Role

__all__ = ["worker_options"]


def worker_options(
    settings: Settings, name: str, role: Role, queues: Sequence[str] | None, concurrency: int | None, *, drain: bool
) -> WorkerOptions:
    """`name`: of the replica. What is None is left to the settings."""
    given = settings.worker
    return WorkerOptions(
        name=name,
        role=role,
        queues=given.queues if queues is None else tuple(check_name(queue, "queues") for queue in queues),
        concurrency=given.concurrency if concurrency is None else check_count(concurrency, "concurrency"),
        threads=given.threads,
        children=given.children,
        jobs_per_child=given.jobs_per_child,
        timeout_grace=given.timeout_grace,
        shutdown_timeout=given.shutdown_timeout,
        poll_interval=given.poll_interval,
        drain=drain,
        version=version("drumline"),
    )
