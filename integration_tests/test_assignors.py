"""Groups of real consumers on a real Kafka, assigned by us, as members come, go, crash, freeze and return.

Every `wait_stable` compares the members' own word with the broker's DescribeGroups, and wants every
partition owned as the strategy means it. What kafka-python's own classes do in the same groups follows.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor as StockCooperativeSticky
from kafka.coordinator.assignors.range import RangePartitionAssignor

from integration_tests.support.patience import QUICK
from integration_tests.support.scene import Scene
from kafka_assignors import (
    BroadcastAssignor,
    CooperativeStickyAssignor,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors._timelines.events import AssignmentReceived, Led
from kafka_assignors.testing import ConsumerGroup
from kafka_assignors.testing._groups.stability import StableGroup

if TYPE_CHECKING:
    from kafka_assignors.testing._groups.specs import Sharing

EXCLUSIVE = [RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor, RandomAssignor]
STICKY = [StickyAssignor, CooperativeStickyAssignor]

MakeGroup = Callable[..., ConsumerGroup]
MakeTopic = Callable[..., str]


def sizes(stable: StableGroup) -> dict[str, int]:
    return {member: len(partitions) for member, partitions in stable.assignments.items()}


def kept(before: StableGroup, after: StableGroup) -> int:
    """How many partitions have the owner that they had."""
    return sum(
        len(partitions & after.assignments.get(member, frozenset()))
        for member, partitions in before.assignments.items()
    )


def never_two_owners(group: ConsumerGroup) -> bool:
    return not group.timeline.double_assigned() and not group.timeline.overlaps("generation")


@pytest.mark.parametrize("assignor", EXCLUSIVE)
def test_a_group_lives_through_joins_a_crash_and_a_leave_and_consumes_everything(
    assignor: Any, scene: Scene
) -> None:
    group = scene.group([assignor])
    with scene.load() as load:
        for name in "abc":
            group.join(name, settings=QUICK if name == "b" else None)
        three = group.wait_stable()
        group.join("d")
        four = group.wait_stable()
        group.members["b"].crash()
        group.wait_stable()
        group.members["c"].leave()
        two = group.wait_stable()
        load.stop()
        group.wait_consumed(load)
    assert two.protocol == assignor.name
    assert never_two_owners(group)
    # Nobody is told that it has a partition before the last owner was told that it has not.
    assert group.timeline.overlaps() == ()
    if assignor is not RandomAssignor:
        assert sorted(sizes(three).values()) == [2, 2, 2]
        assert sorted(sizes(four).values()) == [1, 1, 2, 2]
        assert sorted(sizes(two).values()) == [3, 3]
    if assignor in STICKY:
        assert kept(three, four) == 5
        assert two.assignments["a"] >= four.assignments["a"]
        assert two.assignments["d"] >= four.assignments["d"]


def test_broadcast_gives_everything_to_everybody(topic_factory: MakeTopic, consumer_group: MakeGroup) -> None:
    topics = [topic_factory(3), topic_factory(2)]
    group = consumer_group(topics, [BroadcastAssignor])
    group.join("a")
    group.join("b", topics=[topics[0]])
    assert sizes(group.wait_stable(ownership="broadcast")) == {"a": 5, "b": 3}
    group.join("c")
    assert sizes(group.wait_stable(ownership="broadcast")) == {"a": 5, "b": 3, "c": 5}
    group.members["a"].leave()
    assert sizes(group.wait_stable(ownership="broadcast")) == {"b": 3, "c": 5}


@pytest.mark.parametrize("assignor", [*EXCLUSIVE, BroadcastAssignor])
def test_topics_that_only_followers_subscribe_to_are_assigned_in_the_first_generation(
    assignor: Any, topic_factory: MakeTopic, consumer_group: MakeGroup
) -> None:
    """The leader has no metadata of them when it first plans. Stock classes hand out nothing then."""
    topics = [topic_factory(3), topic_factory(2)]
    ownership: Sharing = "broadcast" if assignor is BroadcastAssignor else "exclusive"
    group = consumer_group(topics[:1], [assignor])
    group.join("leader")
    group.wait_stable()
    group.join("follower", topics=topics[1:])
    stable = group.wait_stable(ownership=ownership)
    assert sizes(stable) == {"leader": 3, "follower": 2}
    assert group.timeline.of(Led)[-1].member == "leader"
    received = [event.partitions for event in group.timeline.of(AssignmentReceived, member="follower")]
    assert received == [stable.assignments["follower"]]
    # Asked again for the metadata, the coordinator answered with the same generation.
    plans = [event for event in group.timeline.of(Led) if event.error is None]
    assert [event.generation for event in plans] == [1, stable.generation]
    assert {event.generation for event in group.timeline.of(Led)} == {1, stable.generation}


def all_members_lost_at_once(
    assignor: Any, topic_factory: MakeTopic, consumer_group: MakeGroup
) -> tuple[ConsumerGroup, int]:
    """Two members lose their membership and return, and a third one joins, all in one round.

    They share six partitions, and freeze until the group has lost both. A member with a topic of its own
    then holds the round open: the coordinator waits for it, frozen as it is, until the others have
    asked to join. It subscribes by a pattern, for which it knows all topics when it leads.

    Returns:
        The group, and how many of the six partitions that one round gave to somebody.
    """
    # Polls that outlast sessions and the round: a stock leader whose poll ends in it may forget its join.
    session = {"session_timeout_ms": 4000}
    group = consumer_group(topic_factory(6), [assignor], settings=session, poll_ms=20_000)
    lost = [group.join(name) for name in "ab"]
    longer = {"session_timeout_ms": 45_000}
    doorstop = group.join("doorstop", topics=re.compile(topic_factory(1)), settings=longer)
    assert {len(owned) for name, owned in group.wait_stable().assignments.items() if name in "ab"} == {3}
    for member in lost:
        member.freeze()
    group.wait_stable()
    doorstop.freeze()
    before = doorstop.generation
    group.join("new")
    for member in lost:
        member.thaw()
    group.wait_for(lambda: len(group.describe().assignments) == 4, what="all to ask to join")
    doorstop.thaw()
    returned = [*lost, group.members["new"]]
    group.wait_for(
        lambda: all(member.generation > before for member in (*returned, doorstop)), what="all to be back"
    )
    first = next(one for one in group.timeline.rebalances if one.generation > before)
    assert first.assignments.keys() == {"a", "b", "new", "doorstop"}
    return group, sum(len(first.assignments[member.name]) for member in returned)


@pytest.mark.parametrize("assignor", STICKY)
def test_no_partition_stays_without_an_owner_when_all_members_are_lost_at_once(
    assignor: Any, topic_factory: MakeTopic, consumer_group: MakeGroup
) -> None:
    """All of them may still believe to have what they had, in equal generations."""
    group, given = all_members_lost_at_once(assignor, topic_factory, consumer_group)
    assert given == 6
    assert sizes(group.wait_stable()) == {"a": 2, "b": 2, "new": 2, "doorstop": 1}
    assert never_two_owners(group)


class ClingingAssignor(CooperativeStickyAssignor):
    """Claims to hold all partitions of its topics, whatever it has: what a broken client may do for ever."""

    def metadata(self, topics: Any) -> Any:
        sent = super().metadata(topics)
        entry = type(sent).TopicPartition
        sent.owned_partitions = [entry(topic=topic, partitions=list(range(6))) for topic in sorted(topics)]
        return sent


def test_a_member_with_false_claims_keeps_no_partition_from_an_owner_for_long(scene: Scene) -> None:
    """Nobody lets go of what nobody has, so no round follows by itself: our leader starts it.

    In the end it leaves what is claimed with the claimant: no count of rounds proves a claim false.
    """
    group = scene.group([CooperativeStickyAssignor])
    group.join("leader")
    group.wait_stable()
    group.join("leaver")
    group.wait_stable()
    group.join("clinging", assignors=["integration_tests.test_assignors:ClingingAssignor"])
    assert sizes(group.wait_stable()) == {"leader": 2, "leaver": 2, "clinging": 2}
    group.members["leaver"].leave()
    stable = group.wait_stable()
    assert sizes(stable) == {"leader": 2, "clinging": 4}
    assert {tp.partition for owned in stable.assignments.values() for tp in owned} == set(range(6))
    assert never_two_owners(group)
    assert group.timeline.overlaps() == ()


# kafka-python's own classes


def test_stock_leaders_hand_out_nothing_of_topics_that_only_followers_subscribe_to(
    topic_factory: MakeTopic, consumer_group: MakeGroup
) -> None:
    topics = [topic_factory(3), topic_factory(2)]
    group = consumer_group(topics[:1], [RangePartitionAssignor])
    group.join("leader")
    group.wait_stable()
    group.join("follower", topics=topics[1:])
    stable = group.wait_stable()
    received = [event.partitions for event in group.timeline.of(AssignmentReceived, member="follower")]
    assert {*received[:-1]} == {frozenset()}  # on a laden machine in two generations
    assert received[-1] == stable.assignments["follower"]


def test_stock_cooperative_sticky_leaves_partitions_without_an_owner_when_all_members_are_lost_at_once(
    topic_factory: MakeTopic, consumer_group: MakeGroup
) -> None:
    """They go on claiming what they had, so it is kept from the new one until the group's next change."""
    _, given = all_members_lost_at_once(StockCooperativeSticky, topic_factory, consumer_group)
    assert given == 4
