"""Apache Kafka's CooperativeStickyAssignorTest, for our planners and `CooperativeStickyAssignor`.

    testEncodeAndDecodeGeneration                   test_encode_and_decode_generation
    testDecodeGeneration                            test_decode_generation
    testAllConsumersHaveOwnedPartitionInvalidated
    WhenClaimedByMultipleConsumersInSameGeneration
    With(Equal|Unequal)PartitionsPerConsumer        the class of that name; planned, and over the wire
    testMemberDataWithInconsistentData              test_member_data_with_inconsistent_data
    testMemberDataWithEmptyPartitionsAndEqualGeneration, ...HigherGeneration
                                                    test_member_data_with_empty_partitions_and_..._generation
    testAssignorWithOldVersionSubscriptions         test_assignor_with_old_version_subscriptions
    testUniformSubscriptionTransferOwnershipListIsRight
                                                    test_uniform_subscription_transfer_ownership_list_is_right
    verifyValidityAndBalance, which repeats the
    rebalance until nothing is revoked any more     Story.rebalance, in every scenario that runs cooperatively
    testMemberData, of the abstract class           test_member_data

Its other tests are those of the abstract class: test_kafka_abstract_sticky.py.
"""

import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from kafka_assignors import CooperativeStickyAssignor
from kafka_assignors._model.group import NO_GENERATION
from kafka_assignors._wire.user_data import encode_generation, encode_sticky
from kafka_assignors.planners import hand_over
from kafka_assignors.planners._cooperative import awaited_holders
from tests.support.kafka_scenarios import (
    PLANNERS,
    Begin,
    Placed,
    as_read,
    assign_by_hand,
    every_planner,
    flat,
    flat_all,
    parse,
    rack_aware,
    stories,
    subscription,
)

cooperatively = stories(modes=("cooperative",))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_member_data(version: int) -> None:
    """Version 0 has no owned partitions; Kafka's cooperative class does not support it."""
    sent = subscription(version, ["t"], "t1-0 t2-1", 1, encode_generation(1))
    assert as_read(CooperativeStickyAssignor, sent) == (parse("t1-0 t2-1"), 1, True)


def test_encode_and_decode_generation() -> None:
    assignor = CooperativeStickyAssignor()
    for generation in (NO_GENERATION, 10):
        if generation != NO_GENERATION:
            assignor.on_assignment(ConsumerProtocolAssignment(1, [], b""), generation)
        told = assignor.metadata({"t"}).user_data
        assert told == encode_generation(generation)
        sent = subscription(1, ["t"], "", NO_GENERATION, told)
        assert as_read(CooperativeStickyAssignor, sent) == ({}, generation, True)


def test_decode_generation() -> None:
    sent = subscription(1, ["t"], "", NO_GENERATION, None)
    assert as_read(CooperativeStickyAssignor, sent) == ({}, NO_GENERATION, True)


