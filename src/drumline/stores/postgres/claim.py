"""claim: take due jobs, lane by lane.

A lane is the ready jobs of one task in one queue; they stand in the index in the order in which they are taken. One
statement reads and locks the beginnings of the lanes it may take from, and takes what comes first of all of them:

    lane (mail, send)     │ 1 3 4 7 │ …         up to the first place behind which a lane was not read:
    lane (mail, digest)   │ 2 5 │ …         →   1 2 3 4 5
    lane (mail, unknown)  │ never read

What is left to take is asked for again.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from drumline.model.claim import ANY_QUEUE, Claim, Claimed, Share
from drumline.model.instant import from_millis
from drumline.model.options import PRIVATE
from drumline.stores.files import read_statements
from drumline.stores.postgres.floors import Floors
from drumline.stores.postgres.rows import from_text
from drumline.stores.postgres.step import Step
from drumline.stores.rows import as_claim, instant_or_none, json_text
from drumline.stores.statements import Operation, Row, Statement

__all__ = [
    "PROMOTED_AT_ONCE",
    "Asked",
    "ask_the_time",
    "claim",
    "demote",
    "find_claims",
    "look_at_clock",
    "promote",
    "row_claim",
    "take_new",
]

_SQL = read_statements(__package__, "claim.sql")
# So many due jobs are made ready in one step; the rest in the next ones.
PROMOTED_AT_ONCE = 10_000
# Rank, due and id.
_IN_TURN = itemgetter(20, 9, 0)
_told = msgspec.json.Decoder(list[Any])
# So often a call looks for more before it is content with what it has.
_MOST_LOOKS = 10
# Before the next look at what somebody else has locked, in milliseconds.
_LOCKED_PAUSE = 50


class Asked(NamedTuple):
    """What a call of claim asks for; `call` is its own, where the token may be that of an earlier one."""

    replica: str
    queues: Sequence[Share]
    limit: int
    tasks: Sequence[str]
    token: str
    call: str
    floors: Floors


class _Look(NamedTuple):
    """What one look at a share gave, and what it saw on the way; instants in milliseconds."""

    claims: list[Claim]
    now: int
    next_due: int | None
    # Delayed jobs are due, and were not promoted.
    is_overdue: bool
    # So many were chosen; none of them is claimed if the token was used before.
    chosen: int
    # There may be more in the lanes, behind what was read of them.
    is_cut: bool
    # There are several lanes, and somebody else is about to take some of what is there, but perhaps not all of it.
    is_contended: bool
    # The token was used before.
    is_repeated: bool


def claim(step: Step, asked: Asked, latest: int) -> Operation[Claimed]:
    """`latest` is the latest instant that this process knows of: before it, the clock has gone back."""
    # What a try before has taken, whose end was disturbed, is taken; and whoever asks for no more asks only for that.
    claims: list[Claim] = (yield from _find_again(asked.token)) if step.tries or not asked.limit else []
    look: _Look | None = None
    for share in asked.queues:
        room = min(share.limit, asked.limit - len(claims))
        if room <= 0:
            continue
        look = yield from _take(asked, share, room)
        claims += look.claims
        if not claims and (look.chosen or look.is_repeated):
            claims = yield from _find_again(asked.token)
            break
    if look is None or look.now < latest:
        if look is not None:
            yield from demote()
        look = yield from _look(asked, Share(ANY_QUEUE, 0), 0, regardless=False)
    step.now = look.now
    return Claimed(claims=claims, now=from_millis(look.now), next_due=instant_or_none(look.next_due))


def take_new(step: Step, asked: Asked, job_id: str, latest: int) -> Operation[Claimed | None]:
    """Take this job, which has just come; None if it is not to be had so."""
    if step.tries and (claims := (yield from _find_again(asked.token))):
        return Claimed(claims=claims, now=claims[0].claimed_at, next_due=None)
    params = {"id": job_id, "latest": latest, "replica": asked.replica, "token": asked.token, "call": asked.call}
    rows = yield Statement(_SQL["take_new"], params)
    if not rows:
        return None
    claim = row_claim(rows[0])
    return Claimed(claims=[claim], now=claim.claimed_at, next_due=instant_or_none(rows[0][-1]))


def promote() -> Operation[tuple[int, int]]:
    """Make a slice of the due jobs ready; how many, and what time it is."""
    ((count, now),) = yield Statement(_SQL["promote"], {"limit": PROMOTED_AT_ONCE})
    return count, now


def demote() -> Operation[None]:
    """After the clock has gone back: make wait again what is not yet due."""
    yield Statement(_SQL["demote"])


def look_at_clock() -> Operation[tuple[int, bool]]:
    """The present, and whether a delayed job is due."""
    ((now, is_overdue),) = yield Statement(_SQL["look_at_clock"])
    return now, is_overdue


def ask_the_time() -> Operation[int | None]:
    """The present; None where nothing can be written, for a fleet cannot go by that server."""
    ((now, is_read_only),) = yield Statement(_SQL["ask_the_time"])
    present: int = now
    return None if is_read_only else present


def find_claims(ids: Sequence[str]) -> Operation[list[Claim]]:
    """The live claims of those of the jobs that are running."""
    rows = yield Statement(_SQL["find_claims"], {"ids": json_text(ids)})
    return [row_claim(row) for row in rows]


def row_claim(row: Row) -> Claim:
    """A claim, from a row with the columns in the order of its fields."""
    return as_claim(row, from_text(row[5]))


def _find_again(token: str) -> Operation[list[Claim]]:
    rows = yield Statement(_SQL["find_again"], {"token": token})
    return [row_claim(row) for row in rows]


def _take(asked: Asked, share: Share, room: int) -> Operation[_Look]:
    """Look until the room is filled, or there is no more."""
    look = yield from _look(asked, share, room, regardless=False)
    earliest = 0
    if look.is_overdue:
        promoted, now = yield from promote()
        # All that is due is in the hands of somebody whose transaction is open: it is not asked for without a pause.
        earliest = 0 if promoted else now + _LOCKED_PAUSE
        look = yield from _look(asked, share, room, regardless=True)
    for _ in range(_MOST_LOOKS):
        missing = room - len(look.claims)
        is_used = look.chosen > len(look.claims)
        if not missing or is_used or not (look.is_cut or (look.is_contended and not look.claims)):
            break
        if not look.is_cut:
            # Whoever has locked it is about to take it, or to leave it.
            yield Statement(_SQL["wait_a_little"])
        more = yield from _look(asked, share, missing, regardless=True)
        look = more._replace(claims=look.claims + more.claims, chosen=look.chosen + more.chosen)
    return look if look.next_due is None else look._replace(next_due=max(look.next_due, earliest))


def _look(asked: Asked, share: Share, room: int, *, regardless: bool) -> Operation[_Look]:
    floors, queue = asked.floors, share.queue
    bands = floors.bands(queue, asked.tasks)
    params = {
        "replica": asked.replica,
        "queue": None if queue == ANY_QUEUE else queue,
        "private": f"{PRIVATE}%",
        "but": list(share.but),
        "tasks": list(asked.tasks),
        "limit": room,
        "token": asked.token,
        "call": asked.call,
        "regardless": regardless,
        "bands": None if bands is None else json_text(bands),
    }
    began = floors.begin()
    (told, *rows) = yield Statement(_SQL["claim"], params)
    rows.sort(key=_IN_TURN)
    look = _Look([row_claim(row) for row in rows], *_told.decode(told[-1]))
    floors.note(queue, began, look.claims, is_full=bands is None)
    if bands is not None and len(look.claims) < room:
        # What lies outside the bands is seen by the next look from the beginning: let it come in time.
        again = look.now + int(floors.remaining(queue) * 1000) + 1
        look = look._replace(next_due=min(look.next_due or again, again))
    return look
