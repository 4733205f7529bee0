"""What is relied on of kafka-python's admin client is in one file, and the installed release has it."""

import ast
import math
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kafka
import pytest
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.errors import KafkaError, NodeNotReadyError, UnknownBrokerIdError
from kafka.net.connection import KafkaConnection
from kafka.protocol.metadata import MetadataRequest

import kafka_assignors
from kafka_assignors._cluster import requests
from kafka_assignors._cluster.requests import (
    answered_within,
    find_coordinators,
    known_brokers,
    leave_out,
    send,
    ssl_context,
)
from tests.support.sources import private_names
from tests.support.unconnected import Unconnected

RELIED_ON = {
    "_backoff",
    "_build_ssl_context",
    "_conns",
    "_find_coordinator_ids",
    "_manager",
    "_net",
    "_timeout_secs",
}
"""The private names."""

CONSUMERS = {"aio", "_assignors", "testing"}
"""Rooms whose private names of client libraries are those of consumers."""


@pytest.fixture
def client() -> Iterator[Any]:
    with KafkaAdminClient(kafka_client=Unconnected, bootstrap_servers="127.0.0.1:9") as client:
        yield client


def test_a_request_to_a_broker_that_is_not_known_is_refused(client: Any) -> None:
    with pytest.raises(UnknownBrokerIdError, match="7"):
        send(client, MetadataRequest(), 7)


def test_a_request_is_sent_to_the_broker_that_is_named_and_its_response_is_returned(client: Any) -> None:
    asked = []

    async def answer(request: Any, node_id: int, limit_ms: float | None) -> str:
        asked.append((request, node_id, limit_ms))
        return "response"

    client._manager.send = answer
    assert send(client, "request", 2) == "response"
    assert send(client, "request", 2, 0.5) == "response"
    assert asked == [("request", 2, None), ("request", 2, 500)]


def test_coordinators_and_brokers_that_a_client_has_heard_of_are_found_without_a_request(client: Any) -> None:
    assert known_brokers(client) == []
    found = SimpleNamespace(error_code=0, node_id=3, host="kafka-3", port=9092)
    cluster = client._manager.cluster
    assert cluster.add_coordinator(found, "group", "g", synthesize_node_id=False) == 3
    assert find_coordinators(client, ["g"]) == {"g": 3}


def test_what_a_client_encrypts_by_follows_from_its_settings() -> None:
    assert ssl_context({}).check_hostname
    assert not ssl_context({"ssl_check_hostname": False}).check_hostname


def names_of_others(path: Path) -> set[str]:
    """The attributes that a module reads of other objects than its own classes'."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    attributes = (node for node in nodes if isinstance(node, ast.Attribute))
    return {node.attr for node in attributes if ast.unparse(node.value) not in {"self", "cls"}}


@pytest.mark.parametrize("kind", [KafkaAdminClient, KafkaConsumer])
def test_a_client_does_not_ask_brokers_that_are_left_out(kind: Any) -> None:
    settings = {"bootstrap_servers": "127.0.0.1:9", "api_version": (4, 0)}
    with closing(kind(kafka_client=Unconnected, **settings)) as client:
        client._manager.cluster._brokers = {
            node: SimpleNamespace(node_id=node, host="127.0.0.1", port=9, rack=None) for node in (7, 8)
        }
        leave_out(client, [7])
        assert {client._manager.least_loaded_node() for _ in range(20)} == {8}
        with pytest.raises(NodeNotReadyError, match="7"):
            client._manager.get_connection(7)


def limits_of(client: Any) -> list[float]:
    """How long it waits: for answers and for connections, in ms, and for an answer on a connection, in s."""
    config = client._manager.config
    connection = client._manager._conns[7]
    waits = connection._timeout_at(now=0.0)
    return [config["request_timeout_ms"], config["socket_connection_setup_timeout_ms"], waits]


def test_answers_and_connections_are_waited_for_no_longer_than_is_said(client: Any) -> None:
    manager = client._manager
    manager._conns[7] = KafkaConnection(manager._net, node_id=7, **manager.config)
    usual = limits_of(client)
    assert usual == [30_000, 10_000, 30]
    with suppress(KafkaError), answered_within(client, 1.5):
        assert limits_of(client) == [1500, 1500, 1.5]
        raise KafkaError
    assert limits_of(client) == usual
    with answered_within(client, 20):
        assert limits_of(client) == [20_000, 10_000, 20]
    with answered_within(client, math.inf):
        assert limits_of(client) == usual
    del manager._conns[7]


def test_private_names_of_kafka_pythons_admin_client_are_used_in_one_file_only() -> None:
    home = Path(kafka.__file__).parent
    theirs = (private_names(home / "admin") | private_names(home / "net")) - {"_replace"}  # of named tuples
    root = Path(kafka_assignors.__file__).parent
    used = {
        path: names
        for path in root.rglob("*.py")
        if path.relative_to(root).parts[0] not in CONSUMERS and (names := names_of_others(path) & theirs)
    }
    assert used == {Path(requests.__file__): RELIED_ON}
