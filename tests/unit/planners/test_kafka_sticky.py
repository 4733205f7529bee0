"""Apache Kafka's StickyAssignorTest and CooperativeStickyAssignorTest, for our planners and both assignors.

By the names of Kafka's tests, in snake case. test_member_data has those of members' data, and
testDecodeGeneration. AllConsumersHaveOwnedPartitionInvalidated... are planned and over the wire.
verifyValidityAndBalance, which repeats a cooperative rebalance until nothing is revoked any more, is
`Story.rebalance`. The tests of the abstract class are in test_kafka_abstract_sticky.py.
"""

from typing import Any

import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from kafka_assignors import CooperativeStickyAssignor, StickyAssignor
from kafka_assignors._model.group import NO_GENERATION
from kafka_assignors._wire.user_data import encode_generation, encode_sticky
from kafka_assignors.planners import hand_over, plan_exact
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
    stories,
    subscription,
)

eagerly = stories(modes=("eager",))
EQUAL = pytest.mark.parametrize("equal", [True, False], ids=["equal", "unequal"])
NONE = NO_GENERATION


def sticky(version: int, owned: str, generation: int) -> Any:
    """A subscription of this version from Java's StickyAssignor: all of it stands in the user data too."""
    return subscription(version, ["t"], owned, generation, encode_sticky(parse(owned), generation))


def cooperative(owned: str, generation: int) -> Any:
    return subscription(3, ["t"], owned, generation, encode_generation(generation))


@pytest.mark.parametrize(
    ("kind", "version", "owned", "generation", "data", "read"),
    [
        # Version 0 has no owned partitions; Kafka's cooperative class does not support it.
        *(
            (CooperativeStickyAssignor, version, "t1-0 t2-1", 1, encode_generation(1), ("t1-0 t2-1", 1, True))
            for version in (1, 2, 3)
        ),
        *(
            (
                StickyAssignor,
                version,
                "t1-0 t2-1",
                1,
                encode_sticky(parse("t1-0 t2-1"), 1),
                ("t1-0 t2-1", 1, False),
            )
            for version in (0, 1, 2, 3)
        ),
        (CooperativeStickyAssignor, 1, "", NONE, None, ("", NONE, True)),
        # Below v2 the generation stands in the user data; the partitions always stand in the subscription.
        (CooperativeStickyAssignor, 1, "t-0", NONE, encode_generation(1), ("t-0", 1, True)),
        # A subscription that owns nothing means that: from v2 on its own generation counts.
        (CooperativeStickyAssignor, 3, "", 1, encode_generation(0), ("", 1, True)),
        (CooperativeStickyAssignor, 3, "", 1, encode_generation(1), ("", 1, True)),
        # Kafka's class has no such members: ours rebalances eagerly beside an eager strategy.
        (CooperativeStickyAssignor, 3, "", 4, encode_sticky(parse("t-0 t-1"), 3), ("t-0 t-1", 3, False)),
        # What an eager member tells of its past stands in the user data, whatever the subscription says.
        (StickyAssignor, 1, "t-0", 1, encode_sticky(parse("t-1"), 1), ("t-1", 1, False)),
        (StickyAssignor, 3, "", 1, encode_sticky(parse("t1-0 t2-1"), 0), ("t1-0 t2-1", 0, False)),
    ],
)
def test_member_data(
    kind: Any, version: int, owned: str, generation: int, *, data: bytes | None, read: tuple[str, int, bool]
) -> None:
    claims, stated, holds = read
    sent = subscription(version, ["t"], owned, generation, data)
    assert as_read(kind, sent) == (parse(claims), stated, holds)


def test_encode_and_decode_generation() -> None:
    assignor = CooperativeStickyAssignor()
    for generation in (NO_GENERATION, 10):
        if generation != NO_GENERATION:
            assignor.on_assignment(ConsumerProtocolAssignment(1, [], b""), generation)
        told = assignor.metadata({"t"}).user_data
        assert told == encode_generation(generation)
        sent = subscription(1, ["t"], "", NO_GENERATION, told)
        assert as_read(CooperativeStickyAssignor, sent) == ({}, generation, True)


