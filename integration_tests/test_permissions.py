"""The least rights of each command, from docs/permissions.md; and what it says without one of them."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)

from integration_tests.support.clusters import AUTHORIZED, own_cluster, write_properties
from kafka_assignors._cli.main import main
from kafka_assignors._cluster.admin import Admin
from kafka_assignors.placement._cluster import topics as live
from kafka_assignors.testing import Cluster

PAGE: Final = Path(__file__).parents[1] / "docs" / "permissions.md"
USER: Final = "User:tester"

COLUMNS: Final = (
    ResourcePattern(ResourceType.CLUSTER, "kafka-cluster"),
    ResourcePattern(ResourceType.TOPIC, "orders", ACLResourcePatternType.PREFIXED),
    ResourcePattern(ResourceType.GROUP, "billing"),
    ResourcePattern(ResourceType.TOPIC, "__consumer_offsets"),
)
"""What the columns of the page's table are of."""

SAYS: Final = (
    "lacks a right on the",
    "that this user may not describe",
    "may not describe are left out",
    "does not say whether it has a throttle",
    "It needs DESCRIBE and READ",
    'kafka_group_described{group="billing"} 0.0',
    'kafka_group_problems{group="billing",severity="warning"} 1.0',
)
"""One of these is in what a command prints that lacks a right."""

NUMBERS: Final = itertools.count()


class Run(Protocol):
    def __call__(self, command: str, password: str = ..., /) -> tuple[int, str]: ...


class Right(NamedTuple):
    operation: str
    resource: ResourcePattern


def rows() -> Iterator[tuple[str, list[Right]]]:
    """Each command of the page, and what it needs."""
    for row in re.findall(r"(?m)^\| `((?:group|placement|history) .*)$", PAGE.read_text(encoding="utf-8")):
        command, *columns = row.strip("|").split("|")
        rights = [
            Right(operation, resource)
            for cell, resource in zip(columns, COLUMNS, strict=True)
            for operation in re.findall(r"[A-Z_]+", cell)
        ]
        yield command.strip().strip("`"), rights


COMMANDS: Final = dict(rows())


@pytest.fixture(scope="module")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    with own_cluster(pytestconfig, settings=AUTHORIZED, security="sasl") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[Admin]:
    """Who may do everything."""
    with Admin([cluster.brokers[0].bootstrap]) as admin:
        live.create_topic(admin, "orders", {0: [1], 1: [1]})
        yield admin


@pytest.fixture(scope="module", autouse=True)
def _group(cluster: Cluster, admin: Admin) -> Iterator[None]:
    """A group with a member, and with lag."""
    assert admin
    producer = Producer({"bootstrap.servers": cluster.brokers[0].bootstrap})
    for number in range(20):
        producer.produce("orders", b"", partition=number % 2)
    assert producer.flush(60) == 0
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=cluster.brokers[0].bootstrap,
        group_id="billing",
        auto_offset_reset="earliest",
        max_poll_records=1,
        max_poll_interval_ms=3_600_000,
    )
    while not consumer.poll(timeout_ms=1000):
        pass
    consumer.commit()
    yield
    consumer.close(autocommit=False)


def grant(admin: Admin, rights: list[Right]) -> None:
    """Let the user do this, and nothing else."""
    everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    mine = ACLFilter(USER, "*", ACLOperation.ANY, ACLPermissionType.ANY, everything)
    given = [
        ACL(USER, "*", ACLOperation[right.operation], ACLPermissionType.ALLOW, right.resource)
        for right in rights
    ]
    admin.ask(lambda client: client.delete_acls([mine]))
    if given:
        admin.ask(lambda client: client.create_acls(given))


@pytest.fixture
def run(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command as the user, with its password or another; returns its status and what it printed."""

    def run(command: str, password: str = cluster.security.password or "") -> tuple[int, str]:
        config = write_properties(cluster, tmp_path / "ops.properties", password)
        number = next(NUMBERS)
        arguments = command.replace("orders-new", f"orders-{number}").replace(
            "ARCHIVE", str(tmp_path / f"{number}")
        )
        servers = ("--bootstrap-server", cluster.bootstrap_servers[0], "--command-config", str(config))
        status = main([*arguments.split(), *servers])
        said = " ".join("".join(capsys.readouterr()).split())
        assert password not in said
        assert "Traceback" not in said
        return status, said

    return run


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=[pytest.mark.slow] * command.startswith("history"))  # it starts Spark
        for command in COMMANDS
    ],
)
def test_a_command_needs_the_rights_on_the_page_and_says_which_it_lacks(
    command: str, admin: Admin, run: Run
) -> None:
    rights = COMMANDS[command]
    for lacking in rights:
        grant(admin, [right for right in rights if right != lacking])
        status, said = run(command)
        assert any(words in said for words in SAYS), (lacking, status, said)
        assert "not exist" not in said
    grant(admin, rights)
    status, said = run(command)
    assert status == 0, said
    assert not any(words in said for words in SAYS), said


@pytest.mark.parametrize(
    "command", ["group list", "group explain billing", "placement describe", "history capture ARCHIVE"]
)
def test_a_wrong_password_is_said_and_not_shown(command: str, run: Run) -> None:
    status, said = run(command, "not-the-password")
    assert status == 1
    assert "it refuses the user 'tester' or the password" in said
