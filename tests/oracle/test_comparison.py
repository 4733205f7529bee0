"""The README's comparison: kafka-python's own classes, ours and Java's on the same groups.

Each scenario is a group as its leader sees it. What each implementation makes of it is written down, faults
included: should a newer release mend one, the test fails, and the README's table with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as StockSticky
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kafka_assignors._assignors._messages import make_subscription
from kafka_assignors._common.strategies import STRATEGIES, load
from kafka_assignors._wire.user_data import encode_sticky
from tests.support.by_hand import cluster_of, joined, names, partitions_in
from tests.support.java.oracle import JavaOracle

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


def by_kafka_python(topics: str, owned: Mapping[str, list[int]], generation: int) -> M:
    """A member with the user data in the layout that kafka-python's own class writes and reads."""
    stock = StockSticky()
    stock.on_assignment(ConsumerProtocolAssignment(1, [*owned.items()], b""), generation)
    user_data = ConsumerProtocolSubscription.decode(stock.metadata({*topics.split()}).encode()).user_data
    return M(topics, user_data=bytes(user_data))


def kept(member: Callable[..., M]) -> Scenario:
    return Scenario(
        "sticky", {"t": 4}, {"a": member("t", {"t": [2, 3]}, 5), "b": member("t", {"t": [0, 1]}, 5)}
    )


def twice(member: Callable[..., M]) -> Scenario:
    """Nobody may keep t-3; what c03 has besides it need not move."""
    claims = {"c03": member("t", {"t": [3, 2]}, 28), "c02": M("t"), "c04": member("t", {"t": [3]}, 28)}
    return Scenario("sticky", {"t": 4}, {"c06": M("t"), **claims})


def stale(*order: int) -> Scenario:
    """c00 holds t-0 and no longer subscribes; the other one had it in an earlier generation."""
    members = [("consumer-1-1", M("t", {"t": [0]}, 3)), ("c00", M("u", {"t": [0]}, 6))]
    return Scenario("cooperative-sticky", {"t": 1, "u": 1}, dict(members[number] for number in order))


def static(strategy: str) -> Scenario:
    return Scenario(strategy, {"t": 3}, {"a": M("t"), "b": M("t", instance="i"), "c": M("t")})


class Compared(NamedTuple):
    """What each makes of a scenario: Java the same as we, unless it is said.

    `for_stock` is the scenario for kafka-python's own class, where that reads another layout or order.
    """

    scenario: Scenario
    ours: Result
    stock: Result
    java: Result | None = None
    for_stock: Scenario | None = None


STATIC_RIGHT = {"a": "tp1", "b": "tp0", "c": "tp2"}
KEPT, MOVED = {"a": "tp2 tp3", "b": "tp0 tp1"}, {"a": "tp0 tp2", "b": "tp1 tp3"}
RACKS = {"c00": M("t", rack="rX"), "c01": M("t", rack="r1")}
UNEQUAL = {"C0": M("t0"), "C1": M("t0 t1"), "C2": M("t0 t1 t2")}
COMPARED = {
    "round robin, unequal subscriptions": Compared(
        Scenario("roundrobin", {"t0": 1, "t1": 2, "t2": 3}, UNEQUAL),
        ours={"C0": "t0p0", "C1": "t1p0", "C2": "t1p1 t2p0 t2p1 t2p2"},
        stock="KeyError",
    ),
    # Nothing for a member that should have a third.
    "range, static members": Compared(static("range"), STATIC_RIGHT, {"a": "", "b": "tp0 tp1", "c": "tp2"}),
    "round robin, static members": Compared(
        static("roundrobin"), STATIC_RIGHT, {"a": "", "b": "tp0 tp2", "c": "tp1"}
    ),
    "range in racks": Compared(
        Scenario("range", {"t": [["r0"], ["r1"], ["r1"]]}, RACKS),
        ours={"c00": "tp0", "c01": "tp1 tp2"},
        stock={"c00": "tp0 tp1", "c01": "tp2"},
    ),
    "sticky, user data of Java members": Compared(kept(M), ours=KEPT, stock=MOVED),
    "sticky, user data of kafka-python 3": Compared(kept(by_kafka_python), ours=KEPT, stock=KEPT, java=MOVED),
    "sticky, two claims of one generation": Compared(
        twice(M),
        ours={"c02": "tp0", "c03": "tp2", "c04": "tp1", "c06": "tp3"},
        stock={"c02": "tp0", "c03": "tp3", "c04": "tp1", "c06": "tp2"},
        for_stock=twice(by_kafka_python),
    ),
    "sticky, a claim on a partition that is gone": Compared(
        Scenario("sticky", {"t": 1}, {"a": M("t", {"t": [1]}, 12)}),
        ours={"a": "tp0"},
        stock={"a": "tp0"},
        java="IllegalStateException",
        for_stock=Scenario("sticky", {"t": 1}, {"a": by_kafka_python("t", {"t": [1]}, 12)}),
    ),
    "sticky, a member without topics": Compared(
        Scenario("sticky", {"t": 2}, {"consumer-1-1": M(""), "c04": M("t")}),
        ours={"consumer-1-1": "", "c04": "tp0 tp1"},
        stock={"consumer-1-1": "", "c04": "tp0 tp1"},
        java={"consumer-1-1": "tp1", "c04": "tp0"},
    ),
    # Two owners, by the others, until c00 has heard of it.
    "cooperative sticky, a stale claim of a subscriber": Compared(
        stale(0, 1),
        ours={"consumer-1-1": "", "c00": "up0"},
        stock={"consumer-1-1": "tp0", "c00": "up0"},
        java={"consumer-1-1": "tp0", "c00": "up0"},
        for_stock=stale(1, 0),
    ),
}


@pytest.mark.parametrize("name", COMPARED)
def test_each_makes_of_a_scenario_what_the_page_says(name: str, java: JavaOracle) -> None:
    scenario, ours, stock, by_java, for_stock = COMPARED[name]
    strategy = STRATEGIES[scenario.strategy]
    assert strategy.assignor is not None
    assert strategy.stock is not None
    assert scenario.by_kafka_python(load(strategy.assignor)()) == ours
    assert (for_stock or scenario).by_kafka_python(load(strategy.stock)()) == stock
    assert scenario.by_java(java) == (by_java or ours)
