"""Ports for the tests' own servers, from below those that the system gives to outgoing connections.

A port that the system itself had chosen could be taken by any connection before the server has it, or while the server
is killed and started again.
"""

import errno
import random
import socket
from contextlib import ExitStack

# The bus of a cluster's node takes the port 10,000 higher, which has to lie below the others' too.
BUS = 10_000
_LOWEST, _HIGHEST = 10_000, 22_767


def free_port() -> int:
    (port,) = free_ports(1)
    return port


def free_ports(number: int) -> list[int]:
    """So many ports that nobody uses, nor their buses; all are held until the last is found, so that they differ."""
    chance = random.SystemRandom()
    with ExitStack() as stack:
        ports: list[int] = []
        while len(ports) < number:
            port = chance.randint(_LOWEST, _HIGHEST)
            if _hold(stack, port) and _hold(stack, port + BUS):
                ports.append(port)
        return ports


def _hold(stack: ExitStack, port: int) -> bool:
    probe = stack.enter_context(socket.socket())
    try:
        probe.bind(("127.0.0.1", port))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True
