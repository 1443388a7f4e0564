"""How jobs are made here, their keys taken, and waiting jobs replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from drumline.model.instant import millis
from drumline.model.job import JobState, Key, NewJob
from drumline.stores.base import topic
from drumline.stores.files import read_statements
from drumline.stores.relational.ways import Holders
from drumline.stores.rows import job_params, json_text, reads_as, window_letter
from drumline.stores.sqlite.step import Step
from drumline.stores.statements import Many, Operation, Statement

__all__ = ["add", "find_holders", "replace"]

_SQL = read_statements(__package__, "produce.sql")
_tags = msgspec.json.Decoder(tuple[str, ...])


def add(step: Step, jobs: Sequence[NewJob], waits_for: str | None = None) -> Operation[dict[str, JobState]]:
    """Make the jobs, whose ids are new; with `waits_for`, blocked until that job has ended."""
    now = step.now
    rows = [job_params(job, now) for job in jobs]
    if waits_for is not None:
        rows = [{**row, "state": "b", "waits_for": waits_for} for row in rows]
    yield Many(_SQL["add_job"], rows)
    for row in rows:
        step.move(row["queue"], row["task"], None, row["state"])
        step.hint(topic.queue(row["queue"]))
    tags = [row for job in jobs if job.tags for row in _tag_rows(job.id, now, job.tags)]
    if tags:
        yield Many(_SQL["add_tag"], tags)
    keys = [_key_row(now, job.task, job.key, job.id) for job in jobs if job.key is not None]
    if keys:
        yield Many(_SQL["hold_key"], keys)
    return {row["id"]: reads_as(row["state"], row["due"], now) for row in rows}


def find_holders(step: Step, jobs: Sequence[NewJob]) -> Operation[Holders]:
    """Who holds the keys of the jobs. Those that are free, `add` takes: nobody else does meanwhile."""
    keys = [{"task": job.task, "key": job.key.name} for job in jobs if job.key is not None]
    rows = yield Statement(_SQL["find_holders"], {"keys": json_text(keys), "now": step.now})
    return {(task, key): holder for task, key, holder in rows}


def replace(step: Step, holder: str, job: NewJob) -> Operation[JobState]:
    """Let a waiting job take over what another one asks for; how it reads then."""
    ((queue, state, created, tags),) = yield Statement(_SQL["find_replaced"], {"id": holder})
    row = job_params(job, step.now)
    yield Statement(_SQL["replace_job"], {**row, "id": holder})
    if tags:
        yield Many(_SQL["drop_tag"], _tag_rows(holder, created, _tags.decode(tags)))
    if job.tags:
        yield Many(_SQL["add_tag"], _tag_rows(holder, created, job.tags))
    after = "b" if state == "b" else row["state"]
    step.move(queue, job.task, state, None)
    step.move(row["queue"], job.task, None, after)
    step.hint(topic.queue(row["queue"]))
    return reads_as(after, row["due"], step.now)


def _tag_rows(job_id: str, created: int, tags: Sequence[str]) -> list[dict[str, Any]]:
    return [{"tag": tag, "created": created, "job": job_id} for tag in tags]


def _key_row(now: int, task: str, key: Key, job_id: str) -> dict[str, Any]:
    until = None if key.span is None else now + millis(key.span)
    return {"task": task, "key": key.name, "job": job_id, "key_window": window_letter(key.window), "until": until}
