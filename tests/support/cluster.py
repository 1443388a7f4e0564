"""A cluster of the tests' own on loopback: three masters, each with a replica; and a master watched by a sentinel."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from redis import Redis
from redis.crc import key_slot

from tests.support.ports import free_ports
from tests.support.valkey import Valkey, until

_MASTERS = 3
_SLOTS = 16_384
_NODE = (
    *("--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-config-file", "nodes.conf"),
    *("--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0"),
)
_SENTINEL = "tests"


class Cluster:
    """Six servers that act as one."""

    def __init__(self, nodes: list[Valkey]) -> None:
        self.nodes = nodes
        self.url = "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes)

    def master_of(self, namespace: str) -> Valkey:
        """The server that has the keys of the namespace now."""
        wanted = key_slot(f"{{{namespace}}}".encode())
        with Redis(port=self.nodes[0].port) as client:
            slots: Any = client.execute_command("CLUSTER SLOTS")
        ports = {master[1] for first, last, master, *_ in slots if first <= wanted <= last}
        (node,) = [node for node in self.nodes if node.port in ports]
        return node


@contextmanager
def new_cluster() -> Iterator[Cluster]:
    with ExitStack() as stack:
        nodes = []
        for port in free_ports(2 * _MASTERS):
            nodes.append(Valkey(*_NODE, port=port))
            stack.callback(nodes[-1].close)
        clients: list[Any] = [stack.enter_context(Redis(port=node.port)) for node in nodes]
        _join(clients, nodes)
        yield Cluster(nodes)


def _join(clients: list[Any], nodes: list[Valkey]) -> None:
    share = -(-_SLOTS // _MASTERS)
    for place, client in enumerate(clients[:_MASTERS]):
        client.execute_command("CLUSTER ADDSLOTSRANGE", place * share, min((place + 1) * share, _SLOTS) - 1)
    for place, client in enumerate(clients):
        client.execute_command("CLUSTER SET-CONFIG-EPOCH", place + 1)
        clients[0].execute_command("CLUSTER MEET", "127.0.0.1", nodes[place].port)
    names = [client.execute_command("CLUSTER MYID").decode() for client in clients]
    until(lambda: all(len(client.cluster("nodes")) == len(nodes) for client in clients), "the nodes know each other")
    for place, client in enumerate(clients[_MASTERS:]):
        client.execute_command("CLUSTER REPLICATE", names[place])
    until(lambda: all(client.cluster("info")["cluster_state"] == "ok" for client in clients), "the cluster is well")
    until(lambda: all(_follows(client) for client in clients[_MASTERS:]), "the replicas follow")


class Watched:
    """A master, its replica, and a sentinel that puts the one in the place of the other."""

    def __init__(self, master: Valkey, replica: Valkey, sentinel: Valkey) -> None:
        self.master = master
        self.replica = replica
        self.url = f"redis+sentinel://127.0.0.1:{sentinel.port}/{_SENTINEL}/0"


@contextmanager
def new_watched() -> Iterator[Watched]:
    plain = ("--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0")
    with ExitStack() as stack:
        ports = free_ports(3)
        master = Valkey(*plain, port=ports[0])
        stack.callback(master.close)
        replica = Valkey(*plain, "--replicaof", f"127.0.0.1 {master.port}", port=ports[1])
        stack.callback(replica.close)
        with Redis(port=replica.port) as client:
            until(lambda: _follows(client), "the replica follows")
        rules = (
            f"monitor {_SENTINEL} 127.0.0.1 {master.port} 1",
            f"down-after-milliseconds {_SENTINEL} 1000",
            f"failover-timeout {_SENTINEL} 2000",
        )
        config = "\n".join(f"sentinel {rule}" for rule in rules)
        sentinel = Valkey("--sentinel", port=ports[2], config=config)
        stack.callback(sentinel.close)
        with Redis(port=sentinel.port) as client:
            until(lambda: _knows_replica(client), "the sentinel knows the replica")
        yield Watched(master, replica, sentinel)


def _follows(client: Any) -> bool:
    return bool(client.info("replication")["master_link_status"] == "up")


def _knows_replica(client: Any) -> bool:
    return bool(client.execute_command("SENTINEL REPLICAS", _SENTINEL))
