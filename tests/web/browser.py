"""A client that calls an ASGI app directly: no server, no sockets, every byte in sight."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

Headers = Mapping[str, str]


@dataclass
class Answer:
    """What came back."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self) -> None:
        self.begun.set()
        self.ended.set()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


def basic(name: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def make_scope(method: str, url: str, headers: Headers) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(parts.path),
        "raw_path": parts.path.encode(),
        "root_path": "",
        "query_string": parts.query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in {"host": "shop", **headers}.items()],
        "client": ("127.0.0.1", 1),
        "server": ("shop", 80),
        "state": {},
    }


class Browser:
    """Asks one app, with the same headers each time."""

    def __init__(self, app: Any, **headers: str) -> None:
        self.app = app
        self.headers = headers

    def known_as(self, headers: Headers) -> "Browser":
        return Browser(self.app, **{**self.headers, **headers})

    async def get(self, url: str, **headers: str) -> Answer:
        return await self.ask("GET", url, headers=headers)

    async def post(self, url: str, value: Any = None, **headers: str) -> Answer:
        body = b"" if value is None else json.dumps(value).encode()
        return await self.ask("POST", url, body, {"content-type": "application/json", **headers})

    async def ask(self, method: str, url: str, body: bytes = b"", headers: Headers | None = None) -> Answer:
        """The whole answer."""
        async with self.asking(method, url, body, headers) as answer:
            await answer.ended.wait()
            return answer

    def open(self, url: str, **headers: str) -> AbstractAsyncContextManager[Answer]:
        """An answer that may go on; leaving closes the connection."""
        return self.asking("GET", url, headers=headers)

    @asynccontextmanager
    async def asking(
        self, method: str, url: str, body: bytes = b"", headers: Headers | None = None
    ) -> AsyncIterator[Answer]:
        given = {name.replace("_", "-"): value for name, value in {**self.headers, **(headers or {})}.items()}
        answer = Answer()
        gone = asyncio.Event()
        requests = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if requests:
                return requests.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        running = asyncio.ensure_future(
            self.app(make_scope(method, url, given), receive, lambda message: _note(answer, message))
        )
        running.add_done_callback(lambda _: answer.end())
        try:
            yield answer
        finally:
            gone.set()
            await asyncio.wait_for(running, 30)


async def _note(answer: Answer, message: Mapping[str, Any]) -> None:
    if message["type"] == "http.response.start":
        answer.status = message["status"]
        answer.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        answer.begun.set()
    else:
        answer.body += message.get("body", b"")


@asynccontextmanager
async def living(app: Any) -> AsyncIterator[None]:
    """The app's lifespan: started, and in the end shut down."""
    inbox: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    outbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
    running = asyncio.ensure_future(app(scope, inbox.get, outbox.put))
    try:
        for step in ("startup", "shutdown"):
            await inbox.put({"type": f"lifespan.{step}"})
            said = await asyncio.wait_for(outbox.get(), 30)
            assert said["type"] == f"lifespan.{step}.complete", said
            if step == "startup":
                yield
        await asyncio.wait_for(running, 30)
    finally:
        # A test that has failed does not wait for a shutdown that nobody asked for.
        running.cancel()
