"""The webhook: hears alerts, and sends each to an address, from a thread of its own.

Whoever emits an event never waits: an alert that finds the queue full is dropped, and said to be in the log. What does
not arrive is tried again, later and later, and after the last try let go.
"""

from __future__ import annotations

import http.client
import logging
import threading
from queue import Empty, Full, Queue
from typing import Any

import msgspec

from drumline.clock import Clock
from drumline.events import Alert, Event
from drumline.model.redact import Redactor
from drumline.model.view import instant_text
from drumline.webhook.address import Forbidden, read_target, resolve
from drumline.webhook.sending import post
from drumline.webhook.signing import SIGNATURE, sign

__all__ = ["MOST_WAITING", "Webhook"]

MOST_WAITING = 1000
# Seconds between one try and the next.
WAITS = (1.0, 4.0, 15.0, 60.0)
# How long a process that leaves goes on sending.
LAST_SECONDS = 5.0
_TRY_AGAIN = frozenset({408, 425, 429})

logger = logging.getLogger("drumline.webhook")


class Webhook:
    """Sends alerts on until it is closed: `drum.events.subscribe(webhook.hear)`."""

    def __init__(
        self,
        url: str,
        secret: str,
        *,
        clock: Clock,
        allow_private: bool = False,
        timeout: float = 10.0,
        waits: tuple[float, ...] = WAITS,
        source: str = "",
    ) -> None:
        """`source`: who tells, in the deliveries; the replica's name."""
        self._target = read_target(url)
        self._secret = secret
        self._clock = clock
        self._allow_private = allow_private
        self._timeout = timeout
        self._waits = waits
        self._source = source
        self._waiting: Queue[tuple[str, str, bytes]] = Queue(MOST_WAITING)
        self._closing = threading.Event()
        self._is_full = False
        self._is_over = False
        self._thread = threading.Thread(target=self._serve, name="drumline-webhook", daemon=True)
        self._thread.start()

    def hear(self, event: Event) -> None:
        """Take an alert to be sent; other events are none of its business."""
        if not isinstance(event, Alert):
            return
        try:
            self._waiting.put_nowait((type(event).__name__, event.id, self._write(event)))
            self._is_full = False
        except Full:
            # Once, until there is room again.
            if not self._is_full:
                logger.warning("webhook %s: %d alerts wait, more are dropped", self._target.host, MOST_WAITING)
            self._is_full = True

    def close(self, patience: float = LAST_SECONDS) -> None:
        """Send what waits, for so many seconds at most, and no more."""
        self._closing.set()
        self._thread.join(patience)
        self._is_over = True

    def _write(self, alert: Alert) -> bytes:
        facts: dict[str, Any] = msgspec.to_builtins(alert)
        told = {
            "id": facts.pop("id"),
            "event": type(alert).__name__,
            "at": instant_text(self._clock.now()),
            "source": self._source,
            "data": Redactor().value(facts),
        }
        return msgspec.json.encode(told)

    def _serve(self) -> None:
        while not self._is_over:
            try:
                kind, delivery, body = self._waiting.get(timeout=0.1)
            except Empty:
                if self._closing.is_set():
                    return
                continue
            try:
                self._deliver(kind, delivery, body)
            except Exception:
                logger.exception("webhook %s: alert %s could not be sent", self._target.host, delivery)

    def _deliver(self, kind: str, delivery: str, body: bytes) -> None:
        """Try until it has arrived, is refused for good, or there was the last try."""
        for wait in (*self._waits, None):
            problem, is_final = self._try(kind, delivery, body)
            if not problem:
                return
            if is_final or wait is None or self._closing.wait(wait):
                logger.error("webhook %s: alert %s was let go: %s", self._target.host, delivery, problem)
                return
            logger.warning("webhook %s: %s; again", self._target.host, problem)

    def _try(self, kind: str, delivery: str, body: bytes) -> tuple[str, bool]:
        """What went wrong, as a text, and whether another try is no use; an empty text if nothing did."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "drumline-webhook",
            "Drumline-Event": kind,
            "Drumline-Delivery": delivery,
            SIGNATURE: sign(self._secret, body, self._clock.now()),
        }
        try:
            address = resolve(self._target, allow_private=self._allow_private)
            status = post(self._target, address, body, headers, timeout=self._timeout)
        except Forbidden as error:
            return str(error), True
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}", False
        if 200 <= status < 300:
            return "", False
        return f"answered {status}", status < 500 and status not in _TRY_AGAIN
