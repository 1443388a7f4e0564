"""The deeds behind the buttons: on what, by whose name, and what came of it, as a sentence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from urllib.parse import parse_qsl
from uuid import UUID

import msgspec

from drumline.errors import UnknownSchedule
from drumline.model.instant import parse_duration
from drumline.model.job import Job, JobState
from drumline.model.options import PRIVATE
from drumline.model.query import Answer, JobFilter
from drumline.web.answers import Refusal
from drumline.web.dashboard.forms import Form
from drumline.web.dashboard.joblist import Wish, read_wish
from drumline.web.dashboard.letters import kind_of_error
from drumline.web.dashboard.wording import join, plural
from drumline.web.site import Ask

__all__ = [
    "Chosen",
    "backfill_schedule",
    "cancel_jobs",
    "choose_jobs",
    "choose_queue",
    "choose_schedule",
    "discard_jobs",
    "pause_queue",
    "pause_schedule",
    "reschedule_jobs",
    "resume_queue",
    "resume_schedule",
    "retry_jobs",
    "run_schedule",
    "unregister_schedule",
]

# The most jobs that one click acts on; what is left fits the same filter afterwards.
MOST_AT_ONCE = 10_000
_MOST_CHOSEN = 1_000


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What an action is about, in words and for the store."""

    words: str
    name: str = ""
    ids: tuple[str, ...] = ()
    where: JobFilter | None = None
    # Of the jobs that fit, those that died of this.
    kind: str = ""


async def choose_jobs(_ask: Ask, form: Form) -> Chosen:
    """The jobs that were ticked, a group of dead letters, or all that fit a filter that is not empty."""
    ids = form.all("job")
    if ids:
        return _choose_ids(ids)
    if form.one("group"):
        task = form.needed("task")
        where = JobFilter(states=frozenset({JobState.DEAD}), task=task)
        return Chosen(words=f"the dead letters of {task} with this error", where=where, kind=form.needed("group"))
    wish = read_wish(dict(parse_qsl(form.one("where"))))
    if form.one("all") and not wish.is_empty:
        return Chosen(words=_say_wish(wish), where=wish.where)
    raise Refusal(422, "Choose jobs first: tick some of them, or give a filter and choose all that fit it.")


async def choose_queue(_ask: Ask, form: Form) -> Chosen:
    name = form.needed("name")
    return Chosen(words=name, name=name)


async def choose_schedule(ask: Ask, form: Form) -> Chosen:
    name = form.needed("name")
    store = await ask.web.drum.store()
    if not await store.schedules([name]):
        raise UnknownSchedule(f"schedule {name!r} is not known")
    return Chosen(words=name, name=name)


async def retry_jobs(ask: Ask, form: Form, chosen: Chosen) -> str:
    return await _act(ask, chosen, "retried", partial(ask.web.client(ask.who).jobs.retry, reason=form.reason))


async def cancel_jobs(ask: Ask, form: Form, chosen: Chosen) -> str:
    return await _act(ask, chosen, "cancelled", partial(ask.web.client(ask.who).jobs.cancel, reason=form.reason))


async def discard_jobs(ask: Ask, form: Form, chosen: Chosen) -> str:
    return await _act(ask, chosen, "discarded", partial(ask.web.client(ask.who).jobs.discard, reason=form.reason))


async def reschedule_jobs(ask: Ask, form: Form, chosen: Chosen) -> str:
    delay = parse_duration(form.one("delay") or 0, "delay")
    reschedule = ask.web.client(ask.who).jobs.reschedule
    return await _act(ask, chosen, "moved", partial(reschedule, delay=delay, reason=form.reason))


async def pause_queue(ask: Ask, form: Form, chosen: Chosen) -> str:
    (is_changed,) = await ask.web.client(ask.who).queues.pause(chosen.name, reason=form.reason)
    ask.tell("paused queue %s", chosen.name)
    return f"Queue {chosen.name} is paused." if is_changed else f"Queue {chosen.name} was paused already."


async def resume_queue(ask: Ask, form: Form, chosen: Chosen) -> str:
    (is_changed,) = await ask.web.client(ask.who).queues.resume(chosen.name, reason=form.reason)
    ask.tell("resumed queue %s", chosen.name)
    return f"Queue {chosen.name} gives jobs again." if is_changed else f"Queue {chosen.name} was not paused."


async def pause_schedule(ask: Ask, form: Form, chosen: Chosen) -> str:
    is_changed = await ask.web.schedules(ask.who).pause(chosen.name, form.reason)
    ask.tell("paused schedule %s", chosen.name)
    return f"Schedule {chosen.name} is paused." if is_changed else f"Schedule {chosen.name} was paused already."


