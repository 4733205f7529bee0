"""The README's comparison: kafka-python's own classes, ours and Java's on the same groups.

Each scenario is a group as its leader sees it. What each implementation makes of it is written down, faults
included: should a newer release mend one, the test fails, and the README's table with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor as StockCooperativeSticky
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as StockSticky
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kafka_assignors import CooperativeStickyAssignor, RangeAssignor, RoundRobinAssignor, StickyAssignor
from kafka_assignors._assignors._messages import make_subscription
from kafka_assignors._wire.user_data import encode_sticky
from tests.support.by_hand import cluster_of, joined, names, partitions_in
from tests.support.java.oracle import JavaOracle

OURS = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
STOCK = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StockSticky,
    "cooperative-sticky": StockCooperativeSticky,
}
Result = dict[str, str] | str
"""Partitions by member, or the name of the exception."""


@dataclass(frozen=True)
class M:
    """A member: its topics, what it says it owned in which generation, and how it says it."""

    topics: str
    owned: Mapping[str, list[int]] = field(default_factory=dict)
    generation: int = -1
    instance: str | None = None
    rack: str | None = None
    user_data: bytes | None = None


@dataclass(frozen=True)
class Scenario:
    strategy: str
    topics: Mapping[str, int | list[list[str]]]
    members: Mapping[str, M]

    def by_kafka_python(self, assignor: Any) -> Result:
        """What an assignor in kafka-python makes of it."""
        racks = sorted(
            {
                rack
                for places in self.topics.values()
                if not isinstance(places, int)
                for p in places
                for rack in p
            }
        )
        nodes = dict(enumerate(racks, start=1))
        replicas = {
            (topic, partition): [node for node, rack in nodes.items() if rack in places]
            for topic, partitions in self.topics.items()
            if not isinstance(partitions, int)
            for partition, places in enumerate(partitions)
        }
        ids = {topic: range(n if isinstance(n, int) else len(n)) for topic, n in self.topics.items()}
        members = [
            joined(name, self._subscription(member), member.instance) for name, member in self.members.items()
        ]
        try:
            plan = assignor.assign(cluster_of(ids, racks=nodes, replicas=replicas), members)
        except Exception as error:  # noqa: BLE001 - what it raises is the finding
            return type(error).__name__
        return names({name: partitions_in(plan[name]) for name in self.members})

    def by_java(self, java: JavaOracle) -> Result:
        """What Java's class makes of it."""
        members = [
            {
                "member_id": name,
                "instance_id": member.instance,
                "topics": member.topics.split(),
                "rack": member.rack,
                "owned": member.owned if member.generation >= 0 else None,
                "generation": member.generation,
                "user_data_hex": None if member.user_data is None else member.user_data.hex(),
            }
            for name, member in self.members.items()
        ]
        (answer,) = java.assign(self.strategy, [{"topics": self.topics, "members": members}])
        if "exception" in answer:
            return str(answer["exception"]).partition(":")[0].rpartition(".")[2]
        return names(answer["assignment"])

    def _subscription(self, member: M) -> Any:
        user_data = member.user_data
        if user_data is None and self.strategy == "sticky" and member.generation >= 0:
            user_data = encode_sticky(member.owned, member.generation)
        return make_subscription(
            member.topics.split(),
            owned=member.owned if self.strategy == "cooperative-sticky" else {},
            generation=member.generation,
            rack=member.rack,
            user_data=user_data,
        )


def in_kafka_python_layout(owned: list[tuple[str, list[int]]], generation: int) -> bytes:
    stock = StockSticky()
    stock.on_assignment(ConsumerProtocolAssignment(1, owned, b""), generation)
    return bytes(ConsumerProtocolSubscription.decode(stock.metadata({"t"}).encode()).user_data)


def test_round_robin_with_unequal_subscriptions(java: JavaOracle) -> None:
    scenario = Scenario(
        "roundrobin", {"t0": 1, "t1": 2, "t2": 3}, {"C0": M("t0"), "C1": M("t0 t1"), "C2": M("t0 t1 t2")}
    )
    right = {"C0": "t0p0", "C1": "t1p0", "C2": "t1p1 t2p0 t2p1 t2p2"}
    assert scenario.by_java(java) == right
    assert scenario.by_kafka_python(RoundRobinAssignor()) == right
    assert scenario.by_kafka_python(RoundRobinPartitionAssignor()) == "KeyError"


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_static_members_among_dynamic_ones(strategy: str, java: JavaOracle) -> None:
    scenario = Scenario(strategy, {"t": 3}, {"a": M("t"), "b": M("t", instance="i"), "c": M("t")})
    right = {"a": "tp1", "b": "tp0", "c": "tp2"}
    assert scenario.by_java(java) == right
    assert scenario.by_kafka_python(OURS[strategy]()) == right
    stock = scenario.by_kafka_python(STOCK[strategy]())
    assert isinstance(stock, dict)
    assert stock["a"] == ""  # nothing for a member that should have a third


