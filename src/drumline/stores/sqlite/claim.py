"""claim: take due jobs, lane by lane.

A lane is the ready jobs of one task in one queue. Its jobs stand in the index in the order in which they are taken, so
a claim reads the beginnings of the lanes it may take from, and merges them:

    lane (mail, send)     │ 1 3 4 7 …
    lane (mail, digest)   │ 2 5 …        →  1 2 3 4 …
    lane (mail, unknown)  │ never read
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

import msgspec

from drumline.model.claim import ANY_QUEUE, Claim, Claimed, Share
from drumline.model.instant import from_millis
from drumline.model.options import PRIVATE
from drumline.stores.base import KEPT_ATTEMPTS
from drumline.stores.files import read_statements
from drumline.stores.rows import as_claim, instant_or_none, json_text
from drumline.stores.sqlite.step import Step
from drumline.stores.statements import Many, Operation, Row, Statement

__all__ = ["PROMOTED_AT_ONCE", "claim", "demote", "find_claims", "is_promotion_due", "promote"]

_SQL = read_statements(__package__, "claim.sql")
# So many due jobs are made ready in one step; the rest in the next ones.
PROMOTED_AT_ONCE = 10_000
_TOKEN_LIFE = 60_000
_LOWEST_RANK = -1_000_000
_refs = msgspec.json.Decoder(list[tuple[str, int]])

Lane = tuple[str, str]


def claim(
    step: Step, replica: str, queues: Sequence[Share], limit: int, tasks: Sequence[str], token: str
) -> Operation[Claimed]:
    oldest = step.now - _TOKEN_LIFE
    rows = yield Statement(_SQL["find_token"], {"token": token, "oldest": oldest})
    if rows:
        claims = yield from _find_again(_refs.decode(rows[0][0]))
    else:
        yield from promote(step)
        chosen = yield from _choose(step, queues, limit, frozenset(tasks))
        claims = yield from _take(step, replica, chosen)
        if claims:
            yield Statement(_SQL["drop_tokens"], {"oldest": oldest})
            refs = json_text([(claim.id, claim.fence) for claim in claims])
            yield Statement(_SQL["keep_token"], {"token": token, "now": step.now, "refs": refs})
    ((due,),) = yield Statement(_SQL["next_due"])
    return Claimed(claims=claims, now=from_millis(step.now), next_due=instant_or_none(due))


def promote(step: Step) -> Operation[int]:
    """Make a slice of the due jobs ready, and say how many."""
    rows = yield Statement(_SQL["promote"], {"now": step.now, "limit": PROMOTED_AT_ONCE})
    for queue, task in rows:
        step.move(queue, task, "d", "r")
    return len(rows)


def demote(step: Step) -> Operation[int]:
    """After the clock has gone back: make wait again what is not yet due."""
    rows = yield Statement(_SQL["demote"], {"now": step.now})
    for queue, task in rows:
        step.move(queue, task, "r", "d")
    return len(rows)


def is_promotion_due(step: Step) -> Operation[bool]:
    rows = yield Statement(_SQL["find_due"], {"now": step.now})
    return bool(rows)


def find_claims(ids: Sequence[str]) -> Operation[list[Claim]]:
    """The live claims of those of the jobs that are running."""
    rows = yield Statement(_SQL["find_claims"], {"ids": json_text(ids)})
    return [as_claim(row, row[5]) for row in rows]


def _find_again(refs: list[tuple[str, int]]) -> Operation[list[Claim]]:
    live = yield from find_claims([job_id for job_id, _ in refs])
    held = {(claim.id, claim.fence): claim for claim in live}
    return [held[ref] for ref in refs if ref in held]


def _choose(step: Step, queues: Sequence[Share], limit: int, tasks: frozenset[str]) -> Operation[dict[str, int]]:
    """The jobs to take, by id and place in the table, in order: queue by queue, each giving at most its share."""
    paused = {queue for (queue,) in (yield Statement(_SQL["paused_queues"]))}
    chosen: dict[str, int] = {}
    for share in queues:
        room = min(share.limit, limit - len(chosen))
        if room <= 0:
            continue
        names = [name for name in (yield from _open_queues(share)) if name not in paused]
        rows = yield Statement(_SQL["lanes_of"], {"queues": json_text(names)})
        lanes = [lane for lane in rows if lane[1] in tasks]
        # A queue may be named twice, by itself and as one of any.
        found = yield from _merge(step, lanes, room + len(chosen))
        chosen |= islice(((row[2], row[3]) for row in found if row[2] not in chosen), room)
    return chosen


def _open_queues(share: Share) -> Operation[list[str]]:
    if share.queue != ANY_QUEUE:
        return [share.queue]
    rows = yield Statement(_SQL["queues_ready"])
    return [name for (name,) in rows if not name.startswith(PRIVATE) and name not in share.but]


def _merge(step: Step, lanes: Sequence[Lane], room: int) -> Operation[list[Row]]:
    """The first rows of all lanes together. Each lane is read a chunk at a time, and on only where it is used up."""
    if not lanes:
        return []
    if len(lanes) == 1:
        return (yield from _read(step, lanes[0], None, room))
    chunk = max(room // len(lanes) * 2, 8)
    heap: list[tuple[Row, int, int]] = []
    chunks: list[list[Row]] = []
    for place, lane in enumerate(lanes):
        chunks.append((yield from _read(step, lane, None, chunk)))
        if chunks[place]:
            heap.append((chunks[place][0], place, 0))
    heapq.heapify(heap)
    found: list[Row] = []
    while heap and len(found) < room:
        row, place, index = heap[0]
        found.append(row)
        index += 1
        if index == chunk and len(found) < room:
            chunks[place], index = (yield from _read(step, lanes[place], row, chunk)), 0
        if index < len(chunks[place]):
            heapq.heapreplace(heap, (chunks[place][index], place, index))
        else:
            heapq.heappop(heap)
    return found


def _read(step: Step, lane: Lane, after: Row | None, limit: int) -> Operation[list[Row]]:
    rank, due, job_id, _ = after or (_LOWEST_RANK, 0, "", 0)
    place = {"queue": lane[0], "task": lane[1], "rank": rank, "after": due, "id": job_id}
    rows: list[Row] = yield Statement(_SQL["read_lane"], {**place, "now": step.now, "limit": limit})
    return rows


def _take(step: Step, replica: str, chosen: Mapping[str, int]) -> Operation[list[Claim]]:
    if not chosen:
        return []
    places = json_text(list(chosen.values()))
    yield Statement(_SQL["take"], {"places": places, "replica": replica, "now": step.now})
    rows = yield Statement(_SQL["find_taken"], {"places": places})
    taken: dict[str, Claim] = {}
    freed: list[dict[str, str]] = []
    for row in rows:
        claim = taken[row[0]] = as_claim(row, row[5])
        if row[-2] == "p":
            freed.append({"task": claim.task, "key": row[17], "id": claim.id})
        if row[-1] >= 2 * KEPT_ATTEMPTS:
            yield from _cut_attempts(claim.id)
    if freed:
        yield Many(_SQL["free_started_key"], freed)
    for (queue, task), count in Counter([(row[3], row[2]) for row in rows]).items():
        step.move(queue, task, "r", "x", count)
    return [taken[job_id] for job_id in chosen]


def _cut_attempts(job_id: str) -> Operation[None]:
    ((attempts,),) = yield Statement(_SQL["find_attempts"], {"id": job_id})
    # Not splitlines: a message may hold other line ends than this one, which JSON escapes.
    kept = attempts.split("\n")[-KEPT_ATTEMPTS - 1 :]
    yield Statement(_SQL["keep_attempts"], {"id": job_id, "attempts": "\n".join(kept), "closed": KEPT_ATTEMPTS})
