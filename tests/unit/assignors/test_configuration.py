"""Assignors in the hands of a KafkaConsumer that has not joined anything, and is not connected."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.assignors.cooperative_sticky import (
    CooperativeStickyAssignor as StockCooperativeSticky,
)
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaConfigurationError, LeaderNotAvailableError
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.protocol.metadata import MetadataResponse

from kafka_assignors import (
    BroadcastAssignor,
    CooperativeStickyAssignor,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors._assignors._adapter import METADATA_TRIES
from tests.support.unconnected import Unconnected
from tests.support.wire import subscription

MakeConsumer = Callable[..., KafkaConsumer]

KNOWN = MetadataResponse(
    brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=9)],
    topics=[
        MetadataResponse.MetadataResponseTopic(
            name="topic",
            partitions=[MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(leader_id=1)],
        )
    ],
)
"""What a broker says of the topic: it has one partition."""


@pytest.fixture
def consumer() -> Iterator[MakeConsumer]:
    """Makes consumers with a list of strategies; all are closed in the end."""
    with ExitStack() as stack:

        def make(*strategies: Any) -> KafkaConsumer:
            made = KafkaConsumer(
                kafka_client=Unconnected,
                api_version=(3, 0),
                bootstrap_servers="127.0.0.1:9",
                group_id="configuration",
                partition_assignment_strategy=list(strategies),
            )
            stack.callback(made.close)
            return made

        yield make


@pytest.mark.parametrize(
    ("strategies", "mode"),
    [
        ([CooperativeStickyAssignor], RebalanceProtocol.COOPERATIVE),
        ([CooperativeStickyAssignor(rack="r")], RebalanceProtocol.COOPERATIVE),
        ([partial(CooperativeStickyAssignor, rack="r")], RebalanceProtocol.COOPERATIVE),
        ([CooperativeStickyAssignor, RangeAssignor], RebalanceProtocol.EAGER),
        ([RangeAssignor, CooperativeStickyAssignor], RebalanceProtocol.EAGER),
        ([CooperativeStickyAssignor, RangePartitionAssignor], RebalanceProtocol.EAGER),
        ([RangeAssignor, RoundRobinPartitionAssignor], RebalanceProtocol.EAGER),
        (
            [
                RangeAssignor,
                RoundRobinAssignor,
                StickyAssignor(rack="r"),
                lambda: RandomAssignor(seed=1),
                BroadcastAssignor,
            ],
            RebalanceProtocol.EAGER,
        ),
    ],
)
def test_classes_instances_and_factories_in_any_order_make_a_consumer(
    consumer: MakeConsumer, strategies: list[Any], mode: RebalanceProtocol
) -> None:
    assert consumer(*strategies)._coordinator._rebalance_protocol == mode


@pytest.mark.parametrize(
    "strategies",
    [
        [RangePartitionAssignor, RangeAssignor],
        [RangeAssignor, RangePartitionAssignor],
        [partial(RangePartitionAssignor), RangeAssignor],
        [StickyAssignor(rack="a"), StickyAssignor(rack="b")],
        [RoundRobinAssignor, StickyAssignor, RoundRobinPartitionAssignor],
    ],
)
def test_two_assignors_of_one_name_are_refused(consumer: MakeConsumer, strategies: list[Any]) -> None:
    with pytest.raises(KafkaConfigurationError, match="assignors of one name"):
        consumer(*strategies)


def test_an_assignor_used_by_hand_within_a_rebalance_listener_is_not_taken_for_the_consumers(
    consumer: MakeConsumer,
) -> None:
    by_hand = CooperativeStickyAssignor()
    by_hand.on_assignment(ConsumerProtocolAssignment(1, [("elsewhere", [7])], b""), 3)
    told: list[Any] = []

    class Listener(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned: Any) -> None:  # noqa: ARG002 - the client's signature
            told.append(by_hand.metadata({"elsewhere"}))

        def on_partitions_revoked(self, revoked: Any) -> None:
            """Nothing to do."""

    coordinator = consumer(RangeAssignor)._coordinator
    coordinator._subscription.subscribe(["topic"], listener=Listener())
    coordinator._net.run(coordinator._invoke_rebalance_listener_async, "on_partitions_assigned", set())
    assert (told[0].generation_id, told[0].owned_partitions[0].partitions) == (3, [7])


def test_one_instance_for_two_consumers_is_refused_and_the_first_is_none_the_worse(
    consumer: MakeConsumer,
) -> None:
    instance = CooperativeStickyAssignor()
    first = consumer(instance)
    with pytest.raises(KafkaConfigurationError, match="belongs to another consumer"):
        consumer(instance)
    assert first._coordinator._assignors == {"cooperative-sticky": instance}
    assert instance.supported_protocols() == [RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER]


def test_kafka_pythons_own_take_one_instance_for_two_consumers_and_no_list_of_both_modes(
    consumer: MakeConsumer,
) -> None:
    instance = StickyPartitionAssignor()
    first, second = consumer(instance), consumer(instance)
    assert first._coordinator._assignors == second._coordinator._assignors == {"sticky": instance}
    with pytest.raises(KafkaConfigurationError, match="do not support a common RebalanceProtocol"):
        consumer(StockCooperativeSticky, RangePartitionAssignor)


def test_an_instance_may_serve_again_once_its_consumer_is_closed(consumer: MakeConsumer) -> None:
    instance = StickyAssignor()
    consumer(instance).close()
    assert consumer(instance)._coordinator._assignors == {"sticky": instance}


@pytest.mark.parametrize("assignor", [RangeAssignor, CooperativeStickyAssignor])
def test_a_consumer_that_asked_to_join_goes_on_with_it_until_it_has_its_assignment(
    consumer: MakeConsumer, assignor: Any
) -> None:
    """By itself it forgets the join if its poll ends before that and the reason to join has gone."""
    made = consumer(assignor)
    made._subscription.subscribe(["topic"])
    made._coordinator.rejoin_needed = False
    made._coordinator.group_protocols()
    assert made._coordinator.need_rejoin()


@pytest.mark.parametrize(("milliseconds", "tries"), [(10_000, METADATA_TRIES), (1e-6, 0)])
def test_a_leader_asks_again_for_topics_without_metadata_as_long_as_it_may_be_silent(
    consumer: MakeConsumer, milliseconds: float, tries: int
) -> None:
    made = consumer(RangeAssignor)
    made._subscription.subscribe(["topic"])
    made._coordinator._cluster.update_metadata(MetadataResponse.decode(KNOWN.encode(version=1), version=1))
    made._coordinator.group_protocols()
    made._coordinator.config["session_timeout_ms"] = milliseconds

    def assigned() -> Any:
        member = JoinGroupResponse.JoinGroupResponseMember(
            member_id="m", group_instance_id=None, metadata=subscription(3, ["topic", "absent"])
        )
        return made._coordinator._perform_assignment("m", "range", [member])["m"].partitions()

    for _ in range(tries):
        with pytest.raises(LeaderNotAvailableError, match="no metadata yet for absent"):
            assigned()
    assert assigned() == [("topic", 0)]
