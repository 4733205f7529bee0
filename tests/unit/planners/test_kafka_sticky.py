"""Apache Kafka's StickyAssignorTest, for our planners and `StickyAssignor`.

    testAllConsumersHaveOwnedPartitionInvalidated
    WhenClaimedByMultipleConsumersInSameGeneration
    With(Equal|Unequal)PartitionsPerConsumer        the class of that name, over the wire and planned; Equal
                                                    planned as PartitionsTransferringOwnershipInclude...
    testAssignmentWithMultipleGenerations1, ...2    test_assignment_with_multiple_generations1, ...2
    testAssignmentWithConflictingPreviousGenerations
                                                    test_assignment_with_conflicting_previous_generations
    testSchemaBackwardCompatibility                 test_schema_backward_compatibility
    testMemberDataWithInconsistentData              test_member_data_with_inconsistent_data
    testMemberDataWillHonorUserData                 test_member_data_will_honor_user_data
    testAssignorWithOldVersionSubscriptions         test_assignor_with_old_version_subscriptions
    testMemberData, of the abstract class           test_member_data

Its other tests are those of the abstract class: test_kafka_abstract_sticky.py.
"""

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from kafka_assignors import StickyAssignor
from kafka_assignors._model.group import NO_GENERATION
from kafka_assignors._wire.user_data import encode_sticky
from tests.support.kafka_scenarios import (
    PLANNERS,
    Begin,
    as_read,
    assign_by_hand,
    every_planner,
    flat,
    parse,
    stories,
    subscription,
)

eagerly = stories(modes=("eager",))


def sticky(
    version: int, topics: list[str], owned: str, generation: int, *, user_data: bytes | None = None
) -> Any:
    """A subscription of this version from Java's StickyAssignor: all of it stands in the user data too."""
    if user_data is None:
        user_data = encode_sticky(parse(owned), generation)
    return subscription(version, topics, owned, generation, user_data)


def without_generation(claims: Mapping[str, Collection[int]]) -> bytes:
    """User data from before KIP-341."""
    return encode_sticky(claims, 0)[:-4]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_member_data(version: int) -> None:
    assert as_read(StickyAssignor, sticky(version, ["t"], "t1-0 t2-1", 1)) == (parse("t1-0 t2-1"), 1, False)


class TestAllConsumersHaveOwnedPartitionInvalidatedWhenClaimedByMultipleConsumersInSameGeneration:
    @eagerly
    def test_with_unequal_partitions_per_consumer(self, begin: Begin) -> None:
        story = begin({"t": 4})
        story.claim("c1", ["t"], "t-0 t-1", 1)
        story.claim("c2", ["t"], "t-0 t-2", 1)
        story.claim("c3", ["t"], {}, 1)
        owned = story.rebalance()
        assert ("t", 1) in owned["c1"]
        assert ("t", 2) in owned["c2"]
        assert story.loads == [1, 1, 2]
        story.assert_no_worse_than({"c1": "t-1 t-3", "c2": "t-2", "c3": "t-0"})

    @every_planner
    @pytest.mark.parametrize("partitions", [3, 4])
    def test_over_the_wire(self, planner: str, partitions: int) -> None:
        owned = assign_by_hand(
            StickyAssignor(planner=PLANNERS[planner]),
            {"t": range(partitions)},
            c1=sticky(3, ["t"], "t-0 t-1", 1),
            c2=sticky(3, ["t"], "t-0 t-2", 1),
            c3=sticky(3, ["t"], "", 1),
        )
        assert ("t", 1) in owned["c1"]
        assert ("t", 2) in owned["c2"]
        assert set().union(*owned.values()) == flat({"t": range(partitions)})


@eagerly
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "unequal"])
def test_assignment_with_multiple_generations1(begin: Begin, *, equal: bool) -> None:
    """A member misses a generation and comes back: what others got meanwhile stays with them."""
    story = begin({"t": 6, "t2": 6})
    topics2 = ["t", "t2"] if equal else ["t"]
    story.join("c1", "t", "t2")
    story.join("c2", *topics2)
    story.join("c3", "t", "t2")
    first = story.rebalance()
    assert story.loads == [4, 4, 4]

    story.leave("c3")
    second = story.rebalance()
    assert story.loads == [6, 6]
    assert first["c2"] < second["c2"]
    if equal:
        assert first["c1"] < second["c1"]
        assert second["c2"] & first["c3"]
    else:
        # It has no other topic to fill up from.
        assert second["c2"] == flat({"t": range(6)})

    story.leave("c1")
    story.claim("c3", ["t", "t2"], " ".join(f"{t}-{p}" for t, p in first["c3"]), 1)
    third = story.rebalance()
    assert story.loads == [6, 6]
    assert third["c2"] == second["c2"]