class TestAllConsumersHaveOwnedPartitionInvalidatedWhenClaimedByMultipleConsumersInSameGeneration:
    @stories()
    @pytest.mark.parametrize("partitions", [3, 4])
    def test_planned(self, begin: Begin, partitions: int) -> None:
        """Cooperatively t-0 waits until both have let go of it, whoever gets it; t-3 is free."""
        story = begin({"t": partitions})
        for member, claims in (("c1", "t-0 t-1"), ("c2", "t-0 t-2"), ("c3", "")):
            story.claim(member, ["t"], claims, 1)
        sent = flat_all(hand_over(story.plan()).assignments())
        owned = story.rebalance()
        assert ("t", 1) in sent["c1"] & owned["c1"]
        assert ("t", 2) in sent["c2"] & owned["c2"]
        assert story.loads == [1, 1, partitions - 2]
        assert all(sent[member] <= mine for member, mine in owned.items())
        assert (("t", 0) in set().union(*sent.values())) != story.cooperative
        assert story.rounds == 1 + story.cooperative
        story.assert_no_worse_than({"c1": "t-1" if partitions == 3 else "t-1 t-3", "c2": "t-2", "c3": "t-0"})

    @every_planner
    @pytest.mark.parametrize("partitions", [3, 4])
    @pytest.mark.parametrize("kind", [StickyAssignor, CooperativeStickyAssignor])
    def test_over_the_wire(self, kind: Any, planner: str, partitions: int) -> None:
        assignor, topics = kind(planner=PLANNERS[planner]), {"t": range(partitions)}
        holds = kind is CooperativeStickyAssignor
        claims = {"c1": "t-0 t-1", "c2": "t-0 t-2", "c3": ""}
        told = {name: cooperative(mine, 1) if holds else sticky(3, mine, 1) for name, mine in claims.items()}
        owned = assign_by_hand(assignor, topics, **told)
        assert ("t", 1) in owned["c1"]
        assert ("t", 2) in owned["c2"]
        if holds:
            first = owned
            assert set().union(*first.values()) == flat(topics) - {("t", 0)}
            told = {
                name: cooperative(" ".join(f"{t}-{p}" for t, p in mine), 2) for name, mine in first.items()
            }
            owned = assign_by_hand(assignor, topics, **told)
            assert all(mine <= owned[member] for member, mine in first.items())
        assert set().union(*owned.values()) == flat(topics)


@every_planner
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (StickyAssignor, [sticky(0, "t-0", 1), sticky(1, "t-1", 1), sticky(2, "", 1)]),
        (
            CooperativeStickyAssignor,
            [
                subscription(version, ["t"], owned, generation, encode_generation(1))
                for version, owned, generation in ((1, "t-0", NONE), (1, "t-1", NONE), (2, "", 1))
            ],
        ),
    ],
)
def test_assignor_with_old_version_subscriptions(kind: Any, planner: str, told: list[Any]) -> None:
    assert assign_by_hand(
        kind(planner=PLANNERS[planner]), {"t": range(3)}, **dict(zip(("c1", "c2", "c3"), told, strict=True))
    ) == {"c1": {("t", 0)}, "c2": {("t", 1)}, "c3": {("t", 2)}}


def test_uniform_subscription_transfer_ownership_list_is_right() -> None:
    """Each member has one partition of its own rack and one of the other's: these two change hands."""
    placed = Placed(
        topics={"t1": 4}, replicas=1, brokers=("a", "b"), members=("a", "b"), wanted=[("t1",), ("t1",)]
    )
    group = placed.group(("t1-0 t1-1", "t1-2 t1-3"), holds=True)
    plan = plan_exact(group)
    assert plan.assignments() == {"consumer0": parse("t1-0 t1-2"), "consumer1": parse("t1-1 t1-3")}
    assert awaited_holders(plan).tolist() == [[1, 0], [2, 1]]
    assert hand_over(plan).assignments() == {"consumer0": parse("t1-0"), "consumer1": parse("t1-3")}
    told = placed.group(("t1-0", "t1-3"), holds=True)
    assert plan_exact(told).assignments() == plan.assignments()


@eagerly
@EQUAL
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
@EQUAL
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
@EQUAL
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
        c1=sticky(3, "t-0 t-2", 1),
        c2=subscription(1, ["t"], "", NO_GENERATION, encode_sticky(parse("t-1"), 0)[:-4]),
        c3=subscription(3, ["t"], "", NO_GENERATION, None),
    )
    assert owned["c1"] < flat(parse("t-0 t-2"))
    assert owned["c2"] == flat(parse("t-1"))
    assert [len(mine) for mine in owned.values()] == [1, 1, 1]