class TestAllConsumersHaveOwnedPartitionInvalidatedWhenClaimedByMultipleConsumersInSameGeneration:
    @cooperatively
    def test_with_equal_partitions_per_consumer(self, begin: Begin) -> None:
        story = begin({"t": 3})
        story.claim("c1", ["t"], "t-0 t-1", 1)
        story.claim("c2", ["t"], "t-0 t-2", 1)
        story.claim("c3", ["t"], {}, 1)
        assert flat_all(hand_over(story.plan()).assignments()) == {
            "c1": flat(parse("t-1")),
            "c2": flat(parse("t-2")),
            "c3": set(),
        }
        assert story.rebalance() == {"c1": {("t", 1)}, "c2": {("t", 2)}, "c3": {("t", 0)}}
        assert story.rounds == 2

    @cooperatively
    def test_with_unequal_partitions_per_consumer(self, begin: Begin) -> None:
        """t-0 waits until both have let go of it, whoever gets it; t-3, which nobody has, does not."""
        story = begin({"t": 4})
        story.claim("c1", ["t"], "t-0 t-1", 1)
        story.claim("c2", ["t"], "t-0 t-2", 1)
        story.claim("c3", ["t"], {}, 1)
        sent = flat_all(hand_over(story.plan()).assignments())
        assert ("t", 1) in sent["c1"]
        assert ("t", 2) in sent["c2"]
        assert set().union(*sent.values()) == flat(parse("t-1 t-2 t-3"))
        owned = story.rebalance()
        assert story.loads == [1, 1, 2]
        assert all(sent[member] <= mine for member, mine in owned.items())
        assert story.rounds == 2

    @every_planner
    @pytest.mark.parametrize("partitions", [3, 4])
    def test_over_the_wire(self, planner: str, partitions: int) -> None:
        assignor = CooperativeStickyAssignor(planner=PLANNERS[planner])
        topics = {"t": range(partitions)}
        first = assign_by_hand(
            assignor,
            topics,
            c1=subscription(3, ["t"], "t-0 t-1", 1, encode_generation(1)),
            c2=subscription(3, ["t"], "t-0 t-2", 1, encode_generation(1)),
            c3=subscription(3, ["t"], "", 1, encode_generation(1)),
        )
        assert ("t", 1) in first["c1"]
        assert ("t", 2) in first["c2"]
        assert set().union(*first.values()) == flat(topics) - {("t", 0)}
        told = {
            member: subscription(3, ["t"], " ".join(f"{t}-{p}" for t, p in mine), 2, encode_generation(2))
            for member, mine in first.items()
        }
        second = assign_by_hand(assignor, topics, **told)
        assert all(mine <= second[member] for member, mine in first.items())
        assert set().union(*second.values()) == flat(topics)


def test_member_data_with_inconsistent_data() -> None:
    """Below v2 the generation stands in the user data; the partitions always stand in the subscription."""
    sent = subscription(1, ["t"], "t-0", NO_GENERATION, encode_generation(1))
    assert as_read(CooperativeStickyAssignor, sent) == (parse("t-0"), 1, True)


@pytest.mark.parametrize("told", [0, 1], ids=["higher generation", "equal generation"])
def test_member_data_with_empty_partitions_and_generation(told: int) -> None:
    """A subscription that owns nothing means that: from v2 on its own generation counts."""
    sent = subscription(3, ["t"], "", 1, encode_generation(told))
    assert as_read(CooperativeStickyAssignor, sent) == ({}, 1, True)


@every_planner
def test_assignor_with_old_version_subscriptions(planner: str) -> None:
    assert assign_by_hand(
        CooperativeStickyAssignor(planner=PLANNERS[planner]),
        {"t": range(3)},
        c1=subscription(1, ["t"], "t-0", NO_GENERATION, encode_generation(1)),
        c2=subscription(1, ["t"], "t-1", NO_GENERATION, encode_generation(1)),
        c3=subscription(2, ["t"], "", 1, encode_generation(1)),
    ) == {"c1": {("t", 0)}, "c2": {("t", 1)}, "c3": {("t", 2)}}


@rack_aware
def test_uniform_subscription_transfer_ownership_list_is_right(planner: str) -> None:
    """Each member has one partition of its own rack and one of the other's: these two change hands."""
    placed = Placed(
        topics={"t1": 4}, replicas=1, brokers=("a", "b"), members=("a", "b"), wanted=[("t1",), ("t1",)]
    )
    group = placed.group(("t1-0 t1-1", "t1-2 t1-3"), holds=True)
    plan = PLANNERS[planner](group)
    assert plan.assignments() == {"consumer0": parse("t1-0 t1-2"), "consumer1": parse("t1-1 t1-3")}
    assert awaited_holders(plan).tolist() == [[1, 0], [2, 1]]
    assert hand_over(plan).assignments() == {"consumer0": parse("t1-0"), "consumer1": parse("t1-3")}
    told = placed.group(("t1-0", "t1-3"), holds=True)
    assert PLANNERS[planner](told).assignments() == plan.assignments()


def test_data_of_an_eager_member_is_a_wish() -> None:
    """Kafka's class has no such members: ours rebalances eagerly beside an eager strategy."""
    sent = subscription(3, ["t"], "", 4, encode_sticky(parse("t-0 t-1"), 3))
    assert as_read(CooperativeStickyAssignor, sent) == (parse("t-0 t-1"), 3, False)
