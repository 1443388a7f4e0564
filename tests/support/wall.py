"""A wire between a store and its server that can fall silent: it takes every byte and every connection, no more."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

_CHUNK = 1 << 16


class Wall:
    """Passes everything on, until it falls silent; what was said to it then is never answered."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}", query="connect_timeout=2").geturl()
        self._silent = threading.Event()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> None:
        self._silent.set()

    def open(self) -> None:
        """New connections are passed on again; the old ones stay silent."""
        self._silent = threading.Event()

    def close(self) -> None:
        for one in (self._listener, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(*ends, self._silent), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, silent: threading.Event) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                if not silent.is_set():
                    target.sendall(data)
        if not silent.is_set():
            with suppress(OSError):
                target.shutdown(socket.SHUT_RDWR)


@contextmanager
def new_wall(url: str) -> Iterator[Wall]:
    wall = Wall(url)
    try:
        yield wall
    finally:
        wall.close()
