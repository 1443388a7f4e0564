"""A worker's options: what the settings say, unless the call says otherwise."""

from __future__ import annotations

from importlib.metadata import version

import msgspec

from drumline.config.sections import Settings
from drumline.engine.options import WorkerOptions
from drumline.model.options import check_count
from drumline.model.queues import Queues, read_queues
from drumline.model.replica import Role

__all__ = ["worker_options"]


def worker_options(
    settings: Settings, name: str, role: Role, queues: Queues | None, concurrency: int | None, *, drain: bool
) -> WorkerOptions:
    """`name`: of the replica. What is None is left to the settings."""
    given = settings.worker
    slots = given.concurrency if concurrency is None else check_count(concurrency, "concurrency")
    names, weights = read_queues(given.queues if queues is None else queues, "queues")
    rules = settings.jobs.queues.of(names)
    # A list says by itself whether its order is strict or weighted.
    rules = msgspec.structs.replace(rules, weights=weights) if names else rules
    return WorkerOptions(
        name=name,
        role=role,
        queues=names,
        rules=rules.check(names, slots),
        concurrency=slots,
        threads=given.threads,
        children=given.children,
        jobs_per_child=given.jobs_per_child,
        timeout_grace=given.timeout_grace,
        shutdown_timeout=given.shutdown_timeout,
        poll_interval=given.poll_interval,
        drain=drain,
        version=version("drumline"),
    )
