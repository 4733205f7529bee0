"""Ports for brokers: free when chosen, likely to stay free while a broker is down, chosen again if taken."""

import contextlib
import random
import socket
from collections.abc import Callable, Sequence
from typing import TypeVar

from kafka_assignors._common.escaping import get_logger
from kafka_assignors.testing._brokers.broker import Broker
from kafka_assignors.testing._brokers.errors import PortTakenError

log = get_logger(__name__)

LOCALHOST = "127.0.0.1"  # "localhost" may mean ::1 to a client

# Below the ports that Linux and macOS give to outgoing connections. A port of those could be taken while its
# broker is down, even by a client that looks for the broker: one that happens to have the port itself
# connects to itself, and the broker cannot come back.
_RANGE = range(20000, 32768)
_STARTS = 3  # how often to choose ports, should another process be quicker to bind one

Brokers = TypeVar("Brokers", bound=Sequence[Broker])


def free_ports(count: int) -> list[int]:
    """Different ports that nobody on this machine listens on now."""
    # Not the seeded generator: processes with one seed would choose the same ports.
    choose = random.SystemRandom()
    with contextlib.ExitStack() as stack:
        ports: list[int] = []
        while len(ports) < count:  # all are held until all are chosen
            port = choose.choice(_RANGE)
            probe = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind((LOCALHOST, port))
                ports.append(port)
        return ports


def enter_retrying(
    stack: contextlib.ExitStack, context: Callable[[], contextlib.AbstractContextManager[Brokers]]
) -> Brokers:
    """Enter a context of brokers, and again with other ports if another process was quicker to bind one."""
    for _ in range(_STARTS - 1):
        try:
            return stack.enter_context(context())
        except PortTakenError as error:
            log.info("starting again with other ports: %s", error)
    return stack.enter_context(context())
