"""What the assignors rely on of kafka-python is what it was when that was tried."""

import logging
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kafka
import pytest
from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.consumer import ConsumerCoordinator

from kafka_assignors._assignors import _flow as flow, _joins as joins, _relied_on
from kafka_assignors._assignors._host import KafkaPythonHost
from kafka_assignors._assignors._relied_on import (
    FLOW,
    JOINS,
    MEMBERS,
    POLLS,
    READ,
    TOPICS,
    Part,
    check,
)
from kafka_assignors._assignors._sent import MembersReader
from tests.support.sources import KAFKA_PYTHON, private_names

ROOM = Path(_relied_on.__file__).parent


def test_functions_are_those_that_were_tried() -> None:
    installed = ".".join(kafka.__version__.split(".")[:2])
    assert KAFKA_PYTHON.hashes(Path(kafka.__file__).parents[1]) == KAFKA_PYTHON.record()[installed]


def test_each_method_that_a_change_needs_is_recorded() -> None:
    assert len(KAFKA_PYTHON.names) == 51  # one that is lost would not be missed
    needed = {method for part in (FLOW, JOINS, MEMBERS, POLLS) for method in part.methods}
    assert needed <= {name.rpartition(".")[2] for name in KAFKA_PYTHON.names}


def test_no_private_name_of_kafka_python_is_used_that_is_not_listed() -> None:
    listed = {part for part_of in (FLOW, JOINS, MEMBERS, TOPICS) for part in part_of.methods} | {
        name for part in (FLOW, JOINS, MEMBERS, TOPICS) for one in part.attributes for name in one.split(".")
    }
    ours, theirs = private_names(ROOM), private_names(Path(kafka.__file__).parent / "coordinator")
    assert (ours & theirs) - listed - {*READ} == set()


@pytest.mark.parametrize("part", [FLOW, JOINS, MEMBERS, TOPICS, POLLS])
def test_the_installed_release_has_all_methods(part: Part) -> None:
    only_methods = Part(cost="", methods=part.methods)
    kind: type = KafkaConsumer if part is POLLS else ConsumerCoordinator
    assert only_methods._missing(object.__new__(kind)) == []


class Other(ConsumerCoordinator):
    """Of a release whose join takes something, and that decodes members in another way."""

    async def _do_join_and_sync_async(self, tries: int) -> bytes:
        return bytes(tries)

    def _perform_assignment(self, members: Any) -> Any:
        return members


class Blocks(ConsumerCoordinator):
    """Of a release whose join blocks."""

    def _do_join_and_sync_async(self) -> bytes:
        return b""


def made(kind: type) -> Any:
    """What a consumer has, as far as it is asked before it is changed."""
    coordinator: Any = object.__new__(kind)
    coordinator._rebalance_protocol = RebalanceProtocol.COOPERATIVE
    return coordinator


@pytest.fixture(autouse=True)
def _unwarned() -> None:
    _relied_on.warn.cache_clear()


@pytest.mark.parametrize("kind", [Other, Blocks])
@pytest.mark.parametrize(
    ("change", "cost"),
    [
        (flow.install, "Cooperative consumers read nothing during a rebalance"),
        (joins.complete, "A join that ends between two polls is thrown away"),
    ],
)
def test_a_release_that_joins_otherwise_is_left_alone_with_one_warning(
    kind: type, change: Callable[[Any], Any], cost: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        coordinator = made(kind)
        assert not change(coordinator)
        assert (type(coordinator), [*vars(coordinator)]) == (kind, ["_rebalance_protocol"])
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    said = record.getMessage()
    assert said.startswith(f"kafka-python {kafka.__version__} differs from the releases")
    assert "_do_join_and_sync_async" in said
    assert cost in said


def test_a_release_that_decodes_members_otherwise_is_left_alone_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(2):
        KafkaPythonHost(made(Other)).show_members_first(MembersReader())
    (record,) = caplog.records
    assert "(_perform_assignment). A member with a subscription that cannot be decoded" in record.getMessage()


def test_what_is_missing_is_named() -> None:
    part = Part(cost="", methods={"poll": ("timeout_ms",), "poll_all": ()}, attributes=("a.b.c", "a.b.d"))
    coordinator: Any = object.__new__(ConsumerCoordinator)
    coordinator.a = SimpleNamespace(b=SimpleNamespace(c=1))
    assert part._missing(coordinator) == ["poll_all", "a.b.d"]


@pytest.mark.parametrize("version", ["3.0.12", "3.0.13", "3.1.0.dev1", "4.0.0"])
def test_a_client_that_is_new_enough_is_taken(version: str) -> None:
    check(version)


@pytest.mark.parametrize("version", ["3.0.11", "2.3.0", "3.0"])
def test_a_client_that_is_too_old_is_refused(version: str) -> None:
    with pytest.raises(ImportError, match=rf"3\.0\.12 or newer, and {re.escape(version)} is installed: pip"):
        check(version)
