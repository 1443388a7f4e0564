"""A real HTTP server that keeps what it is sent, and answers as a test wants."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Delivery(NamedTuple):
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """What has come, and what is answered."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        # What to answer, one after the other; then 204.
        self.answers: list[int] = []
        self.location = ""
        self.port = 0
        # While this is not set, no answer is given.
        self.gate = threading.Event()
        self.gate.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?token=of-the-path"

    def take(self, delivery: Delivery) -> int:
        self.deliveries.append(delivery)
        status = self.answers.pop(0) if self.answers else 204
        self.gate.wait(20)
        return status


@contextmanager
def receiving(
    drip: Callable[[BaseHTTPRequestHandler], None] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[Receiver]:
    """A receiver at a port of this host; `drip` answers in its stead."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.take(Delivery(self.path, dict(self.headers.items()), body))
            if drip is not None:
                drip(self)
                return
            self.send_response(status)
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    receiver.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.gate.set()
        server.shutdown()
        server.server_close()
