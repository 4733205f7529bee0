"""What a consumer commits and its listener hears as it gives up what it has: each way out of each client.

Consumers of the first two rows of `CLIENTS` read on during rebalances, so their ways out are ours. The others
are driven by their clients alone: docs/limits.md has what that means.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from kafka import TopicPartition

from integration_tests.support import services
from integration_tests.support.membership import expel
from integration_tests.support.records import committed, produce
from kafka_assignors import CooperativeStickyAssignor, RangeAssignor, StickyAssignor
from kafka_assignors.testing import create_topic
from kafka_assignors.testing.events import Failed, Lost, Revoked

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.testing import Cluster, ConsumerGroup, Member

    Way = Callable[[ConsumerGroup, Member], None]

READ: Final = 20
SETTINGS: Final = {"auto_commit_interval_ms": 3_600_000}  # so what is committed is so on the way out

CLIENTS: Final[dict[str, tuple[str, list[Any]]]] = {
    "kafka-python": ("kafka-python", [CooperativeStickyAssignor]),
    "aiokafka": ("aiokafka", [CooperativeStickyAssignor]),
    "kafka-python, eager": ("kafka-python", [StickyAssignor]),
    "aiokafka, eager": ("aiokafka", [CooperativeStickyAssignor, RangeAssignor]),
}

ITERATES: Final[dict[str, Any]] = {
    "kafka-python": partial(services.iterates, enable_auto_commit=True),
    "aiokafka": partial(services.iterates_with_aiokafka, ours=True),
}
"""A consumer in a loop that an exception ends: SystemExit, or CancelledError."""


def heard(group: ConsumerGroup) -> list[str]:
    """The calls of the first member's listener that end something."""
    return [one.kind for one in group.timeline.of(Lost, Revoked, member="m1") if one.partitions]


def wait_until_heard(group: ConsumerGroup) -> None:
    """Wait until the listener hears of the end, or the application of an error."""
    group.wait_for(lambda: heard(group) or group.timeline.of(Failed, member="m1"), what="m1 to hear")


def unsubscribes(group: ConsumerGroup, one: Member) -> None:
    one.unsubscribe()
    group.wait_for(lambda: group.describe().state == "Empty", what="m1 to leave")


def closes(_: ConsumerGroup, one: Member) -> None:
    one.leave()


def is_expelled(group: ConsumerGroup, one: Member) -> None:
    expel(group.access, group.group_id, one.member_id)
    wait_until_heard(group)


def is_fenced(group: ConsumerGroup, one: Member) -> None:
    group.join("m2", instance_id=one.instance_id)
    wait_until_heard(group)


def changes_its_subscription(group: ConsumerGroup, one: Member) -> None:
    one.subscribe(create_topic(group.access, 1))
    wait_until_heard(group)


def is_cancelled(_: ConsumerGroup, one: Member) -> None:
    one.leave()


RACE: Final = ...
"""The client sends the commit, and may leave before that."""

OF_CLIENTS: Final[dict[Way, dict[str, tuple[Any, list[str]]]]] = {
    unsubscribes: {
        "kafka-python": (READ, ["revoked"]),
        "aiokafka": (READ, ["revoked"]),
        "kafka-python, eager": (RACE, []),
        "aiokafka, eager": (None, []),
    },
    closes: {
        "kafka-python": (READ, ["revoked"]),
        "aiokafka": (READ, ["revoked"]),
        "kafka-python, eager": (READ, ["revoked"]),
        "aiokafka, eager": (READ, []),
    },
    is_expelled: {
        "kafka-python": (None, ["lost"]),
        "aiokafka": (None, ["lost"]),
        "kafka-python, eager": (None, ["lost"]),
        "aiokafka, eager": (READ, ["revoked"]),  # without a member id, as its group is empty
    },
    is_fenced: {
        "kafka-python": (None, ["lost"]),
        "aiokafka": (None, ["lost"]),
        # kafka-python's own never hears of it: test_records_in_rebalances.py.
        "aiokafka, eager": (None, ["revoked"]),
    },
    changes_its_subscription: {
        "kafka-python": (READ, ["revoked"]),
        "aiokafka": (READ, ["revoked"]),
        "kafka-python, eager": (READ, ["revoked"]),
        "aiokafka, eager": (READ, ["revoked"]),
    },
    is_cancelled: {
        "kafka-python": (READ, ["revoked"]),
        "aiokafka": (READ, ["revoked"]),
        "kafka-python, eager": (READ, ["revoked"]),
        "aiokafka, eager": (READ, []),
    },
}
"""What is committed by then, and what the listener has heard."""


@pytest.mark.parametrize(
    ("way", "client"), [(way, client) for way, of in OF_CLIENTS.items() for client in of]
)
def test_what_is_committed_and_heard_on_each_way_out(
    way: Way,
    client: str,
    kafka_cluster: Cluster,
    topic_factory: Callable[..., str],
    consumer_group: Callable[..., ConsumerGroup],
) -> None:
    topic = topic_factory(1)
    produce(kafka_cluster, topic, {0: READ})
    library, assignors = CLIENTS[client]
    how = ("thread", library) if way is not is_cancelled else ("process", ITERATES[library])
    group = consumer_group(topic, assignors, place=how[0], client=how[1], commit="auto", settings=SETTINGS)
    one = group.join("m1", instance_id="i" if way is is_fenced else None)
    group.wait_consumed({TopicPartition(topic, 0): READ})
    way(group, one)
    offset = committed(kafka_cluster, group.group_id, topic)
    expected, calls = OF_CLIENTS[way][client]
    assert heard(group) == calls
    if expected is not RACE:
        assert offset == expected
