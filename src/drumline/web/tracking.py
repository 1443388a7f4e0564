"""Tracking: what an end user may see of one job, by a token that cannot be guessed.

Never arguments, never an error but the one that was written for users. A job that names its owner, as
`using(meta={"owner": "42"})`, is shown only where the program's own `owner=` function says that this owner asks.
"""

from __future__ import annotations

import inspect
from typing import Any

from starlette.responses import Response

from drumline.errors import JobNotFound
from drumline.model.job import ENDED, Job, JobState
from drumline.model.sealed import read_body
from drumline.model.token import read_token
from drumline.web.answers import Refusal, answer_json
from drumline.web.dashboard.render import fill
from drumline.web.show import redactor_of
from drumline.web.site import Ask, Entry

__all__ = ["TRACK"]

OWNER = "owner"
# How often a page that shows the fragment asks again, in seconds.
LOOK_EVERY = 2
_NOT_FOUND = "there is no such job"


async def answer_track(ask: Ask) -> Response:
    """The job's status: JSON, or, to a browser that asks for HTML, a fragment that asks again by itself."""
    job = await _find(ask)
    status = _status_json(ask, job)
    accepted = ask.request.headers.get("accept", "")
    if "text/html" not in accepted and "hx-request" not in ask.request.headers:
        return answer_json(status)
    is_over = job.state in ENDED
    path = ask.request.url.path
    text = fill("track.html", status=status, is_over=is_over, path=path, look_every=LOOK_EVERY)
    response = Response(text, media_type="text/html")
    if not is_over:
        # For a page that is nothing but the fragment; htmx goes by the attributes instead.
        response.headers["Refresh"] = str(LOOK_EVERY)
    return response


async def _find(ask: Ask) -> Job:
    """The job; 404, always with the same words, for a token or an owner that is wrong."""
    job_id = read_token(ask.web.drum.secret, ask.path["token"])
    if job_id is None:
        raise Refusal(404, _NOT_FOUND)
    try:
        job = await ask.web.client("track").jobs.read(job_id)
    except JobNotFound:
        raise Refusal(404, _NOT_FOUND) from None
    if OWNER in job.meta and str(job.meta[OWNER]) != await _asker(ask):
        raise Refusal(404, _NOT_FOUND)
    return job


async def _asker(ask: Ask) -> str | None:
    if ask.web.owner is None:
        return None
    found: Any = ask.web.owner(ask.request)
    found = await found if inspect.isawaitable(found) else found
    return None if found is None else str(found)


def _status_json(ask: Ask, job: Job) -> dict[str, Any]:
    redact = redactor_of(ask.web.drum, job)
    state = JobState.RUNNING if job.state is JobState.CANCELLING else job.state
    is_done = job.state is JobState.DONE
    progress = job.progress
    result = read_body(job.result) if is_done and job.result is not None and not job.result_is_repr else None
    return {
        "status": state.value,
        "progress": 1.0 if is_done else None if progress is None else progress.value,
        "message": "" if progress is None else redact.text(progress.message),
        "result": redact.value(result),
        "error": None if job.user_error is None else redact.text(job.user_error),
    }


TRACK = (Entry(method="GET", path="/{token}", role=None, handle=answer_track),)
