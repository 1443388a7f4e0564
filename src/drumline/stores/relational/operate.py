"""pause and command, and other acts: what people do to the fleet, each with its audit row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, assert_never

import msgspec

from drumline.model.act import Act, Fate
from drumline.model.instant import from_millis
from drumline.model.options import decode_options
from drumline.model.query import Answer, By, Command, CommandKind, PauseKind
from drumline.stores.base import topic
from drumline.stores.relational.fire import ask_to_stop
from drumline.stores.relational.produce import hold_again
from drumline.stores.relational.schedule import Plan, find_plan, tell_change, tell_pause
from drumline.stores.relational.ways import Again, S, Ways
from drumline.stores.rows import due_of, find_uuids, json_text, options_params, state_due
from drumline.stores.statements import Operation, Statement, in_turn

__all__ = ["acted", "command", "pause", "paused"]

T = TypeVar("T")

_answers = msgspec.json.Decoder(list[Answer])
_by = msgspec.json.Decoder(By)


def pause(
    ways: Ways[S], step: S, kind: PauseKind, names: Sequence[str], *, is_pause: bool, by: By, token: str
) -> Operation[list[bool]]:
    answers = yield from _find_answers(ways, token)
    if answers is None:
        yield from ways.lock_schedules(names if kind is PauseKind.SCHEDULE else ())
        change = _pause_queue if kind is PauseKind.QUEUE else _pause_schedule
        answers = yield from in_turn(change(ways, step, name, by, is_pause=is_pause) for name in names)
        action = f"{'pause' if is_pause else 'resume'} {kind}"
        yield from _tell_audit(ways, step, token, by, action, names, answers, None)
        if kind is PauseKind.QUEUE and Answer.APPLIED in answers:
            yield from tell_change(ways, step)
    return [answer is Answer.APPLIED for answer in answers]


def paused(ways: Ways[S], kind: PauseKind) -> Operation[dict[str, By]]:
    rows = yield Statement(ways.sql["find_pauses" if kind is PauseKind.QUEUE else "find_paused_schedules"])
    return {name: _by.decode(by) for name, by in rows}


def command(ways: Ways[S], step: S, asked: Command) -> Operation[list[Answer]]:
    answers = yield from _find_answers(ways, asked.id)
    if answers is None:
        ids = find_uuids(asked.ids)
        yield from ways.lock_jobs(ids)
        answers = yield from in_turn(_command_one(ways, step, asked, job_id) for job_id in asked.ids)
        yield from _tell_audit(ways, step, asked.id, asked.by, asked.kind.value, asked.ids, answers, asked.part_of)
    return answers


def acted(
    ways: Ways[S], step: S, act: Act | None, operation: Operation[T], fates_of: Callable[[T], list[Fate]]
) -> Operation[T]:
    """The operation, and, if it is somebody's act, its audit row in the same step, unless that stands."""
    if act is None:
        return (yield from operation)
    standing = yield from _find_answers(ways, act.id)
    answer = yield from operation
    if standing is None and (fates := fates_of(answer)):
        row = act.row(from_millis(step.now), fates)
        yield from _tell_audit(ways, step, row.id, row.by, row.action, row.targets, row.answers, row.part_of)
    return answer


def _find_answers(ways: Ways[S], action_id: str) -> Operation[list[Answer] | None]:
    yield from ways.lock_action(action_id)
    rows = yield Statement(ways.sql["find_audit"], {"id": action_id})
    return _answers.decode(rows[0][0]) if rows else None


