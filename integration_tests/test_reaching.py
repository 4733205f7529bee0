"""What a command says of a broker that it cannot reach, or that does not let it in; and how soon."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kafka_assignors._cluster.admin import Admin, ClusterError
from kafka_assignors.testing._brokers.access import Access, Security
from kafka_assignors.testing._brokers.listeners import PROXIED

if TYPE_CHECKING:
    from kafka_assignors.testing import Cluster

SOON = 5.0
"""Seconds within which who is on call is to know."""

TLS = "use security.protocol=SSL or SASL_SSL (--command-config), or the port of plain text"
PLAIN = "use security.protocol=PLAINTEXT or SASL_PLAINTEXT, or the port that speaks TLS"


def refusal(cluster: Cluster, security: Security) -> str:
    """Why a client with such settings cannot use the cluster; empty if it can."""
    settings = Access(cluster.access.servers, security).kafka_python()
    servers = settings.pop("bootstrap_servers")
    began = time.monotonic()
    told = ""
    try:
        Admin(servers, settings).close()
    except ClusterError as error:
        told = str(error)
    assert time.monotonic() - began < SOON or not told
    return told.removeprefix(f"no broker answers at {servers[0]}: ")


def wants_user(protocol: str) -> str:
    return (
        f"it wants a user and a password: use security.protocol={protocol} with sasl.mechanism (it takes"
        " SCRAM-SHA-512), sasl.username and sasl.password (--command-config)"
    )


def refused(user: str) -> str:
    return (
        f"it refuses the user '{user}' or the password: Authentication failed during authentication due to"
        " invalid credentials with SASL mechanism SCRAM-SHA-512 (sasl.username and sasl.password, or"
        " sasl.jaas.config)"
    )


def test_a_port_of_plain_text_is_named_to_who_speaks_tls_or_sasl(
    kafka_cluster: Cluster, sasl_tls_broker: Cluster
) -> None:
    secure = sasl_tls_broker.security
    assert refusal(kafka_cluster, Security()) == ""
    assert refusal(kafka_cluster, replace(secure, protocol="SSL")) == f"it does not speak TLS: {PLAIN}"
    assert refusal(kafka_cluster, secure) == f"it does not speak TLS: {PLAIN}"
    assert refusal(kafka_cluster, replace(secure, protocol="SASL_PLAINTEXT")) == (
        "it wants no user: use security.protocol=PLAINTEXT, or the port that speaks SASL"
    )


@pytest.mark.parametrize("named", [False, True], ids=["not named", "named beside another"])
def test_addresses_that_brokers_advertise_in_vain_are_named(proxied_broker: Cluster, named: bool) -> None:
    (broker,) = proxied_broker.brokers
    direct, (advertised,) = broker.addresses[PROXIED], proxied_broker.network.access.servers
    Admin([direct]).close()
    servers = [direct, advertised] if named else [direct]
    with proxied_broker.network.half_open():
        began = time.monotonic()
        with pytest.raises(ClusterError) as caught:
            Admin(servers)
        assert time.monotonic() - began < SOON
    assert str(caught.value) == (
        f"{direct} can be reached, and none of the addresses that its brokers advertise: broker 1 as"
        f" {advertised}: it does not answer within 4 s (a wrong port, or a broker that hangs);"
        " let advertised.listeners name addresses that clients can reach"
    )


def test_a_port_of_sasl_is_named_and_what_it_wants(sasl_broker: Cluster) -> None:
    security = sasl_broker.security
    assert refusal(sasl_broker, security) == ""
    assert refusal(sasl_broker, Security()) == wants_user("SASL_PLAINTEXT")
    assert refusal(sasl_broker, replace(security, password="guessed")) == refused(  # noqa: S106 - and wrong
        security.username
    )
    assert refusal(sasl_broker, replace(security, username="nobody")) == refused("nobody")
    assert refusal(sasl_broker, replace(security, mechanism="SCRAM-SHA-256")) == (
        "it does not take sasl.mechanism SCRAM-SHA-256: it takes SCRAM-SHA-512"
    )


def test_a_wrong_password_is_said_once_with_the_servers_that_refuse_it(sasl_broker: Cluster) -> None:
    wrong = replace(sasl_broker.security, password="guessed")  # noqa: S106 - and wrong
    settings = Access(sasl_broker.access.servers, wrong).kafka_python()
    (server,) = settings.pop("bootstrap_servers")
    servers = [f"{host}:{server.rpartition(':')[2]}" for host in ("127.0.0.1", "localhost")]
    with pytest.raises(ClusterError) as caught:
        Admin(servers, settings)
    assert str(caught.value) == (
        f"no broker answers at {', '.join(servers)}: {refused(sasl_broker.security.username)}"
    )


def test_a_port_of_tls_is_named_to_who_speaks_plain_text(tls_broker: Cluster) -> None:
    security = tls_broker.security
    assert refusal(tls_broker, security) == ""
    spoken = f"it speaks TLS, and was spoken to in plain text: {TLS}"
    assert refusal(tls_broker, Security()) == spoken
    sasl = Security(protocol="SASL_PLAINTEXT", username="a", password="b")  # noqa: S106 - of nobody
    assert refusal(tls_broker, sasl) == spoken
    assert refusal(tls_broker, replace(security, ca_file="")).startswith(
        "its certificate is not trusted: unable to get local issuer certificate; name the authority"
    )


def test_of_tls_with_sasl_a_wrong_password_is_named(sasl_tls_broker: Cluster) -> None:
    security = sasl_tls_broker.security
    assert refusal(sasl_tls_broker, security) == ""
    wrong = replace(security, password="guessed")  # noqa: S106 - and wrong
    assert refusal(sasl_tls_broker, wrong) == refused(security.username)
    assert refusal(sasl_tls_broker, replace(security, protocol="SSL")) == wants_user("SASL_SSL")
