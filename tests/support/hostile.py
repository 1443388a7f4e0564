"""Texts that would like to be more than texts, and a store that holds them wherever it can hold any."""

from typing import Any

import msgspec

from drumline.clock import fresh_id
from drumline.model.claim import ANY_QUEUE, Claim, Note, Share
from drumline.model.job import Attempt, Failure, LogLine, NewJob, Progress
from drumline.model.outcome import Outcome
from drumline.model.query import By, PauseKind
from drumline.model.replica import ReplicaInfo
from drumline.stores.base import Store
from tests.support.build import new_job, new_schedule

SCRIPT = "<script>window.hostile=true</script>"
QUOTES = """"'><img src=x onerror="window.hostile = true"> {{ 7 * 7 }} ${7*7} </textarea></title>"""
TURNED = "user\u202egnp.exe\u2066 \u200f"
LONG = "w" * 10_000
TERMINAL = "\x1b[31mred\x1b]0;title\x07 \x9b2J"
TEXTS = (SCRIPT, QUOTES, TURNED, LONG, TERMINAL)
# A name that no caller could give. Redis keeps names in lines of words, so there is no space in it.
NAME = f"{SCRIPT}\"'><img/src=x/onerror=alert(1)>/..//?#%2f\u202e\x1b[31m"
REPLICA = f"{NAME}:1"


async def fill(store: Store) -> str:
    """Put them everywhere, names too, past the checks of the front door. Gives the id of a job that has them all."""
    both = " ".join(TEXTS)
    args = msgspec.json.encode({both[:300]: both, "list": list(TEXTS)})
    jobs = [_named(new_job(args=args, tags=(SCRIPT, TURNED), meta={both[:200]: both}, key=f"k{n}")) for n in range(3)]
    for job in jobs:
        msgspec.structs.force_setattr(job, "origin", both)
    await store.enqueue(jobs)
    info = ReplicaInfo(id=REPLICA, name=NAME, host=both[:200], version=SCRIPT, queues=(NAME,), tasks=(NAME,), slots=3)
    await store.beat(info, [])
    claimed = await store.claim(REPLICA, [Share(ANY_QUEUE, 2)], 2, [NAME], fresh_id())
    await store.report([_note(claim, both) for claim in claimed.claims])
    first = claimed.claims[0]
    await store.finish([Outcome.dead(first, _failed(first, both))])
    await store.declare([new_schedule("tock", args=args, in_code=False)], by=By(NAME, SCRIPT, both))
    await store.pause(PauseKind.SCHEDULE, ["tock"], paused=True, by=By(NAME, SCRIPT, both), token=fresh_id())
    await store.pause(PauseKind.QUEUE, [NAME], paused=True, by=By(NAME, SCRIPT, both), token=fresh_id())
    return first.id


def _named(job: NewJob) -> NewJob:
    msgspec.structs.force_setattr(job, "task", NAME)
    options: Any = msgspec.structs.replace(job.options)
    msgspec.structs.force_setattr(options, "queue", NAME)
    msgspec.structs.force_setattr(job, "options", options)
    return job


def _note(claim: Claim, text: str) -> Note:
    line = LogLine(1, claim.claimed_at, SCRIPT, text, {text[:200]: text}, claim.attempt)
    return Note(claim.ref, Progress(0.5, text), (line,), text)


def _failed(claim: Claim, text: str) -> Attempt:
    error = Failure(SCRIPT, text, text)
    at = claim.claimed_at
    return Attempt(claim.attempt, claim.fence, REPLICA, REPLICA, at, at, "failed", error)
