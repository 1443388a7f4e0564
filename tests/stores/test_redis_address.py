"""Which URLs name a server, and which do not."""

import pytest

from drumline.errors import BadSettings
from drumline.stores.open import open_store
from drumline.stores.redis.address import parse_address


@pytest.mark.parametrize(
    ("url", "kind", "nodes", "database"),
    [
        ("redis://", "", (("localhost", 6379),), None),
        ("redis://host:7000/3", "", (("host", 7000),), 3),
        ("rediss://user:p%40ss@host", "", (("host", 6379),), None),
        ("redis+sentinel://a:1,b/shop/2", "sentinel", (("a", 1), ("b", 26379)), 2),
        ("rediss+cluster://a,b:7001", "cluster", (("a", 6379), ("b", 7001)), None),
        ("redis+cluster://[::1]:7001", "cluster", (("::1", 7001),), None),
    ],
)
def test_a_url_names_a_server_or_those_that_know_it(url, kind, nodes, database):
    address = parse_address(url)
    assert (address.kind, address.nodes, address.given.get("db")) == (kind, nodes, database)


def test_user_password_and_options_of_the_url_reach_the_driver():
    address = parse_address("redis://user:p%40ss@host/0?socket_timeout=1.5")
    assert (address.given["username"], address.given["password"], address.given["socket_timeout"]) == (
        "user",
        "p@ss",
        1.5,
    )
    assert "p@ss" not in address.shown
    assert "p%40ss" not in address.shown


def test_a_sentinel_url_names_the_service():
    assert parse_address("redis+sentinel://host/shop").service == "shop"


def test_a_socket_in_the_file_system_is_an_address():
    address = parse_address("unix:///run/redis.sock")
    assert (address.nodes, address.given["path"]) == ((), "/run/redis.sock")


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://host",
        "redis+other://host/0",
        "redis://a,b/0",
        "redis+cluster://host/2",
        "redis://:secret@host/0?colour=blue",
        "redis://host:port/0",
        "redis://host/zero",
        "redis+sentinel://host/shop/zero",
    ],
)
def test_a_url_that_is_not_understood_is_refused_without_its_secrets(url):
    with pytest.raises(BadSettings) as caught:
        open_store(url)
    assert "expected redis://host:6379/0" in str(caught.value)
    assert "secret" not in str(caught.value)