async def resume_schedule(ask: Ask, form: Form, chosen: Chosen) -> str:
    is_changed = await ask.web.schedules(ask.who).resume(chosen.name, form.reason)
    ask.tell("resumed schedule %s", chosen.name)
    return f"Schedule {chosen.name} fires again." if is_changed else f"Schedule {chosen.name} was not paused."


async def run_schedule(ask: Ask, form: Form, chosen: Chosen) -> str:
    job = await ask.web.schedules(ask.who).trigger(chosen.name, form.reason)
    ask.tell("triggered schedule %s", chosen.name)
    return f"Schedule {chosen.name} runs now, as job {job.id}."


async def backfill_schedule(ask: Ask, form: Form, chosen: Chosen) -> str:
    start, end = (_read_instant(form.needed(name)) for name in ("start", "end"))
    jobs = await ask.web.schedules(ask.who).backfill(chosen.name, start, end, form.reason)
    ask.tell("backfilled schedule %s: %d jobs", chosen.name, len(jobs))
    return f"Schedule {chosen.name}: {plural(len(jobs), 'job')} made for ticks of that range."


async def unregister_schedule(ask: Ask, form: Form, chosen: Chosen) -> str:
    await ask.web.schedules(ask.who).unregister(chosen.name, form.reason)
    ask.tell("unregistered schedule %s", chosen.name)
    return f"Schedule {chosen.name} is unregistered."


def _choose_ids(ids: Sequence[str]) -> Chosen:
    if len(ids) > _MOST_CHOSEN:
        raise Refusal(422, f"at most {_MOST_CHOSEN:,} jobs can be ticked")
    try:
        known = tuple(str(UUID(job_id)) for job_id in ids)
    except ValueError:
        raise Refusal(422, "the id of a job must be a UUID") from None
    return Chosen(words=f"job {known[0]}" if len(known) == 1 else plural(len(known), "job"), ids=known)


def _say_wish(wish: Wish) -> str:
    return "all jobs with " + join([f"{name} {value}" for name, value in wish.words.items()])


async def _act(ask: Ask, chosen: Chosen, verb: str, do: Callable[..., Awaitable[Mapping[str, Answer]]]) -> str:
    """Do it to the jobs that are meant, and say what came of it."""
    ids = chosen.ids or await _find(ask, chosen)
    told = _tell(ask, verb, await do(*ids[:MOST_AT_ONCE]))
    return f"{told} More jobs fit: do it again for the rest." if len(ids) > MOST_AT_ONCE else told


async def _find(ask: Ask, chosen: Chosen) -> Sequence[str]:
    """The jobs that are meant, as they are now, up to one more than can be acted on; a Refusal if there are none."""
    assert chosen.where is not None
    ids: list[str] = []
    async for job in ask.web.client(ask.who).jobs.select(chosen.where):
        if _is_meant(job, chosen):
            ids.append(job.id)
        if len(ids) > MOST_AT_ONCE:
            break
    if not ids:
        raise Refusal(409, "There is no such job any more.")
    return ids


def _is_meant(job: Job, chosen: Chosen) -> bool:
    if job.queue.startswith(PRIVATE):
        return False
    return not chosen.kind or kind_of_error(job.last_error) == chosen.kind


def _tell(ask: Ask, verb: str, answers: Mapping[str, Answer]) -> str:
    """`3 jobs cancelled, 1 asked to stop, 1 could not be: …`"""
    ask.tell(f"{verb} %d jobs", len(answers))
    numbers = {answer: list(answers.values()).count(answer) for answer in Answer}
    parts = []
    if numbers[Answer.APPLIED]:
        parts.append(f"{plural(numbers[Answer.APPLIED], 'job')} {verb}")
    if numbers[Answer.REQUESTED]:
        parts.append(f"{plural(numbers[Answer.REQUESTED], 'job')} asked to stop")
    if numbers[Answer.REFUSED]:
        parts.append(f"{plural(numbers[Answer.REFUSED], 'job')} in a state in which it cannot be {verb}")
    if numbers[Answer.KEY_TAKEN]:
        parts.append(f"{plural(numbers[Answer.KEY_TAKEN], 'job')} whose unique key another job holds")
    if numbers[Answer.NOT_FOUND]:
        parts.append(f"{plural(numbers[Answer.NOT_FOUND], 'job')} not stored any more")
    sentence = ", ".join(parts) + "."
    if not numbers[Answer.APPLIED] and not numbers[Answer.REQUESTED]:
        raise Refusal(409, sentence)
    return sentence


def _read_instant(text: str) -> str:
    """As a browser's field gives it, without a zone: UTC, as the page shows it."""
    return text if text.endswith("Z") else f"{text}Z"
