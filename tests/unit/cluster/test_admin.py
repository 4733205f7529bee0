"""An admin client that outlives the servers that it was given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from kafka.errors import KafkaTimeoutError, NodeNotReadyError

from kafka_assignors._cluster import admin as module
from kafka_assignors._cluster.admin import Admin, ClusterError, SilentBrokerError
from kafka_assignors._cluster.reaching import Found

if TYPE_CHECKING:
    from collections.abc import Sequence


class Clients:
    """Makes clients of a cluster whose brokers are advertised as these."""

    def __init__(self, *advertised: tuple[str, int]) -> None:
        self.advertised = [SimpleNamespace(host=host, port=port) for host, port in advertised]
        self.asked: list[list[str]] = []
        self.up = True

    def __call__(self, *, bootstrap_servers: Sequence[str], **_: object) -> Any:
        self.asked.append([*bootstrap_servers])
        if not self.up:
            raise KafkaTimeoutError
        known = SimpleNamespace(brokers=lambda: self.advertised)
        return SimpleNamespace(_manager=SimpleNamespace(cluster=known, _backoff={}), close=lambda: None)


def opened(monkeypatch: pytest.MonkeyPatch, clients: Clients) -> Admin:
    monkeypatch.setattr(module, "look", lambda hosts, _: dict.fromkeys(hosts, Found()))
    monkeypatch.setattr(module, "KafkaAdminClient", clients)
    return Admin(["kafka-1:9092"])


def test_brokers_that_the_cluster_has_named_are_servers_of_the_next_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clients = Clients(("kafka-1", 9092), ("kafka-2", 9092), ("fe80::3", 9092))
    admin = opened(monkeypatch, clients)
    admin.reconnect()
    assert clients.asked == [["kafka-1:9092"], ["kafka-1:9092", "kafka-2:9092", "[fe80::3]:9092"]]
    assert admin.settings["bootstrap_servers"] == clients.asked[-1]


def test_the_client_stays_if_no_broker_lets_another_one_in(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = Clients(("kafka-2", 9092))
    admin = opened(monkeypatch, clients)
    before = admin.once(lambda client: client)
    clients.up = False
    with pytest.raises(
        ClusterError, match=r"^no broker answers at kafka-1:9092, kafka-2:9092: KafkaTimeoutError"
    ):
        admin.reconnect()
    assert admin.once(lambda client: client) is before


def test_a_broker_that_does_not_answer_is_left_out_and_said_to_be_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    addresses = {1: ("kafka-1", 9092), 2: ("kafka-2", 9092), 3: ("kafka-3", 9092)}
    found = {one: Found(advertised=addresses) for one in addresses.values()}
    found["kafka-2", 9092] = Found("it hangs")
    clients = Clients(*addresses.values())
    admin = opened(monkeypatch, clients)
    monkeypatch.setattr(module, "look", lambda *_: found)
    admin.reconnect()
    admin.reconnect()
    assert clients.asked[1:] == [["kafka-1:9092", "kafka-3:9092"]] * 2
    assert admin.once(lambda client: {*client._manager._backoff}) == {2}
    assert [record.getMessage() for record in caplog.records] == [
        "left out: broker 2 as kafka-2:9092: it hangs"
    ]
    asked = []

    def refused(client: object) -> None:
        asked.append(client)
        raise NodeNotReadyError(2)

    with pytest.raises(SilentBrokerError, match=r"^it hangs$"):
        admin.ask(refused, node=2)
    assert len(asked) == 1
