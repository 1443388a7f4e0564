"""How results and other texts of a job are written: as JSON, within limits, and never in a way that fails the job."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from drumline.errors import BadOption
from drumline.model.fidelity import find_non_finite
from drumline.model.foreign import UNENCODABLE, decode_foreign, encoder

__all__ = [
    "DEPTH_LIMIT",
    "ERROR_LIMIT",
    "RESULT_LIMIT",
    "cut",
    "decode_result",
    "encode_result",
    "measure_depth",
    "plain_object",
]

RESULT_LIMIT = 1024 * 1024
ERROR_LIMIT = 16 * 1024
# Of arrays and objects in each other. Readers of JSON give up at very different depths, and so does Python's stack.
DEPTH_LIMIT = 100

_REPR_LIMIT = 64 * 1024
# A NUL as JSON writes it, but not a backslash of the text, which is written as two, before `u0000`.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')


def encode_result(value: Any) -> tuple[bytes, bool]:
    """A task's result as it is stored, and whether that is only a text about it: its repr, or a part of it."""
    if value is None:
        return b"null", False
    try:
        data = encoder.encode(value)
        # msgspec writes null for what JSON has no number for.
        if b"null" in data and find_non_finite(value):
            return _encode_text(_repr(value)), True
    except Exception:  # noqa: BLE001 - a model's own code may fail in any way, and the job is done all the same
        return _encode_text(_repr(value)), True
    if len(data) > RESULT_LIMIT:
        notice = f"cut: the result takes {len(data):,} bytes, the limit is {RESULT_LIMIT:,}: "
        return _encode_text(notice + data[:_REPR_LIMIT].decode("utf-8", "ignore")), True
    return data, False


def decode_result(data: bytes, annotation: Any = Any) -> Any:
    """A stored result as the annotation says, or as plain JSON values where it does not fit that."""
    try:
        return _result_decoder(annotation).decode(data)
    except (msgspec.ValidationError, TypeError):
        return msgspec.json.decode(data)


def plain_object(value: object, option: str, limit: int) -> dict[str, Any]:
    """A mapping as JSON keeps it; BadOption if it is none, takes more than `limit` bytes, or has a NUL in a text."""
    expected = f"a JSON object of at most {limit:,} bytes"
    if not isinstance(value, Mapping):
        raise BadOption(option, expected, value)
    try:
        data = encoder.encode(value if type(value) is dict else dict(value))
        is_fit = len(data) <= limit and measure_depth(data) <= DEPTH_LIMIT and not find_non_finite(value)
    except (*UNENCODABLE, RecursionError) as error:
        raise BadOption(option, expected, value) from error
    if not is_fit:
        raise BadOption(option, expected, cut(_repr(value), 200))
    if _NUL.search(data):
        # Postgres cannot look into JSON that has one.
        raise BadOption(option, "a JSON object without NUL", cut(_repr(value), 200))
    return msgspec.json.decode(data, type=dict[str, Any])


def cut(text: str, limit: int = ERROR_LIMIT) -> str:
    """The text as every store can hold it: no NUL, no half characters, and in at most `limit` bytes.

    What is too much is left out of the middle: a traceback tells most at both ends.
    """
    data = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace")
    if len(data) <= limit:
        return data.decode()
    mark = f"\n… cut: {len(data):,} bytes in all …\n"
    room = limit - len(mark.encode())
    head, tail = data[: room // 2], data[len(data) - (room - room // 2) :]
    return head.decode("utf-8", "ignore") + mark + tail.decode("utf-8", "ignore")


def measure_depth(data: bytes) -> int:
    """How deep the arrays and objects of a JSON text stand in each other."""
    deepest = depth = 0
    for token in _BRACKETS.findall(data):
        if token in (b"[", b"{"):
            depth += 1
            deepest = max(deepest, depth)
        elif token in (b"]", b"}"):
            depth -= 1
    return deepest


@lru_cache(maxsize=1024)
def _result_decoder(annotation: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(annotation, dec_hook=decode_foreign)


def _encode_text(text: str) -> bytes:
    return msgspec.json.encode(cut(text, _REPR_LIMIT))


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - a repr is the user's code
        return f"<{type(value).__name__} whose repr failed: {type(error).__name__}>"
