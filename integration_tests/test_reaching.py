"""What a command says of a broker that it cannot reach, or that does not let it in; and how soon."""

import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

import pytest

from integration_tests.support.commands import COMMAND
from integration_tests.support.records import commit
from kafka_assignors import groups, placement
from kafka_assignors._cluster.admin import Admin, ClusterError
from kafka_assignors._cluster.handle import Cluster as ClusterHandle
from kafka_assignors.testing import Cluster, create_topic
from kafka_assignors.testing._brokers.access import Access, Security
from kafka_assignors.testing._brokers.layout import PROXIED
from kafka_assignors.testing._brokers.metadata import coordinator_by
from tests.support.bad_servers import BAD, bad_server
from tests.support.scale import longer

SOON = 5.0
"""Seconds within which who is on call is to know."""

TAKEN_OVER = 25.0
"""Seconds within which it is known who has taken over from a broker that hangs, or that nobody has."""

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
        f"{direct} can be reached, but none of the addresses that its brokers advertise: broker 1 as"
        f" {advertised}: it does not answer within 3 s (a wrong port, or a broker that hangs);"
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


@pytest.fixture
def group_id(kafka_cluster: Cluster, topic: str, group_id: str) -> str:
    """A group that has committed."""
    commit(kafka_cluster, group_id, topic, 0)
    return group_id


