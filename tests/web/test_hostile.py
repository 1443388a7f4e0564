"""What strangers, broken clients and pages of other sites may send: a clear refusal, and nothing has changed."""

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from drumline.web.guard import BODY_LIMIT
from tests.web.browser import bearer
from tests.web.served import serving
from tests.web.shop import AUTH, TOKENS, serve

API = "/admin/jobs/api"
ACTIONS = {
    f"{API}/jobs": {"task": "send_mail", "args": {"user_id": 7}},
    f"{API}/queues/mail/pause": {},
    f"{API}/schedules": {"task": "send_mail", "args": {"user_id": 7}, "every": "1h", "name": "nightly"},
}


class Client:
    """Speaks to a real server, as clumsily as is wanted."""

    def __init__(self, url: str) -> None:
        self.host = urlsplit(url).netloc

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
        known = {"Authorization": f"Bearer {TOKENS['admin']}", "Content-Type": "application/json"}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(http.client.HTTPConnection(self.host, timeout=20)) as connection:
            connection.request(method, path, body, {**known, **given})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def look(self) -> list[Any]:
        """All that an action could have changed."""
        return [json.loads(self.ask("GET", f"{API}/{path}")[1]) for path in ("counts", "queues", "schedules", "audit")]


@pytest.fixture
def client(drum) -> Iterator[Client]:
    with serving(serve(drum, AUTH, role=None)) as url:
        yield Client(url)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'"' + b"x" * 10_000_000 + b'"', 413),
        (b"[" * BODY_LIMIT, 422),
        (b'{"task":"send_mail","args":{"user_id":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_002, 422),
        (b'{"task": 7}', 422),
        (b'{"task": "send_mail", "args": {"user_id": "seven"}}', 422),
        (b'{"task": "send_mail", "args": {"user_id": 1e999}}', 422),
        (b'{"task": "os.system", "args": {"command": "id"}}', 404),
        (b'{"task": "send_mail", "args": {"user_id": 7}', 400),
        (b"\xff\xfe\x00", 400),
    ],
    ids=["10 MB", "deep", "deep arguments", "wrong type", "wrong argument", "number", "name", "cut", "no text"],
)
def test_a_hostile_body_is_refused_and_changes_nothing(client, body, status):
    before = client.look()
    answer = client.ask("POST", f"{API}/jobs", body)
    assert (answer[0], next(iter(json.loads(answer[1]))), len(answer[1]) < 1_000) == (status, "error", True), answer
    assert client.look() == before


def test_a_body_without_an_announced_length_is_cut_off_too(client):
    parts = iter([b'"', *[b"x" * 65_536] * 160, b'"'])
    with closing(http.client.HTTPConnection(client.host, timeout=20)) as connection:
        headers = {**bearer(TOKENS["admin"]), "content-type": "application/json"}
        connection.request("POST", f"{API}/jobs", parts, headers, encode_chunked=True)
        assert connection.getresponse().status == 413


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        # What a form of another site can send without asking first.
        {"Origin": "https://evil.example", "Content_Type": "text/plain"},
    ],
)
def test_a_page_of_another_origin_cannot_act_though_the_browser_is_known(client, headers):
    before = client.look()
    assert {client.ask("POST", path, json.dumps(body).encode(), **headers)[0] for path, body in ACTIONS.items()} == {
        403
    }
    assert client.look() == before
    assert client.ask("POST", f"{API}/queues/mail/pause", b"{}", Sec_Fetch_Site="same-origin")[0] == 200
    assert client.look() != before


@pytest.mark.parametrize(
    "path",
    [
        f"{API}/jobs/../../../actuator/jobs",
        f"{API}/jobs/..%2f..%2f..%2fetc%2fpasswd",
        f"{API}/jobs/%2e%2e/%2e%2e",
        f"{API}//jobs",
        f"//admin/jobs{API}",
        f"{API}/jobs/%00",
        f"{API}/jobs/%ff%fe",
        f"{API}/jobs;x=1",
        f"{API}/jobs%0d%0aSet-Cookie:%20a=b",
        f"{API}/JOBS",
        "/admin/jobs/static/../../../etc/passwd",
        "/actuator/%2e%2e/admin/jobs/api/jobs",
    ],
)
def test_a_path_leads_nowhere_by_tricks(client, path):
    assert client.ask("GET", path)[0] == 404
    assert client.ask("GET", path, Authorization="Bearer nobody")[0] in (401, 404)


def test_a_request_that_is_none_is_refused_and_the_next_one_served(client):
    with socket.create_connection(client.host.split(":"), timeout=20) as connection:
        connection.sendall(b"POST /admin/jobs/api/jobs HTTP/1.1\r\nHost: shop\r\nContent-Length: -5\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert client.ask("GET", f"{API}/jobs")[0] == 200
