"""A wire between a store and its server that loses answers on request: executed, not acknowledged."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from drumline.stores.redis.scripts import SCRIPTS

_CHUNK = 1 << 16


class Proxy:
    """Passes everything on, but for the answer to the next call of a script, with which it cuts the connection."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        self._lock = threading.Lock()
        self._doomed: bytes | None = None
        self._every: int | None = None
        self._seen = 0
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_answer_of(self, script: str) -> None:
        """The next answer of this script is lost, with its connection."""
        with self._lock:
            self._doomed = SCRIPTS[script].digest

    def lose_every(self, number: int | None) -> None:
        """So many messages are answered, and the answer of the next is lost; over and over."""
        with self._lock:
            self._every = number

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                cut = threading.Event()
                threading.Thread(target=self._ask, args=(client, server, cut), daemon=True).start()
                threading.Thread(target=self._answer, args=(server, client, cut), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(_CHUNK):
                if self._is_doomed(data):
                    cut.set()
                server.sendall(data)
        _shut(server)

    def _answer(self, server: socket.socket, client: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK):
                if cut.is_set():
                    break
                client.sendall(data)
        _shut(client)
        _shut(server)

    def _is_doomed(self, data: bytes) -> bool:
        with self._lock:
            is_doomed = self._doomed is not None and self._doomed in data
            if is_doomed:
                self._doomed = None
            if self._every is not None and b"EVALSHA" in data:
                self._seen += 1
                is_doomed |= self._seen % self._every == 0
            self.lost += is_doomed
            return is_doomed


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@contextmanager
def new_proxy(port: int) -> Iterator[Proxy]:
    proxy = Proxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
