import socket

import pytest

from drumline.errors import BadOption
from drumline.webhook.address import Forbidden, Target, is_public, read_target, resolve


def test_a_url_is_taken_apart():
    assert read_target("https://hooks.example.com/a/b?c=d") == Target(True, "hooks.example.com", 443, "/a/b?c=d")
    assert read_target("http://10.0.0.1:8080") == Target(False, "10.0.0.1", 8080, "/")
    assert read_target("https://[2001:db8::1]/x").host == "2001:db8::1"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/",
        "https://",
        "host",
        "file:///etc/passwd",
        "https://ann:pw@host/",
        "https://host:99999/",
        "https://host/a b",
        "https://host/\r\nX: y",
    ],
)
def test_a_url_that_cannot_be_sent_to_is_refused_and_not_repeated(url):
    with pytest.raises(BadOption) as refusal:
        read_target(url)
    assert refusal.value.got == "***"


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:93.184.216.34"])
def test_an_address_of_the_public_network_is_public(address):
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "2001:db8::1"),
        # Private addresses in the disguise of others.
        *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1"),
    ],
)
def test_any_other_address_is_not(address):
    assert not is_public(address)


def answering(*addresses):
    """A resolver that gives these addresses."""
    return lambda host, port, **_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses]


def test_of_several_addresses_a_public_one_is_taken(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", answering("10.0.0.1", "93.184.216.34"))
    assert resolve(read_target("https://host/"), allow_private=False) == "93.184.216.34"
    assert resolve(read_target("https://host/"), allow_private=True) == "10.0.0.1"


def test_a_name_with_private_addresses_only_is_forbidden(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", answering("10.0.0.1", "127.0.0.1"))
    with pytest.raises(Forbidden, match="host is at a private address"):
        resolve(read_target("https://host/"), allow_private=False)


@pytest.mark.parametrize("url", ["http://2130706433/", "http://0x7f.1/", "http://localhost/", "http://[::1]/"])
def test_this_host_in_other_spellings_is_forbidden(url):
    with pytest.raises(Forbidden):
        resolve(read_target(url), allow_private=False)