@eagerly
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "unequal"])
def test_assignment_with_multiple_generations2(begin: Begin, *, equal: bool) -> None:
    """Two of three members miss a generation; then all claim what they had last."""
    story = begin({"t": 4, "t2": 4, "t3": 4})
    topics = {"c1": ["t"], "c2": ["t", "t2", "t3"], "c3": ["t", "t2"]}
    if equal:
        topics = {member: ["t", "t2", "t3"] for member in topics}
    for member, mine in topics.items():
        story.join(member, *mine)
    first = story.rebalance()
    assert story.loads == [4, 4, 4]

    story.leave("c1")
    story.leave("c3")
    assert story.rebalance() == {"c2": flat({"t": range(4), "t2": range(4), "t3": range(4)})}

    for member in ("c1", "c3"):
        story.claim(member, topics[member], " ".join(f"{t}-{p}" for t, p in first[member]), 1)
    story.rebalance()
    assert story.loads == [4, 4, 4]
    # The newest claims are those of c2, on everything; it gives away no more than it must.
    assert story.moves == 8


@eagerly
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "unequal"])
def test_assignment_with_conflicting_previous_generations(begin: Begin, *, equal: bool) -> None:
    """Whatever a stale member claims, somebody claims it in a newer generation."""
    story = begin({"t": 4, "t2": 4, "t3": 4})
    everything = ["t", "t2", "t3"]
    claims = {
        "c1": "t-0 t-1 t-2 t2-2 t2-3 t3-0" if equal else "t-0 t-1 t-2 t-3",
        "c2": "t-0 t-1 t2-0 t2-1 t2-2 t2-3",
        "c3": "t-2 t-3 t3-0 t3-1 t3-2 t3-3",
    }
    story.claim("c1", everything if equal else ["t"], claims["c1"], 1)
    story.claim("c2", everything if equal else ["t", "t2"], claims["c2"], 2)
    story.claim("c3", everything, claims["c3"], 2)
    owned = story.rebalance()
    assert story.loads == [4, 4, 4]
    assert owned["c2"] < flat(parse(claims["c2"]))
    assert owned["c3"] < flat(parse(claims["c3"]))
    assert story.moves == 4


@every_planner
def test_schema_backward_compatibility(planner: str) -> None:
    """User data with and without a generation in one group."""
    owned = assign_by_hand(
        StickyAssignor(planner=PLANNERS[planner]),
        {"t": range(3)},
        c1=sticky(3, ["t"], "t-0 t-2", 1),
        c2=sticky(1, ["t"], "", NO_GENERATION, user_data=without_generation(parse("t-1"))),
        c3=subscription(3, ["t"], "", NO_GENERATION, None),
    )
    assert owned["c1"] < flat(parse("t-0 t-2"))
    assert owned["c2"] == flat(parse("t-1"))
    assert [len(mine) for mine in owned.values()] == [1, 1, 1]


def test_member_data_with_inconsistent_data() -> None:
    """What an eager member tells of its past stands in the user data, whatever the subscription says."""
    user_data = encode_sticky(parse("t-1"), 1)
    assert as_read(StickyAssignor, sticky(1, ["t"], "t-0", 1, user_data=user_data)) == (
        parse("t-1"),
        1,
        False,
    )


def test_member_data_will_honor_user_data() -> None:
    user_data = encode_sticky(parse("t1-0 t2-1"), 0)
    assert as_read(StickyAssignor, sticky(3, ["t"], "", 1, user_data=user_data)) == (
        parse("t1-0 t2-1"),
        0,
        False,
    )


@every_planner
def test_assignor_with_old_version_subscriptions(planner: str) -> None:
    assert assign_by_hand(
        StickyAssignor(planner=PLANNERS[planner]),
        {"t": range(3)},
        c1=sticky(0, ["t"], "t-0", 1),
        c2=sticky(1, ["t"], "t-1", 1),
        c3=sticky(2, ["t"], "", 1),
    ) == {"c1": {("t", 0)}, "c2": {("t", 1)}, "c3": {("t", 2)}}
