"""Where the server is: one address, or several that know it.

redis://[user:password@]host:6379/0        rediss://… with TLS        unix:///run/redis.sock
redis+sentinel://host:26379,host:26379/service/0        rediss+sentinel://…
redis+cluster://host:6379,host:6379        rediss+cluster://…
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast
from urllib.parse import unquote, urlsplit

from redis.backoff import NoBackoff
from redis.connection import Connection, UnixDomainSocketConnection, parse_url
from redis.retry import Retry

from drumline.errors import BadSettings
from drumline.model.mask import mask_url

__all__ = ["Address", "Node", "Wire", "parse_address", "socket_of"]

Node = tuple[str, int]
_read_url: Callable[[str], dict[str, Any]] = parse_url


class Wire(Protocol):
    """What is used of a connection of the driver's."""

    def connect(self) -> None: ...

    def disconnect(self) -> None: ...

    def pack_commands(self, commands: Sequence[tuple[Any, ...]], /) -> Any: ...

    def send_packed_command(self, packed: Any, /) -> None: ...

    def send_command(self, *parts: Any) -> None: ...

    def read_response(self, *, timeout: float = ..., disconnect_on_error: bool = ...) -> Any: ...


def socket_of(wire: Wire) -> socket.socket:
    """What an open connection of the driver's speaks through."""
    # It has no public name, but the same one in every version that may be installed.
    found: socket.socket = wire._sock  # type: ignore[attr-defined]  # noqa: SLF001
    return found


_EXPECTED = (
    "expected redis://host:6379/0, rediss://… (TLS), unix:///path, redis+sentinel://host:26379,host:26379/service/0"
    " or redis+cluster://host:6379,host:6379"
)
_PORTS = {"sentinel": 26379, "cluster": 6379}
_DEFAULTS: Mapping[str, Any] = {
    # An answer that takes longer is taken for lost, and asked for again.
    "socket_timeout": 5.0,
    "socket_connect_timeout": 3.0,
    "client_name": "drumline",
}


class Address(NamedTuple):
    """How to connect."""

    # The URL without its secrets.
    shown: str
    # How the server is found: it is at the address (""), or asked for ("sentinel", "cluster").
    kind: str
    # Of the server, or of those that know it; none for a socket in the file system.
    nodes: tuple[Node, ...]
    # How the sentinels call the server.
    service: str
    connection_class: Callable[..., Any]
    # All a connection needs but host and port.
    given: Mapping[str, Any]

    def connect(self, node: Node | None, **changed: Any) -> Wire:
        """A connection that is not yet open. It never repeats a command by itself."""
        place = {} if node is None else {"host": node[0], "port": node[1]}
        # An object of its own for each, for the driver keeps state in it.
        retry = Retry(NoBackoff(), 0)
        return cast(Wire, self.connection_class(**{**self.given, **place, **changed, "protocol": 2, "retry": retry}))


def parse_address(url: str) -> Address:
    """The address that the URL names; a URL that is not understood is refused with BadSettings."""
    shown = mask_url(url)
    try:
        address = _parse(url, shown)
        # To see that every option is known: this touches no network.
        address.connect(address.nodes[0] if address.nodes else None)
    except (ValueError, TypeError) as error:
        raise BadSettings(f"store URL {shown!r}: {_EXPECTED} ({error})") from error
    return address


def _parse(url: str, shown: str) -> Address:
    parts = urlsplit(url)
    scheme, _, kind = parts.scheme.partition("+")
    if scheme not in ("redis", "rediss", "unix") or kind not in ("", "sentinel", "cluster"):
        raise ValueError("an unknown scheme")
    user, _, hosts = parts.netloc.rpartition("@")
    service, path = "", parts.path
    if kind == "sentinel":
        service, _, path = parts.path.strip("/").partition("/")
        if not service:
            raise ValueError("the name of the service is missing")
        path = f"/{path}"
    database = path.strip("/")
    if scheme != "unix" and database and not database.isdecimal():
        # The driver would take the first one instead.
        raise ValueError("the database is not a number")
    # The driver reads all but the hosts, of which it knows only one.
    one = parts._replace(scheme=scheme, netloc=f"{user}@host" if user else "host", path=path)
    given: dict[str, Any] = {**_DEFAULTS, **_read_url(url if scheme == "unix" else one.geturl())}
    given.pop("host", None)
    connection_class = given.pop("connection_class", Connection)
    if scheme == "unix":
        return Address(shown, "", (), "", UnixDomainSocketConnection, given)
    given.setdefault("socket_keepalive", True)
    port = _PORTS.get(kind, 6379)
    nodes = tuple(_parse_node(host, port) for host in (hosts or "localhost").split(","))
    if not kind and len(nodes) > 1:
        raise ValueError("several hosts, and neither +sentinel nor +cluster")
    if kind == "cluster" and given.get("db"):
        raise ValueError("a cluster has no databases")
    return Address(shown, kind, nodes, unquote(service), connection_class, given)


def _parse_node(text: str, port: int) -> Node:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError("a host is missing")
    return unquote(parts.hostname), parts.port or port
