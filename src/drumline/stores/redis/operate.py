"""pause, paused, command, purge, migrate and now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from drumline.model.instant import millis
from drumline.model.query import Answer, By, Command, Keep, PauseKind
from drumline.stores.redis.calls import Call, Operation
from drumline.stores.redis.pack import audit_row, opaque, pack, pack_id, start_item
from drumline.stores.rows import instant

__all__ = ["command", "migrate", "now", "pause", "paused", "purge"]

_by = msgspec.json.Decoder(By)


def migrate() -> Operation[None]:
    yield Call("migrate")


def now() -> Operation[datetime]:
    moment = yield Call("now")
    return instant(moment)


def pause(kind: PauseKind, names: Sequence[str], by: By, token: str, *, is_pause: bool) -> Operation[list[bool]]:
    action = f"{'pause' if is_pause else 'resume'} {kind}"
    given = (token, kind.value, is_pause, opaque(msgspec.json.encode(by)), by.who, audit_row(by, action, names), names)
    answers = yield Call("pause", (pack(given),))
    return [answer.decode() == Answer.APPLIED for answer in answers]


def paused(kind: PauseKind) -> Operation[dict[str, By]]:
    rows = yield Call("paused", (kind.value,))
    return {name.decode(): _by.decode(by) for name, by in zip(rows[::2], rows[1::2], strict=True)}


def command(asked: Command) -> Operation[list[Answer]]:
    row = audit_row(asked.by, asked.kind.value, asked.ids, asked.part_of)
    ids = [opaque(pack_id(job_id)) for job_id in asked.ids]
    answers = yield Call("command", (pack((asked.id, asked.kind.value, *start_item(asked.start), row, ids)),))
    return [Answer(answer.decode()) for answer in answers]


def purge(keep: Keep, limit: int) -> Operation[int]:
    spans = (millis(keep.ticks), keep.newest_ticks, millis(keep.audit), millis(keep.series), millis(keep.replicas))
    count: int = yield Call("purge", (pack((limit, *spans)),))
    return count
