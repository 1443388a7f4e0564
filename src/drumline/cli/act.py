"""Acting on jobs, by ids or by a filter, and saying what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from drumline.cli.exits import Exit
from drumline.cli.progress import show_progress
from drumline.cli.show import complain, say, show_json
from drumline.errors import BadOption

if TYPE_CHECKING:
    from drumline.client import Jobs
    from drumline.model.query import Answer

__all__ = ["Verb", "act", "cancelled", "discarded", "moved", "retried"]

Answers = Mapping[str, "Answer"]


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing that can be done to jobs."""

    # What has become of a job when it was done.
    done: str
    # Why it is refused.
    refusal: str
    # The jobs that a filter means where it names no state.
    states: tuple[str, ...]
    apply: Callable[[Jobs, Sequence[str], Mapping[str, Any]], Awaitable[Answers]]


def retried(reason: str) -> Verb:
    return Verb(
        "retried",
        "only a job that has ended can be retried",
        ("dead",),
        lambda jobs, ids, where: jobs.retry(*ids, reason=reason, **where),
    )


def cancelled(reason: str) -> Verb:
    return Verb(
        "cancelled",
        "it has already ended",
        ("delayed", "ready", "running"),
        lambda jobs, ids, where: jobs.cancel(*ids, reason=reason, **where),
    )


def discarded(reason: str) -> Verb:
    return Verb(
        "discarded",
        "only a job that has ended can be discarded",
        ("dead",),
        lambda jobs, ids, where: jobs.discard(*ids, reason=reason, **where),
    )


def moved(reason: str, at: str | None, delay: float | str | None) -> Verb:
    return Verb(
        "moved",
        "only a job that waits can be moved",
        ("delayed", "ready"),
        lambda jobs, ids, where: jobs.reschedule(*ids, at=at, delay=delay, reason=reason, **where),
    )


def act(
    verb: Verb,
    ids: Sequence[str] | None,
    where: Mapping[str, Any],
    app: str | None,
    store: str | None,
    *,
    as_json: bool,
) -> None:
    """Do it, say what came of it, and end with the code that this has."""
    if bool(ids) == bool(where):
        raise BadOption("jobs", "named by ids, or by a filter such as --state, but not both", ids or where or "neither")
    wanted = {"state": verb.states, **where} if where else {}
    answers = asyncio.run(_apply(verb, ids or (), wanted, app, store))
    if as_json:
        show_json({job_id: answer.value for job_id, answer in answers.items()})
    elif where:
        _count(verb, answers)
    else:
        _tell(verb, answers)
    raise typer.Exit(_code(answers, by_filter=bool(where)))


async def _apply(
    verb: Verb, ids: Sequence[str], where: Mapping[str, Any], app: str | None, store: str | None
) -> Answers:
    from drumline.cli.app import reach

    async with reach(app, store) as client:
        with show_progress(f"jobs {verb.done}") as client.on_progress:
            return await verb.apply(client.jobs, list(dict.fromkeys(ids)), where)


def _tell(verb: Verb, answers: Answers) -> None:
    for job_id, answer in answers.items():
        sentence = f"job {job_id}: {_words(verb, answer)}"
        if _is_yes(answer):
            say(sentence)
        else:
            complain(sentence)


def _count(verb: Verb, answers: Answers) -> None:
    kinds = dict.fromkeys(answers.values())
    for kind in kinds:
        number = sum(answer == kind for answer in answers.values())
        say(f"{number} {'job' if number == 1 else 'jobs'}: {_words(verb, kind)}")
    if not kinds:
        complain("no job fits the filter")


def _words(verb: Verb, answer: Answer) -> str:
    match answer.value:
        case "applied":
            return verb.done
        case "requested":
            return "asked to stop"
        case "key taken":
            return "refused: another job holds its unique key"
        case "refused":
            return f"refused: {verb.refusal}"
        case _:
            return "not found: the id is wrong, or its retention is over"


def _is_yes(answer: Answer) -> bool:
    return answer.value in ("applied", "requested")


def _code(answers: Answers, *, by_filter: bool) -> Exit:
    """All of the jobs that were named must have been served; of a filter's, one is enough: the others moved on."""
    noes = [answer for answer in answers.values() if not _is_yes(answer)]
    if by_filter:
        return Exit.DONE if len(noes) < len(answers) else Exit.NO
    if not noes:
        return Exit.DONE
    return Exit.NOT_FOUND if all(answer.value == "not found" for answer in noes) else Exit.NO
