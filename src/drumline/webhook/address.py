"""Where a delivery may go: to addresses of the public network only, unless others are allowed.

A name is resolved once for each try, and the connection is made to the very address that was looked at: a name that
answers differently the next moment leads nowhere else.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from drumline.errors import BadOption

__all__ = ["Forbidden", "Target", "is_public", "read_target", "resolve"]

_EXPECTED = "an address such as https://hooks.example.com/drumline, without a name or password in it"
# IPv4 addresses, as a translator of the network hides them.
_TRANSLATED = IPv6Network("64:ff9b::/96")
_LOW_BITS = 0xFFFF_FFFF


class Forbidden(Exception):
    """The name leads to an address to which nothing is sent."""


class Target(NamedTuple):
    """Where to send to."""

    is_tls: bool
    host: str
    port: int
    path: str


def read_target(url: str) -> Target:
    """The parts of a URL; BadOption, which does not repeat it, if they are not such as can be sent to."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadOption("url", _EXPECTED, "***") from None
    is_odd = not url.isascii() or not url.isprintable() or " " in url
    if is_odd or parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise BadOption("url", _EXPECTED, "***")
    is_tls = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(is_tls, parts.hostname, port or (443 if is_tls else 80), path)


def resolve(target: Target, *, allow_private: bool) -> str:
    """The address to connect to; Forbidden if the name has none that is allowed, OSError if it has none at all."""
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    addresses = [str(place[0]) for *_, place in found]
    for address in addresses:
        if allow_private or is_public(address):
            return address
    raise Forbidden(f"{target.host} is at a private address: allow that by webhook.allow_private, if it is meant")


def is_public(address: str) -> bool:
    """Whether the address belongs to the public network, and to one host of it."""
    # A zone, as in fe80::1%eth0, is of this host's own network.
    return "%" not in address and all(_is_global(one) for one in _within(ip_address(address)))


def _within(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """The address, and the ones that it stands for."""
    if isinstance(address, IPv4Address):
        return [address]
    hidden = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _TRANSLATED:
        hidden.append(IPv4Address(int(address) & _LOW_BITS))
    others = [one for one in hidden if one is not None]
    # A mapped address is no more than the one that it stands for.
    return [address.ipv4_mapped] if address.ipv4_mapped is not None else [address, *others]


def _is_global(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and not address.is_multicast and not address.is_reserved
