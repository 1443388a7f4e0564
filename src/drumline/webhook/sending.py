"""One try of one delivery: a POST to the address that was looked at, within a time, whatever the other side does."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Mapping

from drumline.webhook.address import Target

__all__ = ["post"]


class _Connection(http.client.HTTPConnection):
    """A connection to one address, which speaks to it under the name of the target."""

    def __init__(self, target: Target, address: str, timeout: float) -> None:
        super().__init__(target.host, target.port, timeout=timeout)
        self._target = target
        self._address = address
        self._within = timeout

    def connect(self) -> None:
        plain = socket.create_connection((self._address, self._target.port), self._within)
        if not self._target.is_tls:
            self.sock = plain
            return
        try:
            self.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=self._target.host)
        except BaseException:
            plain.close()
            raise


def post(target: Target, address: str, body: bytes, headers: Mapping[str, str], *, timeout: float) -> int:
    """Send the body; the status of the answer, of which no more is read, and whose redirect is not followed.

    OSError or HTTPException if there is none within the time.
    """
    connection = _Connection(target, address, timeout)
    # The time of a connection counts for each read: one who sends a byte now and then would hold it for ever.
    is_over = threading.Event()
    end = threading.Timer(timeout, _break_off, [connection, is_over])
    end.daemon = True
    end.start()
    try:
        connection.request("POST", target.path, body, dict(headers))
        status = connection.getresponse().status
        if is_over.is_set():
            # What was broken off may look like a short answer.
            raise TimeoutError(f"no whole answer within {timeout:g} s")
        return status
    finally:
        end.cancel()
        connection.close()


def _break_off(connection: http.client.HTTPConnection, is_over: threading.Event) -> None:
    is_over.set()
    # As an attribute of the moment: it may not be connected yet, and its own time counts then.
    if (open_socket := connection.sock) is not None:
        try:
            open_socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            # The other side was quicker.
            return