@pytest.fixture
def left_out(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What was said of servers that do not answer."""
    return lambda: [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]


COMMANDS: dict[str, Callable[[ClusterHandle, str, str], object]] = {
    "group list": lambda cluster, _, group_id: groups.list_groups(cluster, [group_id]),
    "group explain": lambda cluster, _, group_id: groups.explain(cluster, group_id),
    "group export": lambda cluster, _, group_id: groups.export_metrics(cluster, [group_id]),
    "group find": lambda cluster, _, group_id: groups.find_coordinator(cluster, group_id),
    "placement describe": lambda cluster, topic, _: placement.describe(cluster, [topic]),
    "placement infer": lambda cluster, topic, _: placement.infer(cluster, [topic]),
    "placement create": lambda cluster, topic, _: placement.create(
        cluster, f"{topic}-new", 1, 1, dry_run=True
    ),
    "placement expand": lambda cluster, topic, _: placement.expand(cluster, topic, 7),
    "placement reassign": lambda cluster, topic, _: placement.plan_reassignment(cluster, [topic]),
    "placement verify": lambda cluster, topic, _: placement.verify(cluster, [topic]),
    "placement cancel": lambda cluster, topic, _: placement.cancel(cluster, [topic]),
}


def test_one_broker_that_answers_is_enough_for_each_command_beside_servers_that_do_not(
    kafka_cluster: Cluster, topic: str, group_id: str, left_out: Callable[[], list[str]]
) -> None:
    with ExitStack() as stack:
        bad = [stack.enter_context(bad_server(kind)) for kind in BAD]
        servers = [*bad[:2], *kafka_cluster.bootstrap_servers, *bad[2:]]
        cluster = stack.enter_context(ClusterHandle(servers))
        for command in COMMANDS.values():
            began = time.monotonic()
            command(cluster, topic, group_id)
            assert time.monotonic() - began < longer(SOON)
        with Admin(servers) as admin:
            admin.reconnect()
            assert admin.settings["bootstrap_servers"] == kafka_cluster.bootstrap_servers
    (once, again) = left_out()
    assert once == again
    assert once.startswith("left out: ")
    assert [one for one in bad if one not in once] == []


def test_a_command_warns_of_servers_that_do_not_answer(kafka_cluster: Cluster) -> None:
    with bad_server("mute") as mute:
        servers = ",".join([mute, *kafka_cluster.bootstrap_servers])
        command = [COMMAND, "group", "list", "--bootstrap-server", servers]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert done.stderr == (
        f"left out: {mute}: it does not answer within 3 s (a wrong port, or a broker that hangs)\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [1, 2])
def test_commands_work_with_the_brokers_that_are_not_frozen(
    disturbed_brokers: Cluster, group_id: str, frozen: int
) -> None:
    cluster = disturbed_brokers
    topic = create_topic(cluster, 6, replication=3)
    commit(cluster, group_id, topic, 0)
    healthy = coordinator_by(cluster.bootstrap_servers[0], group_id)
    assert healthy is not None
    others = [broker for broker in cluster.brokers if broker.node_id != healthy][:frozen]
    servers = cluster.bootstrap_servers if frozen == 1 else [cluster.broker(healthy).bootstrap]
    handle = ClusterHandle(servers)
    with ExitStack() as stack:
        for broker in others:
            stack.enter_context(broker.freeze())
        began = time.monotonic()
        described = placement.describe(handle, [topic])
        explained = groups.explain(handle, group_id)
        if frozen == 1:
            assert placement.verify(handle, [topic]).under_way == ()
        assert time.monotonic() - began < longer(40)
    cluster.wait_complete()
    assert described.health is not None
    assert {one.node_id for one in others} == {
        broker for broker, state in described.health.brokers.items() if state != "up"
    }
    assert explained.account.group_id == group_id


@pytest.mark.slow
@pytest.mark.parametrize("command", [name for name in COMMANDS if name.startswith("group ")])
def test_a_coordinator_that_freezes_after_it_was_reached_is_named_and_its_successor_asked(
    disturbed_brokers: Cluster, group_id: str, left_out: Callable[[], list[str]], command: str
) -> None:
    cluster = disturbed_brokers
    topic = create_topic(cluster, 3, replication=3)
    commit(cluster, group_id, topic, 0)
    frozen = cluster.coordinator_of(group_id)
    with ClusterHandle(cluster.bootstrap_servers) as handle:
        before = COMMANDS[command](handle, topic, group_id)
        with cluster.broker(frozen).freeze():
            began = time.monotonic()
            after = COMMANDS[command](handle, topic, group_id)
            took = time.monotonic() - began
    cluster.wait_complete()
    assert took < longer(TAKEN_OVER)
    assert type(after) is type(before)
    if command == "group find":  # any broker knows who leads the partition
        return
    assert any(f"broker {frozen} as " in warning for warning in left_out())


@pytest.mark.slow
def test_a_coordinator_that_nobody_succeeds_is_named_in_the_error(
    disturbed_brokers: Cluster, group_id: str
) -> None:
    cluster = disturbed_brokers
    topic = create_topic(cluster, 3, replication=3)
    commit(cluster, group_id, topic, 0)
    frozen = cluster.coordinator_of(group_id)
    other = next(broker.node_id for broker in cluster.brokers if broker.node_id != frozen)
    with ClusterHandle(cluster.bootstrap_servers) as handle, ExitStack() as stack:
        groups.list_groups(handle, [group_id])
        for node in (frozen, other):  # the controllers have no quorum
            stack.enter_context(cluster.broker(node).freeze())
        for command in ("group list", "group explain"):
            began = time.monotonic()
            with pytest.raises(
                ClusterError, match=rf"only broker ({frozen}|{other}) can answer, and no other"
            ):
                COMMANDS[command](handle, topic, group_id)
            assert time.monotonic() - began < longer(TAKEN_OVER)
    cluster.wait_complete()


@pytest.mark.slow
def test_a_cluster_that_freezes_after_it_was_reached_is_said_to_soon(disturbed_brokers: Cluster) -> None:
    cluster = disturbed_brokers
    with ClusterHandle(cluster.bootstrap_servers) as handle, ExitStack() as stack:
        groups.list_groups(handle)
        for broker in cluster.brokers:
            stack.enter_context(broker.freeze())
        began = time.monotonic()
        with pytest.raises(ClusterError, match=r"^no broker answers at "):
            groups.list_groups(handle)
        assert time.monotonic() - began < longer(SOON)
    cluster.wait_complete()
