"""Text as it is to be seen: what would steer a terminal, or the direction of a page, is shown as an escape."""

from __future__ import annotations

import re

__all__ = ["clean", "clean_lines"]

# Control characters, line and paragraph ends of Unicode, what turns the direction of writing, halves of characters.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_STEERING_BUT_LINES = re.compile(f"(?!\n){_STEERING.pattern}")
_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def clean(text: object) -> str:
    """The text in one line."""
    return _STEERING.sub(_escape, str(text))


def clean_lines(text: str) -> str:
    """The same, but lines stay lines."""
    return _STEERING_BUT_LINES.sub(_escape, text.expandtabs(4))


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return _NAMED.get(found[0]) or (f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}")
