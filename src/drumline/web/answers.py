"""What is sent back: JSON, and errors as one sentence with the right status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from drumline.errors import (
    BadArgument,
    BadOption,
    DrumlineError,
    JobNotFound,
    KeyTaken,
    StoreError,
    UnknownSchedule,
    UnknownTask,
)

__all__ = ["Refusal", "answer_error", "answer_json", "answer_refusal", "answer_text"]


class Refusal(Exception):
    """The answer is no: the status, one sentence, and what the sentence is about, path by path."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        problems: tuple[tuple[str, str], ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.problems = problems
        self.headers = headers or {}


def answer_json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def answer_text(text: str, status: int = 200) -> Response:
    return Response(text + "\n", status, media_type="text/plain")


def answer_refusal(refusal: Refusal) -> Response:
    body: dict[str, Any] = {"error": refusal.message}
    if refusal.problems:
        body["problems"] = [{"path": path, "message": message} for path, message in refusal.problems]
    response = answer_json(body, refusal.status)
    response.headers.update(refusal.headers)
    return response


def answer_error(error: DrumlineError) -> Refusal:
    """The refusal that says what this error says."""
    match error:
        case JobNotFound() | UnknownTask() | UnknownSchedule():
            return Refusal(404, str(error))
        case BadArgument():
            return Refusal(422, str(error), problems=(_place_argument(str(error)),))
        case BadOption():
            # Without what was given: it may be anything, and whoever asks knows it.
            message = f"must be {error.expected}"
            return Refusal(422, f"{error.option} {message}", problems=((error.option, message),))
        case KeyTaken():
            # Without the key, which may be made of an argument that is hidden elsewhere.
            return Refusal(
                409, f"task {error.task}: its unique key is held by job {error.job_id}; nothing was enqueued"
            )
        case StoreError():
            return Refusal(503, "the store is out of reach; try again", headers={"Retry-After": "1"})
        case _:
            return Refusal(409, str(error))


def _place_argument(sentence: str) -> tuple[str, str]:
    """Of `task add: a.b: expected int, got str`, the argument's path and what is wrong with it."""
    _, _, rest = sentence.partition(": ")
    path, colon, message = rest.partition(": ")
    return (f"args.{path}", message) if colon and " " not in path else ("args", rest)
