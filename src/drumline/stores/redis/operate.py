"""pause, paused, command, reseal, purge, migrate and now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from drumline.model.instant import millis
from drumline.model.query import Answer, By, Command, Keep, PauseKind
from drumline.model.sealed import Resealing
from drumline.stores.redis.calls import Call, Operation
from drumline.stores.redis.pack import audit_row, opaque, pack, pack_id, start_item
from drumline.stores.rows import instant

__all__ = ["command", "migrate", "now", "pause", "paused", "purge", "reseal"]

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


def reseal(resealings: Sequence[Resealing]) -> Operation[list[bool]]:
    answers = yield Call("reseal", (pack([_resealing_item(one) for one in resealings]),))
    return [bool(answer) for answer in answers]


def _resealing_item(one: Resealing) -> tuple[Any, ...]:
    # The texts with which the two begin that hold arguments: see `job_item` and `declare`.
    begin = _spec_until_args if one.schedule is not None else _part_until_args
    job = opaque(pack_id(one.job)) if one.job is not None else False
    return job, one.schedule or False, opaque(begin(one.before)), opaque(begin(one.after))


def _part_until_args(args: bytes) -> bytes:
    return b"\x93" + pack(args)


def _spec_until_args(args: bytes) -> bytes:
    return b'{"args":' + msgspec.json.encode(args) + b","
