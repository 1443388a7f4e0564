"""reseal: arguments in another form, where they still stand as they were read."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from drumline.model.sealed import Resealing
from drumline.stores.base import topic
from drumline.stores.relational.schedule import find_plan, tell_change
from drumline.stores.relational.ways import S, Ways
from drumline.stores.rows import find_uuids, json_text
from drumline.stores.statements import Operation, Statement, in_turn

__all__ = ["reseal"]


def reseal(ways: Ways[S], step: S, resealings: Sequence[Resealing]) -> Operation[list[bool]]:
    yield from ways.lock_schedules(one.schedule for one in resealings if one.schedule is not None)
    yield from ways.lock_jobs(find_uuids(one.job for one in resealings if one.job is not None))
    return (yield from in_turn(_reseal_one(ways, step, one) for one in resealings))


def _reseal_one(ways: Ways[S], step: S, one: Resealing) -> Operation[bool]:
    if one.schedule is not None:
        return (yield from _reseal_schedule(ways, step, one.schedule, one))
    if one.job is None or not find_uuids([one.job]):
        return False
    given = {"id": one.job, "before": ways.write_args(one.before), "after": ways.write_args(one.after)}
    rows = yield Statement(ways.sql["reseal_job"], given)
    for (queue,) in rows:
        # Where a claim passes over what others hold, a worker may have seen an empty queue meanwhile.
        step.hint(topic.queue(queue))
    if not rows:
        rows = yield Statement(ways.sql["reseal_ended_job"], given)
    return bool(rows)


def _reseal_schedule(ways: Ways[S], step: S, name: str, one: Resealing) -> Operation[bool]:
    plan = yield from find_plan(ways, name)
    if plan is None or plan.schedule.args not in (one.before, one.after):
        return False
    if plan.schedule.args == one.before:
        spec = json_text(msgspec.structs.replace(plan.schedule, args=one.after))
        yield Statement(ways.sql["change_schedule"], {"name": name, "spec": spec})
        yield from tell_change(ways, step, name)
    return True
