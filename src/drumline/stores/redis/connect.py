"""Connections to the server: how it is found, what is refused, and what the driver's exceptions mean."""

from __future__ import annotations

import logging
from typing import Any

from redis import exceptions
from redis.crc import key_slot

from drumline.errors import SchemaMismatch, StoreError, StoreUnreachable, StoreUnusable
from drumline.model.schema import Pending
from drumline.policy.durability import check_redis
from drumline.stores.redis.address import Address, Node, Wire
from drumline.stores.redis.confirm import Confirm
from drumline.stores.redis.scripts import SCRIPTS

__all__ = ["AWAY", "SCHEMA", "Server", "read_answers", "read_slots", "translate"]

# The version of keys and scripts that this code knows.
SCHEMA = 1
_OLDEST_VERSION = (6, 2)
# What it is asked for, about its durability.
_SETTINGS = ("appendonly", "appendfsync", "save", "maxmemory", "maxmemory-policy")

logger = logging.getLogger("drumline.redis")

# What passes by itself: the server is starting, another one has taken over, or nobody was there.
AWAY = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.BusyLoadingError,
    exceptions.ReadOnlyError,
    exceptions.AskError,
    exceptions.TryAgainError,
    exceptions.ClusterDownError,
    OSError,
)
_REFUSED = (exceptions.AuthenticationError, exceptions.AuthorizationError, exceptions.NoPermissionError)
_PASSING = ("BUSY ", "MASTERDOWN", "NOREPLICAS", "UNBLOCKED")


