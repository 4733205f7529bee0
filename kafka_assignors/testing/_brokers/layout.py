"""A cluster that is to be started, whichever way: its nodes, their listeners and settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kafka_assignors.testing._brokers.access import OPEN, Protocol
from kafka_assignors.testing._brokers.credentials import Credentials

PLAIN: Final = "PLAIN"
"""The listener without security, for the kit's own work; clients' too where nothing is required of them."""

CLIENTS: Final = "CLIENTS"
"""The listener for clients of which something is required."""

PROXIED: Final = "PROXIED"
"""The listener behind the proxy, which requires the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A cluster that is to be started; each node is a broker and a controller.

    The settings come before those that a way of starting adds. The proxies are "host:port", one for each
    node.
    """

    nodes: int
    settings: Mapping[str, str | int]
    credentials: Credentials
    proxies: Sequence[str] = ()

    @property
    def clients(self) -> str:
        """The name of the clients' listener."""
        return PLAIN if self.credentials.security == OPEN else CLIENTS

    @property
    def protocols(self) -> dict[str, Protocol]:
        """The protocol of each listener that can be reached from outside of the cluster, by its name."""
        protocol = self.credentials.security.protocol
        protocols: dict[str, Protocol] = {PLAIN: "PLAINTEXT", self.clients: protocol}
        if self.proxies:
            protocols[PROXIED] = protocol
        return protocols

    def node_settings(
        self, node_id: int, key_store: str, listeners: Mapping[str, str], controllers: Sequence[str]
    ) -> dict[str, str | int]:
        """The settings of a node, but for what it advertises.

        The listeners are where it listens, by name. The controllers are those of all nodes, "host:port".
        """
        voters = [f"{node}@{controller}" for node, controller in enumerate(controllers, start=1)]
        protocols = {name: self.protocols.get(name, "PLAINTEXT") for name in listeners}
        settings: dict[str, str | int] = {
            "process.roles": "broker,controller",
            "node.id": node_id,
            "broker.rack": f"rack-{node_id}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(voters),
            "listener.security.protocol.map": joined(protocols, ":"),
            "listeners": joined(listeners, "://"),
        }
        for listener in self.protocols.keys() - {PLAIN}:
            settings |= self.credentials.broker_settings(listener, key_store)
        return settings

    def advertised(self, node_id: int, addresses: Mapping[str, str]) -> dict[str, str]:
        """What a node advertises to clients as its listeners: where they are, or where the proxy is."""
        return {**addresses, **({PROXIED: self.proxies[node_id - 1]} if self.proxies else {})}


def joined(values: Mapping[str, object], separator: str) -> str:
    """Pairs as Kafka writes them, for instance listeners: "A://host:1,B://host:2"."""
    return ",".join(f"{name}{separator}{value}" for name, value in values.items())
