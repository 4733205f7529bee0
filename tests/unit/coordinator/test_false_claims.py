"""What a member with false claims costs a group, as docs/guarantees.md says."""

from functools import partial
from typing import Any

import pytest
from kafka import TopicPartition

from kafka_assignors._assignors import CooperativeStickyAssignor
from kafka_assignors.coordinator._simulator.settings import MemberSettings
from kafka_assignors.coordinator._simulator.simulation import Simulation

BOUND = 20
"""For how many heartbeat intervals a partition has no owner at the longest, by docs/guarantees.md."""

TOPICS = {"orders": 12, "payments": 2}
ORDERS = frozenset(TopicPartition("orders", number) for number in range(TOPICS["orders"]))
PAYMENTS = frozenset(TopicPartition("payments", number) for number in range(TOPICS["payments"]))


class ClaimsAll(CooperativeStickyAssignor):
    """Claims all of a topic on every join, whatever it has and subscribes to."""

    def metadata(self, topics: Any) -> Any:
        sent = super().metadata(topics)
        everything = [*range(TOPICS["orders"])]
        sent.owned_partitions = [type(sent).TopicPartition(topic="orders", partitions=everything)]
        return sent


def group_with_a_claimant(
    heartbeat_ms: int, topics: list[str], last: str, *, priority: int = 0
) -> Simulation:
    """Three members that only poll, for 100 ms at a time, and one that claims what it does not have."""
    idle = MemberSettings(heartbeat_interval_ms=heartbeat_ms, poll_ms=100, work_ms=0)
    group = Simulation(TOPICS, [CooperativeStickyAssignor], member=idle)
    names = [name for name in ("a", "b", "c", "claimant") if name != last]
    for name in [*names, last]:
        claims = name == "claimant"
        group.join(
            name,
            topics=topics if claims else None,
            assignors=[partial(ClaimsAll, priority=priority)] if claims else None,
        )
    return group


@pytest.mark.parametrize("priority", [0, -1], ids=["as all", "standby"])
@pytest.mark.parametrize("last", ["a", "claimant"])
@pytest.mark.parametrize("topics", [["orders", "payments"], ["payments"]], ids="-".join)
@pytest.mark.parametrize("heartbeat_ms", [300, 500, 3000])
def test_a_false_claim_leaves_no_partition_without_an_owner_for_longer_than_the_bound(
    heartbeat_ms: int, topics: list[str], last: str, priority: int
) -> None:
    group = group_with_a_claimant(heartbeat_ms, topics, last, priority=priority)
    group.run(120)
    owned = group.timeline.rebalances[-1].assignments
    if "orders" in topics:
        assert owned["claimant"] >= ORDERS
    else:
        assert frozenset().union(*(owned[name] for name in "abc")) >= ORDERS
    group.members["b"].leave()
    group.run(120)
    longest = max(gap.seconds for gap in group.timeline.gaps("generation")) * 1000 / heartbeat_ms
    assert 14 < longest <= BOUND
    assert group.timeline.double_assigned() == {}
    owned = group.timeline.rebalances[-1].assignments
    assert frozenset().union(*owned.values()) == ORDERS | PAYMENTS
