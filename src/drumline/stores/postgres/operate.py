"""pause and command: what people do to the fleet, each with its audit row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec

from drumline.model.instant import from_millis
from drumline.model.options import decode_options
from drumline.model.query import Answer, By, Command, CommandKind, PauseKind
from drumline.model.schedule import Decision, Firing
from drumline.stores.base import topic
from drumline.stores.files import read_statements
from drumline.stores.postgres.again import Again
from drumline.stores.postgres.ending import cancel_waiting, lock_schedules
from drumline.stores.postgres.fire import ask_to_stop
from drumline.stores.postgres.produce import hold_key, is_held_by_another
from drumline.stores.postgres.purge import forget
from drumline.stores.postgres.rows import find_uuids
from drumline.stores.postgres.schedule import Plan, find_plan, tell_change, tell_ledger
from drumline.stores.postgres.step import Step
from drumline.stores.rows import due_of, json_text, options_params, state_due
from drumline.stores.statements import Operation, Statement, in_turn

__all__ = ["command", "pause", "paused"]

_SQL = read_statements(__package__, "operate.sql")
_answers = msgspec.json.Decoder(list[Answer])
_by = msgspec.json.Decoder(By)


def pause(
    step: Step, kind: PauseKind, names: Sequence[str], *, is_pause: bool, by: By, token: str
) -> Operation[list[bool]]:
    answers = yield from _find_answers(token)
    if answers is None:
        yield from lock_schedules(names if kind is PauseKind.SCHEDULE else ())
        change = _pause_queue if kind is PauseKind.QUEUE else _pause_schedule
        answers = yield from in_turn(change(step, name, by, is_pause=is_pause) for name in names)
        action = f"{'pause' if is_pause else 'resume'} {kind}"
        yield from _tell_audit(step, token, by, action, names, answers, None)
        if kind is PauseKind.QUEUE and Answer.APPLIED in answers:
            yield from tell_change(step)
    return [answer is Answer.APPLIED for answer in answers]


def paused(kind: PauseKind) -> Operation[dict[str, By]]:
    rows = yield Statement(_SQL["find_pauses" if kind is PauseKind.QUEUE else "find_paused_schedules"])
    return {name: _by.decode(by) for name, by in rows}


def command(step: Step, asked: Command) -> Operation[list[Answer]]:
    answers = yield from _find_answers(asked.id)
    if answers is None:
        ids = find_uuids(asked.ids)
        rows = yield Statement(_SQL["find_schedules_of"], {"ids": ids})
        yield from lock_schedules(name for (name,) in rows)
        yield Statement(_SQL["lock_jobs"], {"ids": ids})
        answers = yield from in_turn(_command_one(step, asked, job_id) for job_id in asked.ids)
        yield from _tell_audit(step, asked.id, asked.by, asked.kind.value, asked.ids, answers, asked.part_of)
    return answers


def _find_answers(action_id: str) -> Operation[list[Answer] | None]:
    yield Statement(_SQL["lock_action"], {"id": action_id})
    rows = yield Statement(_SQL["find_audit"], {"id": action_id})
    return _answers.decode(rows[0][0]) if rows else None


def _tell_audit(
    step: Step,
    action_id: str,
    by: By,
    action: str,
    targets: Sequence[str],
    answers: Sequence[Answer],
    part_of: str | None,
) -> Operation[None]:
    row = {
        "id": action_id,
        "now": step.now,
        "by": json_text(by),
        "action": action,
        "targets": json_text(targets),
        "answers": json_text(answers),
        "part_of": part_of,
    }
    yield Statement(_SQL["add_audit"], row)


def _pause_queue(step: Step, name: str, by: By, *, is_pause: bool) -> Operation[Answer]:
    row = {"queue": name, "by": json_text(by)}
    changed = yield Statement(_SQL["add_pause" if is_pause else "drop_pause"], row)
    if changed and not is_pause:
        step.hint(topic.queue(name))
    return Answer.APPLIED if changed else Answer.REFUSED


def _pause_schedule(step: Step, name: str, by: By, *, is_pause: bool) -> Operation[Answer]:
    plan = yield from find_plan(name)
    if plan is None:
        return Answer.NOT_FOUND
    if is_pause == (plan.paused is not None):
        return Answer.REFUSED
    if is_pause:
        yield Statement(_SQL["pause_schedule"], {"name": name, "now": step.now, "by": json_text(by)})
    else:
        yield from _resume(step, plan, by)
    yield from tell_change(step, name)
    return Answer.APPLIED


def _resume(step: Step, plan: Plan, by: By) -> Operation[None]:
    name = plan.schedule.name
    row = Firing(
        schedule=name,
        mark=f"paused:{plan.paused}",
        instant=from_millis(plan.paused or step.now),
        decision=Decision.PAUSED,
        reason=plan.paused_by.why if plan.paused_by is not None else "",
        until=from_millis(step.now),
        count=0,
    )
    yield from tell_ledger(step, row, by.who, Decision.PAUSED)
    yield Statement(_SQL["resume_schedule"], {"name": name, "now": step.now})


def _command_one(step: Step, asked: Command, job_id: str) -> Operation[Answer]:
    if not find_uuids([job_id]):
        return Answer.NOT_FOUND
    match asked.kind:
        case CommandKind.CANCEL:
            return (yield from _cancel(step, job_id))
        case CommandKind.RETRY:
            return (yield from _retry(step, job_id))
        case CommandKind.DISCARD:
            return (yield from _discard(job_id))
        case CommandKind.RESCHEDULE:
            return (yield from _reschedule(step, asked, job_id))
        case _:
            assert_never(asked.kind)


def _cancel(step: Step, job_id: str) -> Operation[Answer]:
    rows = yield Statement(_SQL["find_unfinished_job"], {"id": job_id})
    if not rows:
        return (yield from _refuse(job_id))
    if (yield from cancel_waiting(step, {job_id: rows[0][0]})):
        return Answer.APPLIED
    if not (yield from ask_to_stop(step, job_id)):
        # It was given back, or has ended, since we looked.
        raise Again
    return Answer.REQUESTED


def _refuse(job_id: str) -> Operation[Answer]:
    """The answer for a job that is not in a state in which this can be done, or is not there."""
    unfinished = yield Statement(_SQL["find_unfinished_job"], {"id": job_id})
    ended = yield Statement(_SQL["find_ended_job"], {"id": job_id})
    return Answer.REFUSED if unfinished or ended else Answer.NOT_FOUND


def _retry(step: Step, job_id: str) -> Operation[Answer]:
    rows = yield Statement(_SQL["find_ended_job"], {"id": job_id})
    if not rows:
        return (yield from _refuse(job_id))
    ((queue, task, state, options_text, key, window, span, created),) = rows
    if key is not None:
        if (yield from is_held_by_another(task, key, job_id)):
            return Answer.KEY_TAKEN
        yield from hold_key(task, key, job_id, window, None if span is None else created + span)
    options = options_params(decode_options(options_text))
    row = {"id": job_id, "now": step.now, "rank": options["rank"], "term": options["term"]}
    yield Statement(_SQL["revive"], row)
    step.move(queue, task, state, "r")
    step.hint(topic.queue(queue))
    return Answer.APPLIED


def _discard(job_id: str) -> Operation[Answer]:
    if (yield from forget([job_id])):
        return Answer.APPLIED
    return (yield from _refuse(job_id))


def _reschedule(step: Step, asked: Command, job_id: str) -> Operation[Answer]:
    rows = yield Statement(_SQL["lock_waiting"], {"id": job_id})
    if not rows:
        return (yield from _refuse(job_id))
    ((queue, task, before),) = rows
    due = due_of(asked.start, step.now)
    after = "b" if before == "b" else state_due(due, step.now)
    yield Statement(_SQL["move_due"], {"id": job_id, "due": due, "state": after})
    step.move(queue, task, before, after)
    step.hint(topic.queue(queue))
    return Answer.APPLIED
