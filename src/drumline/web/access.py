"""Who may do what: people and programs that ask over HTTP, and the ways in which they are known.

Closed unless `auth=` is given: Basic, Bearer, a function of the host program, or a list of them, tried in turn.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import inspect
import secrets
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

import msgspec
from starlette.requests import HTTPConnection, Request

from drumline.errors import BadOption
from drumline.web.answers import Refusal
from drumline.web.passwords import check_hash, is_password

__all__ = ["Auth", "Basic", "Bearer", "PrivateAddress", "User", "UserRole", "allow_anyone", "read_auth"]

# Guesses at a password that are worked on at once: each takes 16 MiB and a core.
_GUESSES_AT_ONCE = 2
# Guesses that may wait for their turn, so that a flood of them cannot keep everybody else out for long.
_MOST_GUESSES = 50
_MOST_KNOWN = 256
_SHORTEST_TOKEN = 16
_LONGEST_NAME = 100


class UserRole(StrEnum):
    """What somebody may do: look, act on the fleet, or all."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def covers(self, other: UserRole) -> bool:
        """Whether whoever has this role may do what the other is enough for."""
        order = list(UserRole)
        return order.index(self) >= order.index(other)


class User(msgspec.Struct, frozen=True):
    """Somebody who is known: by which name (for the audit), and with which role."""

    name: str
    role: UserRole = UserRole.VIEWER

    def __post_init__(self) -> None:
        if not 0 < len(self.name) <= _LONGEST_NAME:
            raise BadOption("user name", f"a text of 1 to {_LONGEST_NAME} characters", self.name, "auth")
        msgspec.structs.force_setattr(self, "role", _read_role(self.role))


class Auth(Protocol):
    """One way to know who asks."""

    @property
    def challenge(self) -> str | None:
        """What a client is told to send, as in WWW-Authenticate."""

    async def know(self, request: Request) -> User | None:
        """Who asks; None if this way does not tell."""


class Basic:
    """Names with passwords, which the browser asks for: `Basic({"ann": ("scrypt$…", "admin")})`.

    The passwords are given as hashes; `drumline web --hash-password` makes one.
    """

    challenge: str | None = 'Basic realm="drumline", charset="UTF-8"'

    def __init__(self, users: Mapping[str, tuple[str, UserRole | str]]) -> None:
        self._users = {
            name: (check_hash(kept, f"the password of {name}"), User(name, _read_role(role)))
            for name, (kept, role) in users.items()
        }
        # An unknown name takes as long as a known one.
        self._nobody = "scrypt$16384$8$1$AAAAAAAAAAAAAAAAAAAAAA==$" + "A" * 43 + "="
        self._guesses = asyncio.Semaphore(_GUESSES_AT_ONCE)
        self._waiting = 0
        # What was right before, by a digest that means nothing outside this process.
        self._seal = secrets.token_bytes(32)
        self._known: dict[bytes, User] = {}

    async def know(self, request: Request) -> User | None:
        given = _credentials(request, "basic")
        if given is None:
            return None
        name, password = _split_basic(given)
        mark = hmac.digest(self._seal, f"{len(name)}:{name}:{password}".encode(), "sha256")
        if mark in self._known:
            return self._known[mark]
        kept, user = self._users.get(name, (self._nobody, None))
        if not await self._guess(password, kept) or user is None:
            return None
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[mark] = user
        return user

    async def _guess(self, password: str, kept: str) -> bool:
        if self._waiting >= _MOST_GUESSES:
            raise Refusal(429, "too many passwords to check: slow down", headers={"Retry-After": "1"})
        self._waiting += 1
        try:
            async with self._guesses:
                return await asyncio.to_thread(is_password, password, kept)
        finally:
            self._waiting -= 1