def _tell_audit(
    ways: Ways[S],
    step: S,
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
    yield Statement(ways.sql["add_audit"], row)


def _pause_queue(ways: Ways[S], step: S, name: str, by: By, *, is_pause: bool) -> Operation[Answer]:
    row = {"queue": name, "by": json_text(by)}
    changed = yield Statement(ways.sql["add_pause" if is_pause else "drop_pause"], row)
    if changed and not is_pause:
        step.hint(topic.queue(name))
    return Answer.APPLIED if changed else Answer.REFUSED


def _pause_schedule(ways: Ways[S], step: S, name: str, by: By, *, is_pause: bool) -> Operation[Answer]:
    plan = yield from find_plan(ways, name)
    if plan is None:
        return Answer.NOT_FOUND
    if is_pause == (plan.paused is not None):
        return Answer.REFUSED
    if is_pause:
        yield Statement(ways.sql["pause_schedule"], {"name": name, "now": step.now, "by": json_text(by)})
    else:
        yield from _resume(ways, step, plan, by)
    yield from tell_change(ways, step, name)
    return Answer.APPLIED


def _resume(ways: Ways[S], step: S, plan: Plan, by: By) -> Operation[None]:
    yield from tell_pause(ways, step, plan, by)
    yield Statement(ways.sql["resume_schedule"], {"name": plan.schedule.name, "now": step.now})


def _command_one(ways: Ways[S], step: S, asked: Command, job_id: str) -> Operation[Answer]:
    if not find_uuids([job_id]):
        return Answer.NOT_FOUND
    match asked.kind:
        case CommandKind.CANCEL:
            return (yield from _cancel(ways, step, job_id))
        case CommandKind.RETRY:
            return (yield from _retry(ways, step, job_id))
        case CommandKind.DISCARD:
            return (yield from _discard(ways, step, job_id))
        case CommandKind.RESCHEDULE:
            return (yield from _reschedule(ways, step, asked, job_id))
        case _:
            assert_never(asked.kind)


def _cancel(ways: Ways[S], step: S, job_id: str) -> Operation[Answer]:
    rows = yield Statement(ways.sql["find_unfinished_job"], {"id": job_id})
    if not rows:
        return (yield from _refuse(ways, job_id))
    if (yield from ways.cancel_waiting(step, job_id, rows[0][0])):
        return Answer.APPLIED
    if not (yield from ask_to_stop(ways, step, job_id)):
        # It was given back, or has ended, since we looked.
        raise Again
    return Answer.REQUESTED


def _refuse(ways: Ways[S], job_id: str) -> Operation[Answer]:
    """The answer for a job that is not in a state in which this can be done, or is not there."""
    unfinished = yield Statement(ways.sql["find_unfinished_job"], {"id": job_id})
    ended = yield Statement(ways.sql["find_ended_job"], {"id": job_id})
    return Answer.REFUSED if unfinished or ended else Answer.NOT_FOUND


def _retry(ways: Ways[S], step: S, job_id: str) -> Operation[Answer]:
    rows = yield Statement(ways.sql["find_ended_job"], {"id": job_id})
    if not rows:
        return (yield from _refuse(ways, job_id))
    ((queue, task, state, options_text, key, window, span, created),) = rows
    if key is not None:
        until = None if span is None else created + span
        if not (yield from hold_again(ways, step, task, key, job_id, window, until)):
            return Answer.KEY_TAKEN
    options = options_params(decode_options(options_text))
    row = {"id": job_id, "now": step.now, "rank": options["rank"], "term": options["term"]}
    yield from ways.revive(row)
    step.move(queue, task, state, "r")
    step.hint(topic.queue(queue))
    return Answer.APPLIED


def _discard(ways: Ways[S], step: S, job_id: str) -> Operation[Answer]:
    if (yield from ways.forget(step, job_id)):
        return Answer.APPLIED
    return (yield from _refuse(ways, job_id))


def _reschedule(ways: Ways[S], step: S, asked: Command, job_id: str) -> Operation[Answer]:
    rows = yield Statement(ways.sql["lock_waiting"], {"id": job_id})
    if not rows:
        return (yield from _refuse(ways, job_id))
    ((queue, task, before),) = rows
    due = due_of(asked.start, step.now)
    after = "b" if before == "b" else state_due(due, step.now)
    yield Statement(ways.sql["move_due"], {"id": job_id, "due": due, "state": after})
    step.move(queue, task, before, after)
    step.hint(topic.queue(queue))
    return Answer.APPLIED
