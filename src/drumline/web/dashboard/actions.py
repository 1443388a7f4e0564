"""What people can do here: each action asks first where it should, needs a role, and leaves its name in the audit.

A GET of `/do/<name>` is the question, a POST of it the deed; afterwards the browser is sent back to where it came from.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.responses import RedirectResponse, Response

from drumline.errors import DrumlineError
from drumline.web.access import UserRole
from drumline.web.answers import Refusal, answer_error
from drumline.web.dashboard.deeds import (
    Chosen,
    backfill_schedule,
    cancel_jobs,
    choose_jobs,
    choose_queue,
    choose_schedule,
    discard_jobs,
    pause_queue,
    pause_schedule,
    reschedule_jobs,
    resume_queue,
    resume_schedule,
    retry_jobs,
    run_schedule,
    unregister_schedule,
)
from drumline.web.dashboard.forms import Form, read_form, read_query_form
from drumline.web.dashboard.frame import Told, base_of, page, tell
from drumline.web.site import Ask, Entry, Handle

__all__ = ["ACTIONS", "ACTION_ENTRIES", "Action"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing to do. `%s` of the question is what was chosen."""

    name: str
    role: UserRole
    section: str
    label: str
    question: str
    # What it means, for somebody who has to decide.
    meaning: str
    choose: Callable[[Ask, Form], Awaitable[Chosen]]
    do: Callable[[Ask, Form, Chosen], Awaitable[str]]
    # Asked for besides the reason: none, `when`, or `range`.
    asks: str = ""
    is_dangerous: bool = False


_OPERATOR, _ADMIN = UserRole.OPERATOR, UserRole.ADMIN
ACTIONS = (
    Action(
        name="retry",
        role=_OPERATOR,
        section="jobs",
        label="Retry",
        question="Retry %s?",
        meaning="Ended jobs become ready again under their own ids, with fresh attempts; their history is kept.",
        choose=choose_jobs,
        do=retry_jobs,
    ),
    Action(
        name="cancel",
        role=_OPERATOR,
        section="jobs",
        label="Cancel",
        question="Cancel %s?",
        meaning="Jobs that wait end at once. Jobs that run are asked to stop.",
        choose=choose_jobs,
        do=cancel_jobs,
        is_dangerous=True,
    ),
    Action(
        name="discard",
        role=_ADMIN,
        section="jobs",
        label="Discard",
        question="Discard %s?",
        meaning="Ended jobs are forgotten: their arguments, results, errors and logs are gone for good.",
        choose=choose_jobs,
        do=discard_jobs,
        is_dangerous=True,
    ),
    Action(
        name="reschedule",
        role=_OPERATOR,
        section="jobs",
        label="Reschedule",
        question="Move %s to another time?",
        meaning="A waiting job becomes due at the time given. Zero makes it due now.",
        choose=choose_jobs,
        do=reschedule_jobs,
        asks="when",
    ),
    Action(
        name="pause-queue",
        role=_OPERATOR,
        section="queues",
        label="Pause",
        question="Pause queue %s?",
        meaning="It gives no more jobs, in the whole fleet, until it is resumed. What runs goes on.",
        choose=choose_queue,
        do=pause_queue,
    ),
    Action(
        name="resume-queue",
        role=_OPERATOR,
        section="queues",
        label="Resume",
        question="Resume queue %s?",
        meaning="It gives jobs again.",
        choose=choose_queue,
        do=resume_queue,
    ),
    Action(
        name="pause-schedule",
        role=_OPERATOR,
        section="schedules",
        label="Pause",
        question="Pause schedule %s?",
        meaning="It fires no more, in the whole fleet, until it is resumed. Its job can still be run by hand.",
        choose=choose_schedule,
        do=pause_schedule,
    ),
    Action(
        name="resume-schedule",
        role=_OPERATOR,
        section="schedules",
        label="Resume",
        question="Resume schedule %s?",
        meaning="It fires from now on. What was missed while it was paused is not caught up.",
        choose=choose_schedule,
        do=resume_schedule,
    ),
    Action(
        name="run-schedule",
        role=_OPERATOR,
        section="schedules",
        label="Run now",
        question="Run schedule %s now?",
        meaning="One job with its arguments and options, beside its ticks; also while it is paused.",
        choose=choose_schedule,
        do=run_schedule,
    ),
    Action(
        name="backfill-schedule",
        role=_ADMIN,
        section="schedules",
        label="Backfill",
        question="Backfill schedule %s?",
        meaning="Every tick of the range that made no job makes one now. Ticks that were fired are left alone.",
        choose=choose_schedule,
        do=backfill_schedule,
        asks="range",
    ),
    Action(
        name="unregister-schedule",
        role=_ADMIN,
        section="schedules",
        label="Unregister",
        question="Unregister schedule %s?",
        meaning="It is removed, in the whole fleet, and fires no more. Its ledger and the jobs that it made stay.",
        choose=choose_schedule,
        do=unregister_schedule,
        is_dangerous=True,
    ),
)


def _ask_first(action: Action) -> Handle:
    @page(action.section, "pages/confirm.html")
    async def ask_first(ask: Ask) -> dict[str, Any]:
        form = read_query_form(ask)
        chosen = await action.choose(ask, form)
        return {
            "action": action,
            "question": action.question.replace("%s", chosen.words),
            "fields": form.without("back", "reason"),
            "back": form.back,
        }

    return ask_first


def _act(action: Action) -> Handle:
    async def act(ask: Ask) -> Response:
        form = read_form(ask)
        response = RedirectResponse(base_of(ask) + form.back, 303)
        try:
            told = Told(await action.do(ask, form, await action.choose(ask, form)))
        except DrumlineError as error:
            told = Told(answer_error(error).message, is_good=False)
        except Refusal as refusal:
            told = Told(refusal.message, is_good=False)
        ask.web.glance.forget()
        tell(ask, response, told)
        return response

    return act


ACTION_ENTRIES = tuple(
    entry
    for action in ACTIONS
    for entry in (
        Entry(method="GET", path=f"/do/{action.name}", role=action.role, handle=_ask_first(action)),
        Entry(method="POST", path=f"/do/{action.name}", role=action.role, handle=_act(action)),
    )
)
