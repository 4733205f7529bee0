"""One broker of a cluster that was started here, and what is the same of it in whichever way."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

START_TIMEOUT = 120.0  # seconds; a quiet machine needs 5, a laden one with three nodes 20
POLL_INTERVAL = 0.05  # seconds between two looks at a condition
_LOG_LINES = 30  # the end of a log that an error shows


class ClusterUnavailableError(RuntimeError):
    """There is no Kafka to be had in the way that was asked for."""


class BrokerDiedError(RuntimeError):
    """A broker ended that nobody had stopped. The message shows the end of its log."""


class Broker(Protocol):
    """One node of a cluster that was started here: a broker and controller in one."""

    @property
    def node_id(self) -> int:
        """1, 2, ...; the node's rack is ``rack-<node_id>``."""

    @property
    def bootstrap(self) -> str:
        """Where clients reach it: ``host:port``."""

    def has_died(self) -> bool:
        """Whether its process or container was started and has ended, without having been stopped."""

    def log(self) -> str:
        """All that it has logged since it was started."""


def find_death(brokers: Sequence[Broker]) -> str | None:
    """Say of the first broker that has died which it is, and the end of its log; None if all live."""
    for broker in brokers:
        if broker.has_died():
            return f"Kafka node {broker.node_id} has died. {end_of_log(broker)}"
    return None


def end_of_log(broker: Broker) -> str:
    """The end of a broker's log, for the message of an error."""
    lines = broker.log().splitlines()[-_LOG_LINES:]
    return "\n".join(["The end of its log:", *lines])


def wait_until_complete(brokers: Sequence[Broker], timeout: float = START_TIMEOUT) -> None:
    """Wait until every broker has started and answers that all of them are there.

    Raises:
        BrokerDiedError: One ended meanwhile.
        ClusterUnavailableError: It took longer than the timeout, in seconds.
    """
    deadline = time.monotonic() + timeout
    for broker in brokers:
        while "Kafka Server started" not in broker.log() or count_brokers(broker.bootstrap) < len(brokers):
            if (death := find_death(brokers)) is not None:
                raise BrokerDiedError(death)
            if time.monotonic() > deadline:
                raise ClusterUnavailableError(
                    f"Kafka node {broker.node_id} was not ready after {timeout:.0f} s. {end_of_log(broker)}"
                )
            time.sleep(POLL_INTERVAL)


def count_brokers(bootstrap: str) -> int:
    """How many brokers the servers named (``host:port[,...]``) know of; 0 if none of them answers."""
    try:
        client: Any = KafkaAdminClient(bootstrap_servers=bootstrap, bootstrap_timeout_ms=2000)
    except KafkaError:
        return 0
    try:
        return len(client.describe_cluster()["brokers"])
    except KafkaError:
        return 0
    finally:
        client.close()