class Server:
    """The server of one store: where it is now, and whether it holds what this code can use."""

    def __init__(self, address: Address, namespace: str, confirm: Confirm = "server") -> None:
        self.address = address
        self.confirm = confirm
        # The braces keep all keys of the namespace in one slot of a cluster.
        self.base = f"{{{namespace}}}".encode()
        # Nodes of a cluster that were heard of; any of them knows where our slot is.
        self._heard_of: tuple[Node, ...] = ()
        # When the store began that was last seen there.
        self._birth: bytes | None = None
        self._has_told_durability = False

    @property
    def shown(self) -> str:
        return self.address.shown

    def open(self) -> Wire:
        """A connection to the server that has our keys."""
        failure: Exception = exceptions.ConnectionError("no address was given")
        # Nodes that were heard of are likelier to be there than those of the URL, which may be old.
        for node in dict.fromkeys([*self._heard_of, *(self.address.nodes or (None,))]):
            try:
                return self._open_by(node)
            except AWAY as error:
                if isinstance(error, _REFUSED):
                    raise
                failure = error
        raise failure

    def prepare(self, wire: Wire) -> None:
        """Give the server the scripts, and see that it is one that this code can use."""
        loads = [("SCRIPT", "LOAD", script.text) for script in SCRIPTS.values()]
        *_, info = ask(wire, [*loads, ("INFO", "server")])
        facts = _read_facts(info)
        _check_version(facts.get("redis_version", "0"), self.shown)
        # Valkey has its own name for it.
        if "cluster" in (facts.get("redis_mode"), facts.get("server_mode")) and self.address.kind != "cluster":
            raise StoreUnusable(f"{self.shown}: this is a node of a cluster: name it by redis+cluster://…")
        if not self._has_told_durability:
            self._has_told_durability = True
            self._tell_durability(wire)

    def check_schema(self, wire: Wire, *, will_migrate: bool) -> None:
        """Refuse keys of another version. What this store has held, and is gone, is begun anew."""
        schema, birth = self._read_schema(wire)
        if self._birth is not None and birth != self._birth:
            logger.error(
                "%s: all jobs and schedules are gone: the server was restarted without persistence, or was emptied;"
                " going on with an empty store",
                self.shown,
            )
            ((schema, birth),) = ask(wire, [("EVALSHA", SCRIPTS["migrate"].digest, 1, self.base, SCHEMA)])
        if schema is None and not will_migrate:
            raise SchemaMismatch(f"{self.shown} holds no Drumline keys: run `drumline migrate`")
        self.see_schema(schema, birth)

    def find_pending(self) -> list[Pending]:
        """What the keys lack to be of this version. Nothing is changed."""
        try:
            wire = self.open()
        except AWAY as error:
            raise StoreUnreachable(f"{self.shown}: the server is out of reach: try again ({error})") from error
        try:
            version, _ = self._read_schema(wire)
        finally:
            wire.disconnect()
        if version is not None and version > SCHEMA:
            raise self._refusal(version)
        return [] if version == SCHEMA else [Pending(SCHEMA, "keys")]

    def inspect(self) -> dict[str, str]:
        """What the server says of its durability. Nothing is changed."""
        try:
            wire = self.open()
        except Exception as error:
            raise translate(error, self.shown) from error
        try:
            return self._read_settings(wire)
        finally:
            wire.disconnect()

    def see_schema(self, version: int | None, birth: bytes | None) -> None:
        """Refuse a version that is newer than this code; remember the store."""
        if version is not None and version > SCHEMA:
            raise self._refusal(version)
        self._birth = birth

    def _refusal(self, version: int) -> SchemaMismatch:
        return SchemaMismatch(
            f"{self.shown} has schema version {version}, but this Drumline knows only {SCHEMA}: upgrade Drumline"
        )

    def _read_schema(self, wire: Wire) -> tuple[int | None, bytes | None]:
        """The version of the keys that stand, and when they began."""
        ((version, birth),) = ask(wire, [("MGET", self.base + b":schema", self.base + b":birth")])
        return None if version is None else int(version), birth

    def _tell_durability(self, wire: Wire) -> None:
        """Say aloud, once, what of the promises this server weakens."""
        facts = self._read_settings(wire)
        if not facts:
            logger.info("%s: the server does not say how durable it is: see its own documentation", self.shown)
            return
        for finding in check_redis(facts):
            logger.warning("%s: %s: %s", self.shown, finding.found, finding.do)

    def _read_settings(self, wire: Wire) -> dict[str, str]:
        """What bears on durability; nothing of a server that does not tell."""
        try:
            *answers, info = ask(wire, [*(("CONFIG", "GET", name) for name in _SETTINGS), ("INFO", "replication")])
        except exceptions.ResponseError:
            return {}
        told = {answer[0].decode(): answer[1].decode() for answer in answers if answer}
        # A managed server may not tell the one, but the other.
        replicas = _read_facts(info).get("connected_slaves", "0")
        return told and {**told, "replicas": replicas, "store.confirm": self.confirm}

    def _open_by(self, node: Node | None) -> Wire:
        """A connection to the server, which is at this node, or known to it."""
        if node is None or not self.address.kind:
            return self._connect(node)
        if self.address.kind == "sentinel":
            return self._connect(self._ask_sentinel(node))
        wire = self._connect(node)
        try:
            (slots,) = ask(wire, [("CLUSTER", "SLOTS")])
            owner = self._find_owner(slots, node)
        except BaseException:
            wire.disconnect()
            raise
        if owner == node:
            return wire
        wire.disconnect()
        return self._connect(owner)

    def _connect(self, node: Node | None) -> Wire:
        wire = self.address.connect(node)
        wire.connect()
        return wire

    def _ask_sentinel(self, node: Node) -> Node:
        """Where the sentinel says that the server is."""
        wire = self.address.connect(node, db=0, username=None, password=None)
        try:
            wire.connect()
            (found,) = ask(wire, [("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.address.service)])
        finally:
            wire.disconnect()
        if found is None:
            raise StoreUnusable(f"{self.shown}: the sentinels know no service {self.address.service!r}: mend the URL")
        return found[0].decode(), int(found[1])

    def _find_owner(self, slots: Any, asked: Node) -> Node:
        """Which node of the cluster has our slot; all of them are remembered."""
        owner, self._heard_of = read_slots(slots, key_slot(self.base), asked)
        if owner is None:
            raise exceptions.ClusterDownError("the slot of the namespace is not served")
        return owner


def read_slots(slots: Any, wanted: int, asked: Node) -> tuple[Node | None, tuple[Node, ...]]:
    """Which node has the slot, and all nodes, from the answer of the one that was asked."""
    nodes: list[Node] = []
    owner: Node | None = None
    for first, last, *holders in slots:
        # A node that does not know its own name, or does not tell it, is the one that was asked.
        found = [((holder[0] or b"").decode() or asked[0], int(holder[1])) for holder in holders]
        nodes += found
        if first <= wanted <= last:
            owner = found[0]
    return owner, tuple(nodes)


def ask(wire: Wire, commands: list[tuple[Any, ...]]) -> list[Any]:
    """The answers to these commands, sent together."""
    wire.send_packed_command(wire.pack_commands(commands))
    return read_answers(wire, len(commands))


def read_answers(wire: Wire, number: int) -> list[Any]:
    """The next answers; the first error among them is raised when all are read."""
    answers: list[Any] = []
    failure: exceptions.ResponseError | None = None
    for _ in range(number):
        try:
            answers.append(wire.read_response())
        except exceptions.ResponseError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return answers


def translate(error: Exception, shown: str) -> StoreError:
    """What the driver's exception means for a store."""
    if isinstance(error, StoreError):
        return error
    text = str(error)
    if isinstance(error, _REFUSED) or text.startswith(("NOAUTH", "WRONGPASS")):
        return StoreUnusable(f"{shown}: the server refuses this user: mend user and password, or its rights ({text})")
    if isinstance(error, AWAY) or text.startswith(_PASSING):
        return StoreUnreachable(f"{shown}: the server is out of reach: try again ({text})")
    if isinstance(error, exceptions.OutOfMemoryError):
        return StoreUnusable(
            f"{shown}: the server's memory is full: make room; nothing that was stored is lost ({text})"
        )
    if text.startswith("MISCONF"):
        return StoreUnusable(f"{shown}: the server cannot write to its disk: look at the disk ({text})")
    return StoreError(f"{shown}: {text}")


def _read_facts(info: bytes) -> dict[str, str]:
    """The answer to INFO, line by line."""
    lines = (line.partition(":") for line in info.decode().splitlines())
    return {name: value for name, _, value in lines}


def _check_version(version: str, shown: str) -> None:
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if numbers < _OLDEST_VERSION:
        raise StoreUnusable(f"{shown}: Redis {version} is too old: Drumline needs 6.2 or newer, or Valkey")