class Bearer:
    """Tokens of programs: `Bearer({"the token": ("ci", "operator")})`; a key may be `sha256:<hex>` of the token."""

    challenge: str | None = 'Bearer realm="drumline"'

    def __init__(self, tokens: Mapping[str, tuple[str, UserRole | str]]) -> None:
        self._users = [(_token_digest(token), User(name, _read_role(role))) for token, (name, role) in tokens.items()]

    async def know(self, request: Request) -> User | None:
        given = _credentials(request, "bearer")
        if given is None:
            return None
        digest = hashlib.sha256(given.encode()).digest()
        # All of them, so that the time taken tells nothing.
        found = [user for expected, user in self._users if hmac.compare_digest(expected, digest)]
        return found[0] if found else None


class PrivateAddress:
    """An address with a token that is good as long as this process runs; the browser keeps it as a cookie."""

    challenge: str | None = None
    parameter = "token"

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        # Cookies know no ports: each process of a host has one of its own.
        self.cookie = f"drumline_private_{hashlib.sha256(self.token.encode()).hexdigest()[:12]}"

    async def know(self, request: Request) -> User | None:
        given = (
            request.query_params.get(self.parameter),
            request.cookies.get(self.cookie),
            _credentials(request, "bearer"),
        )
        is_right = any(self.is_token(one) for one in given if one is not None)
        return User("private address", UserRole.ADMIN) if is_right else None

    def is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.token.encode())


class _Function:
    """The host program's own way: a function of the request, plain or async."""

    challenge: str | None = None

    def __init__(self, function: Callable[[Request], Any]) -> None:
        self._function = function

    async def know(self, request: Request) -> User | None:
        answer = self._function(request)
        return _read_user(await answer if inspect.isawaitable(answer) else answer)


def allow_anyone(_request: HTTPConnection) -> User:
    """For `auth=`: everybody may do everything. Only where the network itself keeps others out."""
    return User("anyone", UserRole.ADMIN)


def read_auth(given: Any) -> tuple[Auth, ...]:
    """The ways that `auth=` names; none: closed."""
    if given is None:
        return ()
    if isinstance(given, Sequence) and not isinstance(given, str):
        return tuple(way for one in given for way in read_auth(one))
    if isinstance(given, Basic | Bearer | PrivateAddress):
        return (given,)
    if callable(given):
        return (_Function(given),)
    expected = "Basic(…), Bearer(…), a function of the request that gives a role or None, or a list of them"
    raise BadOption("auth", expected, type(given).__name__, "install")


async def know(ways: Iterable[Auth], request: Request) -> User | None:
    """Who asks, by the first way that tells."""
    for way in ways:
        user = await way.know(request)
        if user is not None:
            return user
    return None


def _read_user(answer: Any) -> User | None:
    match answer:
        case None | False:
            return None
        case User():
            return answer
        case str():
            return User(answer, _read_role(answer))
        case (str(name), str(role)):
            return User(name, _read_role(role))
        case _:
            expected = 'None, a role ("viewer", "operator", "admin"), (name, role) or a User'
            raise BadOption("auth", f"a function that gives {expected}", type(answer).__name__)


def _read_role(given: object) -> UserRole:
    if given not in list(UserRole):
        raise BadOption("role", f"one of {', '.join(UserRole)}", given, "auth")
    return UserRole(str(given))


def _token_digest(token: str) -> bytes:
    kind, _, digits = token.partition(":")
    if kind == "sha256":
        try:
            digest = bytes.fromhex(digits)
        except ValueError:
            digest = b""
        if len(digest) != hashlib.sha256().digest_size:
            raise BadOption("token", "sha256: and 64 hexadecimal digits", f"{len(digits)} characters", "auth")
        return digest
    if len(token) < _SHORTEST_TOKEN:
        raise BadOption("token", f"{_SHORTEST_TOKEN} characters or longer", f"{len(token)} characters", "auth")
    return hashlib.sha256(token.encode()).digest()


def _credentials(request: Request, scheme: str) -> str | None:
    given, _, value = request.headers.get("authorization", "").partition(" ")
    return value.strip() if given.lower() == scheme and value else None


def _split_basic(value: str) -> tuple[str, str]:
    try:
        name, _, password = b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return "", ""
    return name, password


# What `auth=` may be.
Given = Auth | Callable[[Request], Any | Awaitable[Any]] | Sequence[Any] | None