def test_range_in_racks(java: JavaOracle) -> None:
    members = {"c00": M("t", rack="rX"), "c01": M("t", rack="r1")}
    scenario = Scenario("range", {"t": [["r0"], ["r1"], ["r1"]]}, members)
    right = {"c00": "tp0", "c01": "tp1 tp2"}
    assert scenario.by_java(java) == right
    assert scenario.by_kafka_python(RangeAssignor()) == right
    assert scenario.by_kafka_python(RangePartitionAssignor()) == {"c00": "tp0 tp1", "c01": "tp2"}


def test_sticky_reads_what_java_members_owned(java: JavaOracle) -> None:
    members = {"a": M("t", {"t": [2, 3]}, 5), "b": M("t", {"t": [0, 1]}, 5)}
    scenario = Scenario("sticky", {"t": 4}, members)
    right = {"a": "tp2 tp3", "b": "tp0 tp1"}
    assert scenario.by_java(java) == right
    assert scenario.by_kafka_python(StickyAssignor()) == right
    assert scenario.by_kafka_python(StockSticky()) == {"a": "tp0 tp2", "b": "tp1 tp3"}


def test_sticky_reads_what_kafka_python_members_owned(java: JavaOracle) -> None:
    members = {
        "a": M("t", user_data=in_kafka_python_layout([("t", [2, 3])], 5)),
        "b": M("t", user_data=in_kafka_python_layout([("t", [0, 1])], 5)),
    }
    scenario = Scenario("sticky", {"t": 4}, members)
    right = {"a": "tp2 tp3", "b": "tp0 tp1"}
    assert scenario.by_kafka_python(StickyAssignor()) == right
    assert scenario.by_kafka_python(StockSticky()) == right
    assert scenario.by_java(java) == {"a": "tp0 tp2", "b": "tp1 tp3"}


def test_sticky_with_two_claims_of_one_generation(java: JavaOracle) -> None:
    """Nobody may keep t-3; what c03 has besides it need not move."""
    members = {"c06": M("t"), "c03": M("t", {"t": [3, 2]}, 28), "c02": M("t"), "c04": M("t", {"t": [3]}, 28)}
    scenario = Scenario("sticky", {"t": 4}, members)
    right = {"c02": "tp0", "c03": "tp2", "c04": "tp1", "c06": "tp3"}
    assert scenario.by_java(java) == right
    assert scenario.by_kafka_python(StickyAssignor()) == right
    assert _stock_sticky(scenario) == {"c02": "tp0", "c03": "tp3", "c04": "tp1", "c06": "tp2"}


def _stock_sticky(scenario: Scenario) -> Result:
    """With the user data in the layout that the stock class reads."""
    members = {
        name: M(
            member.topics, user_data=in_kafka_python_layout(list(member.owned.items()), member.generation)
        )
        if member.generation >= 0
        else member
        for name, member in scenario.members.items()
    }
    return Scenario(scenario.strategy, scenario.topics, members).by_kafka_python(StockSticky())


def test_cooperative_sticky_with_a_stale_claim_of_a_subscriber(java: JavaOracle) -> None:
    """c00 holds t-0 and no longer subscribes; the other one had it in an earlier generation."""
    members = {"consumer-1-1": M("t", {"t": [0]}, 3), "c00": M("u", {"t": [0]}, 6)}
    scenario = Scenario("cooperative-sticky", {"t": 1, "u": 1}, members)
    assert scenario.by_kafka_python(CooperativeStickyAssignor()) == {"consumer-1-1": "", "c00": "up0"}
    # Two owners until c00 has heard of it:
    at_once = {"consumer-1-1": "tp0", "c00": "up0"}
    assert scenario.by_java(java) == at_once
    assert (
        Scenario("cooperative-sticky", {"t": 1, "u": 1}, dict(reversed(members.items()))).by_kafka_python(
            StockCooperativeSticky()
        )
        == at_once
    )


def test_sticky_with_a_claim_on_a_partition_that_is_gone(java: JavaOracle) -> None:
    members = {"a": M("t", {"t": [1]}, 12)}
    scenario = Scenario("sticky", {"t": 1}, members)
    assert scenario.by_kafka_python(StickyAssignor()) == {"a": "tp0"}
    assert _stock_sticky(scenario) == {"a": "tp0"}
    assert scenario.by_java(java) == "IllegalStateException"


def test_sticky_with_a_member_without_topics(java: JavaOracle) -> None:
    members = {"consumer-1-1": M(""), "c04": M("t")}
    scenario = Scenario("sticky", {"t": 2}, members)
    right = {"consumer-1-1": "", "c04": "tp0 tp1"}
    assert scenario.by_kafka_python(StickyAssignor()) == right
    assert scenario.by_kafka_python(StockSticky()) == right
    assert scenario.by_java(java) == {"consumer-1-1": "tp1", "c04": "tp0"}
