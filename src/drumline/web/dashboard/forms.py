"""What a form sends, as it is: fields by name, some of them more than once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import parse_qsl

import msgspec

from drumline.web.answers import Refusal
from drumline.web.site import Ask

__all__ = ["Form", "read_form", "read_query_form"]

MOST_FIELDS = 1_100
LONGEST_REASON = 500
# An address below the prefix: never one of another host, however a browser reads slashes.
_BACK = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*")


class Form(msgspec.Struct, frozen=True):
    """The fields in their order."""

    fields: list[tuple[str, str]]

    def one(self, name: str) -> str:
        """The value, or an empty text."""
        return next((value for key, value in self.fields if key == name), "").strip()

    def all(self, name: str) -> list[str]:
        return list(dict.fromkeys(value for key, value in self.fields if key == name))

    def needed(self, name: str) -> str:
        value = next((value for key, value in self.fields if key == name), "")
        if not value:
            raise Refusal(422, f"{name}: missing")
        return value

    @property
    def reason(self) -> str:
        return self.one("reason")[:LONGEST_REASON]

    @property
    def back(self) -> str:
        """Where to go afterwards, below the prefix."""
        given = self.one("back")
        return given if _BACK.fullmatch(given) else "/"

    def without(self, *names: str) -> list[tuple[str, str]]:
        return [(name, value) for name, value in self.fields if name not in names]


def read_form(ask: Ask) -> Form:
    """The query and the body of a POST."""
    kind = ask.request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise Refusal(415, "the body must be a form: application/x-www-form-urlencoded")
    try:
        fields = parse_qsl(ask.body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Refusal(400, "the form cannot be read") from None
    return _check([*ask.request.query_params.multi_items(), *fields])


def read_query_form(ask: Ask) -> Form:
    """The query of a GET that leads to an action."""
    return _check(ask.request.query_params.multi_items())


def _check(fields: Iterable[tuple[str, str]]) -> Form:
    found = list(fields)
    if any("\0" in part for field in found for part in field):
        raise Refusal(422, "a field must not contain NUL")
    return Form(found)
