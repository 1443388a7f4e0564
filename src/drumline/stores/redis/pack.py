"""What goes into scripts: msgpack, in which ids and payloads are opaque bytes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any

import msgspec

from drumline.model.act import Act
from drumline.model.instant import millis, to_millis
from drumline.model.job import NewJob, Source, Start
from drumline.model.options import JobOptions, encode_options
from drumline.model.query import By
from drumline.stores.rows import window_letter

__all__ = [
    "act_item",
    "audit_row",
    "job_item",
    "key_place",
    "lane_of",
    "opaque",
    "pack",
    "pack_groups",
    "pack_id",
    "start_item",
    "unpack_id",
]

pack = msgspec.msgpack.Encoder().encode
_ID_SIZE = 16
_AT_ONCE = (0, 0)


def opaque(data: bytes) -> msgspec.Raw:
    """Bytes as a text: the server's msgpack knows no other, and does not look into it."""
    return msgspec.Raw(b"\xdb" + len(data).to_bytes(4, "big") + data)


def audit_row(by: By, action: str, targets: Sequence[str], part_of: str | None = None) -> msgspec.Raw:
    """What the audit says of an action, besides when it was and what became of it."""
    return opaque(msgspec.json.encode((by, action, targets, part_of)))


def act_item(act: Act | None, targets: Sequence[str]) -> tuple[str, msgspec.Raw] | None:
    """As `tell_act` takes it."""
    return None if act is None else (act.id, audit_row(act.by, act.action, targets, act.part_of))


def pack_id(job_id: str) -> bytes:
    """The id as scripts know it: 16 bytes; of a text that is no id, something that is none either."""
    try:
        packed = bytes.fromhex(job_id.replace("-", ""))
    except ValueError:
        packed = b""
    return packed if len(packed) == _ID_SIZE else b"?" * _ID_SIZE + job_id.encode(errors="replace")


def unpack_id(packed: bytes) -> str:
    text = packed.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def start_item(start: Start) -> tuple[int, int]:
    """The mode and the number of a start."""
    if start is None:
        return _AT_ONCE
    return (1, millis(start)) if isinstance(start, timedelta) else (2, to_millis(start))


def lane_of(queue: str, task: str) -> str:
    return f"{queue} {task}"


def key_place(task: str, key: str) -> str:
    return f"{task}\n{key}"


def job_item(job: NewJob) -> tuple[Any, ...]:
    """A new job, as `add_job` takes it."""
    options = job.options
    frame = _frame(options, job.task)
    extra = _extra(job)
    head = _head(job) if extra else frame.head
    part = pack((job.args, frame.options, msgspec.json.encode(job.meta) if job.meta else None))
    body = b"".join(
        (
            frame.numbers,
            b"\x01" if extra else b"\x00",
            len(head).to_bytes(3, "big"),
            len(part).to_bytes(4, "big"),
            head,
            part,
            _origin(job),
        )
    )
    return (_id_item(job.id), frame.lane, *start_item(job.start), -options.priority, opaque(body), extra)


def pack_groups(groups: Sequence[bytes]) -> bytes:
    """The argument of an enqueue: groups that are packed already."""
    return b"\xdd" + len(groups).to_bytes(4, "big") + b"".join(groups)


class _Frame(msgspec.Struct, frozen=True):
    """What plain jobs of one task with the same options have in common."""

    lane: str
    # Rank and lease.
    numbers: bytes
    head: bytes
    options: bytes


# Nearly all jobs of a task share their options.
@lru_cache(maxsize=1024)
def _frame(options: JobOptions, task: str) -> _Frame:
    numbers = (-options.priority).to_bytes(2, "big", signed=True) + millis(options.lease).to_bytes(6, "big")
    head = pack((options.queue, task, False, False, False, False, *_keeps(options), ()))
    return _Frame(lane_of(options.queue, task), numbers, head, encode_options(options))


def _keeps(options: JobOptions) -> tuple[int, int, int]:
    kept = options.retention
    return millis(kept.done), millis(kept.dead), millis(kept.cancelled)


def _head(job: NewJob) -> bytes:
    key = job.key
    named: Sequence[Any] = (False, False, False)
    if key is not None:
        named = (key.name, window_letter(key.window), False if key.span is None else millis(key.span))
    return pack((job.options.queue, job.task, *named, job.schedule or False, *_keeps(job.options), job.tags))


def _extra(job: NewJob) -> tuple[Any, ...] | bool:
    """What a plain job has nothing of; it is then written together with others."""
    key = job.key
    if key is None and job.schedule is None and not job.tags:
        return False
    named: tuple[Any, ...] = (False, False, False, False)
    if key is not None:
        span = False if key.span is None else millis(key.span)
        named = (key_place(job.task, key.name), window_letter(key.window), span, key.on_conflict.value)
    return (*named, job.schedule or False, job.tags)


def _origin(job: NewJob) -> bytes:
    """What a replacement leaves as it is."""
    if job.source is Source.MANUAL and job.origin is None and job.tick is None:
        return b""
    return pack((job.source.value, job.origin, None if job.tick is None else to_millis(job.tick)))


def _id_item(job_id: str) -> msgspec.Raw:
    return opaque(pack_id(job_id))
