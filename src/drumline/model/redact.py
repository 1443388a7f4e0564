"""What is not shown: values whose names sound like secrets, what a signature marks as secret, passwords in addresses.

A value that is hidden in one place of a job is hidden in all of them: an error often repeats what it was given.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from drumline.model.secret import NO_MARKS, Marks

__all__ = ["HIDDEN", "Redactor", "is_secret_name"]

HIDDEN = "***"
# Shorter values stand in too many innocent places to be looked for in texts.
_SHORTEST_TELLTALE = 4
_SECRET_NAME = re.compile(
    r"(?i)pass(word|wd|phrase)?$|passw|secret|token|credential|authorization|api[_-]?key|private[_-]?key|"
    r"access[_-]?key|cookie|session[_-]?id|(^|[_-])(pwd|pin|cvv|cvc|ssn|iban|auth|dsn)($|[_-])|card[_-]?num"
)
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^\s/?#@'\"]*@")
_IN_TEXT = re.compile(
    r"(?i)((?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|authorization|credentials?)['\"]?\s*[=:]\s*)"
    r"(?:(?:bearer|basic)\s+)?(?:'[^']*'|\"[^\"]*\"|[^\s,;&'\"})]+)"
)


def is_secret_name(name: str) -> bool:
    """Whether what is called so is likely to be a secret."""
    return _SECRET_NAME.search(name) is not None


class Redactor:
    """Hides the secrets of one job, wherever they stand in what is shown of it."""

    def __init__(self, args: Any = None, marked: Marks = NO_MARKS) -> None:
        """`args`: the job's arguments. `marked`: what their task's signature marks as secret."""
        self._marked = marked
        known = {value for value in self._find_secrets(args, marked.parameters) if len(value) >= _SHORTEST_TELLTALE}
        # The longest first, so that none is found inside another.
        self._known = sorted(known, key=len, reverse=True)

    def args(self, value: Any) -> Any:
        """Arguments, in which the marked parameters are hidden too."""
        if not isinstance(value, Mapping):
            return self.value(value)
        return {name: self._pair(name, part, self._marked.parameters) for name, part in value.items()}

    def value(self, value: Any) -> Any:
        """Anything that is JSON."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                marked = self._marked.fields
                return {self.text(str(name)): self._pair(str(name), part, marked) for name, part in value.items()}
            case list() | tuple():
                return [self.value(part) for part in value]
            case _:
                return value

    def text(self, text: str) -> str:
        """A sentence, a traceback, an address."""
        return _IN_TEXT.sub(rf"\1{HIDDEN}", _USERINFO.sub(rf"\1{HIDDEN}@", self.known(text)))

    def known(self, text: str) -> str:
        """The text without the secrets of the arguments, and else as it is: fit to be kept."""
        for known in self._known:
            text = text.replace(known, HIDDEN)
        return text

    def _pair(self, name: str, value: Any, marked: Collection[str]) -> Any:
        sounds_secret = is_secret_name(name) and value is not None and not isinstance(value, bool)
        return HIDDEN if name in marked or sounds_secret else self.value(value)

    def _find_secrets(self, args: Any, marked: Collection[str]) -> Iterator[str]:
        if isinstance(args, Mapping):
            for name, value in args.items():
                if name in marked or is_secret_name(str(name)):
                    yield from _leaves(value)
                else:
                    yield from self._find_secrets(value, self._marked.fields)
        elif isinstance(args, list):
            for value in args:
                yield from self._find_secrets(value, self._marked.fields)


def _leaves(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case Mapping():
            for part in value.values():
                yield from _leaves(part)
        case list():
            for part in value:
                yield from _leaves(part)
