"""Apache Kafka's AbstractStickyAssignorTest, as scenarios for our planners.

Kafka runs these for both of its sticky classes; here each runs eagerly and cooperatively. Where Kafka's tests
pin one of several plans that are as good, `exact` makes that plan. One pins what a greedy search finds, and
is a bound here: testRackAwareAssignmentWithNonEqualSubscription. Most tests are in two tables, by Kafka's
names; the others are called as Kafka's, in snake case. What differs:

    testMemberData                      by class: in test_kafka_sticky.py
    testOwnedPartitionsAreInvalidated-
    ForConsumerWithNoGeneration         a case of the one ...WithStaleGeneration
    testLargeAssignment...,             in tests/oracle/test_kafka_large_groups.py; sizes are Kafka's, which
    ...NotTimeout,                      only wants them to end: here the plans are judged
    ...RandomSubscriptionsAndChanges
    testRackAwareAssignment...          for `exact`, which looks at racks; preferRackAwareLogic, by which
                                        its tests force its path for racks, has no counterpart
"""

from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple

import pytest

from kafka_assignors._model.group import NO_GENERATION
from kafka_assignors.planners import hand_over, plan_exact
from tests.support.kafka_scenarios import (
    Begin,
    Partition,
    Placed,
    Story,
    assert_best_balance,
    assert_no_single_move_helps,
    by_number,
    cost,
    every_way,
    flat,
    parse,
    rack_mismatches,
    sizes_by_topic,
    stories,
)


class Once(NamedTuple):
    """A group that rebalances once, and what Kafka's test pins of that.

    Members subscribe to topics, and claim partitions as of a generation. `owned` is what some of them get;
    `bound` a plan that is as good; `changing` what changes hands.
    """

    topics: dict[str, int]
    members: dict[str, tuple[str, str, int]]
    owned: dict[str, str] = {}  # noqa: RUF012 - never changed
    loads: list[int] | None = None
    bound: dict[str, str] | None = None
    changing: dict[Partition, str] = {}  # noqa: RUF012 - never changed


NEW = NO_GENERATION

ONCE = {
    "OneConsumerNoTopic": Once({}, {"c": ("", "", NEW)}, {"c": ""}),
    "OneConsumerNonexistentTopic": Once({}, {"c": ("t", "", NEW)}, {"c": ""}),
    "OneConsumerNonexistentTopic, without partitions": Once({"t": 0}, {"c": ("t", "", NEW)}, {"c": ""}),
    "OneConsumerOneTopic": Once({"t": 3}, {"c": ("t", "", NEW)}, {"c": "t-0 t-1 t-2"}),
    "OnlyAssignsPartitionsFromSubscribedTopics, the other is gone": Once(
        {"t": 2}, {"c": ("t", "t-0 t-1 other-0 other-1", 1)}, {"c": "t-0 t-1"}
    ),
    "OnlyAssignsPartitionsFromSubscribedTopics": Once(
        {"t": 2, "other": 2}, {"c": ("t", "t-0 t-1 other-0 other-1", 1)}, {"c": "t-0 t-1"}
    ),
    "OneConsumerMultipleTopics": Once({"t1": 1, "t2": 2}, {"c": ("t1 t2", "", NEW)}, {"c": "t1-0 t2-0 t2-1"}),
    "TwoConsumersOneTopicOnePartition": Once(
        {"t": 1}, {"c1": ("t", "", NEW), "c2": ("t", "", NEW)}, loads=[0, 1]
    ),
    "TwoConsumersOneTopicTwoPartitions": Once(
        {"t": 2}, {"c1": ("t", "", NEW), "c2": ("t", "", NEW)}, {"c1": "t-0", "c2": "t-1"}
    ),
    "MultipleConsumersMixedTopicSubscriptions": Once(
        {"t1": 3, "t2": 2},
        {"c1": ("t1", "", NEW), "c2": ("t1 t2", "", NEW), "c3": ("t1", "", NEW)},
        {"c2": "t2-0 t2-1"},
        loads=[1, 2, 2],
        bound={"c1": "t1-0 t1-2", "c2": "t2-0 t2-1", "c3": "t1-1"},
    ),
    "TwoConsumersTwoTopicsSixPartitions": Once(
        {"t1": 3, "t2": 3},
        {"c1": ("t1 t2", "", NEW), "c2": ("t1 t2", "", NEW)},
        {"c1": "t1-0 t1-2 t2-1", "c2": "t1-1 t2-0 t2-2"},
    ),
    "ConsumerOwningMinQuotaExpectedMaxQuota": Once(
        {"t1": 2, "t2": 3},
        {"c1": ("t1 t2", "t1-0 t2-1", 1), "c2": ("t1 t2", "t1-1 t2-2", 1)},
        {"c1": "t1-0 t2-0 t2-1", "c2": "t1-1 t2-2"},
    ),
    "AllConsumersAreUnderMinQuota": Once(
        {"t1": 2, "t2": 3},
        {"c1": ("t1 t2", "t1-0", 1), "c2": ("t1 t2", "t1-1", 1), "c3": ("t1 t2", "", NEW)},
        loads=[1, 2, 2],
        bound={"c1": "t1-0 t2-1", "c2": "t1-1 t2-2", "c3": "t2-0"},
    ),
    # Round robin leaves c3 without any: it is passed over in t2 and t4, and then its turn is gone.
    "PoorRoundRobinAssignmentScenario": Once(
        {"t1": 2, "t2": 1, "t3": 2, "t4": 1, "t5": 2},
        {
            **dict.fromkeys(("c1", "c4"), ("t1 t2 t3 t4 t5", "", NEW)),
            **dict.fromkeys(("c2", "c3"), ("t1 t3 t5", "", NEW)),
        },
        loads=[2, 2, 2, 2],
    ),
    "AssignmentUpdatedForDeletedTopic": Once(
        {"t1": 1, "t3": 100},
        {"c": ("t1 t2 t3", "", NEW)},
        {"c": " ".join(["t1-0", *(f"t3-{number}" for number in range(100))])},
    ),
    "AllConsumersReachExpectedQuotaAndAreConsideredFilled": Once(
        {"t": 4},
        {"c1": ("t", "t-0 t-1", 1), "c2": ("t", "t-2", 1), "c3": ("t", "", NEW)},
        {"c1": "t-0 t-1", "c2": "t-2", "c3": "t-3"},
    ),
    **{
        f"OwnedPartitionsAreInvalidatedForConsumerWith{which}Generation": Once(
            {"t": 3, "t2": 3},
            {"c1": ("t t2", "t-0 t-2 t2-1", 10), "c2": ("t t2", "t-0 t-2 t2-1", stale)},
            {"c1": "t-0 t-2 t2-1", "c2": "t-1 t2-0 t2-2"},
        )
        for which, stale in (("Stale", 9), ("No", NEW))
    },
    "PartitionsTransferringOwnershipIncludeThePartitionClaimedByMultipleConsumersInSameGeneration": Once(
        {"t": 3},
        {"c1": ("t", "t-0 t-1", 1), "c2": ("t", "t-0 t-2", 1), "c3": ("t", "", 1)},
        {"c1": "t-1", "c2": "t-2", "c3": "t-0"},
        changing={("t", 0): "c3"},
    ),
    "EnsurePartitionsAssignedToHighestGeneration": Once(
        {"t": 3, "t2": 3, "t3": 3},
        {
            "c1": ("t t2 t3", "t-0 t2-0 t3-0", 10),
            "c2": ("t t2 t3", "t-1 t2-1 t3-1", 9),
            "c3": ("t t2 t3", "t2-1 t3-0 t3-2", 8),
        },
        {"c1": "t-0 t2-0 t3-0", "c2": "t-1 t2-1 t3-1", "c3": "t-2 t2-2 t3-2"},
    ),
    # Claims that nobody contests count, however old they are.
    "NoReassignmentOnCurrentMembers": Once(
        {"t": 3, "t1": 3, "t2": 3, "t3": 3},
        {
            "c1": ("t t1 t2 t3", "", NEW),
            "c2": ("t t1 t2 t3", "t-0 t2-0 t1-0", 9),
            "c3": ("t t1 t2 t3", "t3-2 t2-2 t1-1", 8),
            "c4": ("t t1 t2 t3", "t3-1 t-1 t-2", 7),
        },
        {
            "c1": "t1-2 t2-1 t3-0",
            "c2": "t-0 t2-0 t1-0",
            "c3": "t3-2 t2-2 t1-1",
            "c4": "t3-1 t-1 t-2",
        },
    ),
    # Of a stale member's claims those are lost that a newer member claims, the others are not.
    "OwnedPartitionsAreInvalidatedForConsumerWithMultipleGeneration": Once(
        {"t": 3, "t2": 3},
        {"c1": ("t t2", "t-0 t2-1 t-1", 10), "c2": ("t t2", "t-0 t2-1 t2-2", 8)},
        {"c1": "t-0 t-1 t2-1", "c2": "t-2 t2-0 t2-2"},
    ),
}
"""By the names of Kafka's tests, without test."""


@every_way
@pytest.mark.parametrize("name", ONCE)
def test_a_group_that_rebalances_once(begin: Begin, name: str) -> None:
    scenario = ONCE[name]
    story: Story = begin(dict(scenario.topics))
    for member, (topics, claims, generation) in scenario.members.items():
        story.claim(member, topics.split(), claims, generation)
    owned = story.rebalance()
    assert {member: owned[member] for member in scenario.owned} == {
        member: flat(parse(mine)) for member, mine in scenario.owned.items()
    }
    assert scenario.loads in (None, story.loads)
    if scenario.bound is not None:
        story.assert_no_worse_than(scenario.bound)
    assert story.changing_hands == scenario.changing
    assert story.rounds == (2 if story.cooperative and scenario.changing else 1)


@every_way
def test_max_quota_consumer_more_than_num_expected_max_capacity_members(begin: Begin) -> None:
    """Two members have two partitions, but only one may: by hash map, or the first one in `kip54`."""
    story: Story = begin({"topic1": 2, "topic2": 2})
    topics = ["topic1", "topic2"]
    story.claim("consumer1", topics, "topic1-0 topic2-0", 1)
    story.claim("consumer2", topics, "topic1-1 topic2-1", 1)
    story.join("consumer3", *topics)
    pinned = {"consumer1": "topic1-0", "consumer2": "topic1-1 topic2-1", "consumer3": "topic2-0"}
    first = {"consumer1": "topic1-0 topic2-0", "consumer2": "topic1-1", "consumer3": "topic2-1"}
    expected = pinned if story.planner == "exact" else first
    assert story.rebalance() == {member: flat(parse(mine)) for member, mine in expected.items()}
    moved = 0 if story.planner == "exact" else 1
    assert story.changing_hands == {("topic2", moved): "consumer3"}
    story.assert_no_worse_than(pinned)


class Then(NamedTuple):
    """A rebalance of members with these subscriptions, and what Kafka's test wants of it.

    `topics` are other ones than before. `loads` are ascending, `owned` is what some members get, `moved` what
    changes hands or how much. `anew` is whether all have lost their memory.
    """

    members: dict[str, str]
    loads: list[int] | None = None
    topics: dict[str, int] | None = None
    owned: dict[str, str] = {}  # noqa: RUF012 - never changed
    moved: int | str = 0
    by_topic: dict[str, int] | None = None
    anew: bool = False


def numbered(count: int, topics: str = "t", *, without: int = 0) -> dict[str, str]:
    """Members with one subscription."""
    return {f"c{one:02}": topics for one in range(1, count + 1) if one != without}


TRIANGLE = {f"c{one:02}": " ".join(f"t{topic:02}" for topic in range(1, one + 1)) for one in range(1, 20)}
FOURTEEN = {f"t{one:02}": one for one in range(1, 15)}
NOT_C1 = {"c2": "t", "c3": "t", "c4": "t"}
BOTH = {"c1": "t1 t2", "c2": "t1 t2", "c3": "t1 t2", "c4": "t1 t2"}
LAST_TWO = {"c3": "t1 t2", "c4": "t1 t2"}
TWO = {"c1": "t", "c2": "t"}

LIVES: dict[str, tuple[Any, ...]] = {
    "AddRemoveConsumerOneTopic": (
        {"t": 3},
        Then({"c1": "t"}, owned={"c1": "t-0 t-1 t-2"}),
        Then(TWO, owned={"c1": "t-0 t-1", "c2": "t-2"}, moved="t-2"),
        Then({"c2": "t"}, owned={"c2": "t-0 t-1 t-2"}),
    ),
    # Not only the loads stay even, each topic is spread evenly too (KAFKA-16277).
    "TopicBalanceAfterReassignment": (
        {"t1": 12, "t2": 12},
        Then({"c1": "t1 t2"}, by_topic={"t1": 12, "t2": 12}),
        Then({"c1": "t1 t2", "c2": "t1 t2"}, by_topic={"t1": 6, "t2": 6}, moved=12),
        Then(BOTH, by_topic={"t1": 3, "t2": 3}, moved=12),
        Then(LAST_TWO, by_topic={"t1": 6, "t2": 6}),
    ),
    "AddRemoveTwoConsumersTwoTopics": (
        {"t1": 3, "t2": 4},
        Then({"c1": "t1 t2", "c2": "t1 t2"}, owned={"c1": "t1-0 t1-2 t2-1 t2-3", "c2": "t1-1 t2-0 t2-2"}),
        Then(
            BOTH,
            owned={"c1": "t1-0 t2-1", "c2": "t1-1 t2-0", "c3": "t1-2 t2-3", "c4": "t2-2"},
            moved="t1-2 t2-2 t2-3",
        ),
        Then(LAST_TWO, [3, 4]),
    ),
    "AddRemoveTopicTwoConsumers": (
        {"t": 3},
        Then(TWO, [1, 2]),
        Then({"c1": "t t2", "c2": "t t2"}, [3, 3], {"t": 3, "t2": 3}),
        Then({"c1": "t2", "c2": "t2"}, [1, 2], {"t2": 3}),
    ),
    # Topic n has n partitions, member n topics 1 to n; in Kafka's test a member leaves that never was.
    "ReassignmentAfterOneConsumerLeaves": (
        {f"t{number:02}": number for number in range(1, 20)},
        Then(TRIANGLE),
        Then({name: topics for name, topics in TRIANGLE.items() if name != "c10"}),
    ),
    "ReassignmentAfterOneConsumerAdded": (
        {"t": 20},
        Then(numbered(9)),
        Then(numbered(10), [2] * 10, anew=True),  # as in Kafka's test, nobody remembers anything
    ),
    "ReassignmentAfterOneConsumerAdded, with members that remember": (
        {"t": 20},
        Then(numbered(9), [2] * 7 + [3] * 2),
        Then(numbered(10), [2] * 10, moved=2),
    ),
    "SameSubscriptions": (
        FOURTEEN,
        Then(numbered(8, " ".join(FOURTEEN)), [13] * 7 + [14]),
        Then(numbered(8, " ".join(FOURTEEN), without=5), [15] * 7),
    ),
    "NewSubscription": (
        {"t1": 1, "t2": 1, "t3": 1, "t4": 1},
        Then({"c0": "", "c1": "t1", "c2": "t2 t3 t4"}, [0, 1, 3]),
        Then({"c0": "t1", "c1": "t1", "c2": "t2 t3 t4"}, [0, 1, 3], owned={"c1": "t1-0"}),
    ),
    "Stickiness": ({"t": 3}, Then({"c1": "t", **NOT_C1}, [0, 1, 1, 1]), Then(NOT_C1, [1, 1, 1])),
    "NoExceptionThrownWhenOnlySubscribedTopicDeleted": (
        {"t": 3},
        Then({"c": "t"}),
        Then({"c": "t"}, [0], {}),
    ),
}
"""By the names of Kafka's tests, without test: the sizes of topics, and what follows."""


@every_way
@pytest.mark.parametrize("name", LIVES)
def test_a_group_from_rebalance_to_rebalance(begin: Begin, name: str) -> None:
    topics, *life = LIVES[name]
    story: Story = begin(dict(topics))
    before: dict[str, set[Partition]] = {}
    for then in life:
        story.topics = dict(story.topics if then.topics is None else then.topics)
        stay = () if then.anew else [one for one in then.members if one in before]
        story.members = {member: story.members[member] for member in stay}
        for member, wanted in then.members.items():
            (story.subscribe if member in story.members else story.join)(member, *wanted.split())
        after = story.rebalance()
        assert then.loads in (None, story.loads)
        assert {member: after[member] for member in then.owned} == {
            member: flat(parse(mine)) for member, mine in then.owned.items()
        }
        assert then.by_topic is None or [*map(sizes_by_topic, after.values())] == [then.by_topic] * len(after)
        moved = {*story.changing_hands}
        assert then.moved == len(moved) if isinstance(then.moved, int) else flat(parse(then.moved)) == moved
        if len(then.owned) == len(after):
            story.assert_no_worse_than(then.owned)
        for member in stay:
            had = {one for one in before[member] if one[0] in story.topics}
            assert had <= after[member] or had > after[member]
        before = after


@stories(racks=("none",))
@pytest.mark.parametrize("generations", list(permutations((1, 2, 3))))
def test_subscription_not_equal_and_assign_same_partition_with_3_generation(
    begin: Begin, generations: tuple[int, int, int]
) -> None:
    """Three members claim t-2, each in another generation: the newest claim counts."""
    story: Story = begin({"t": 6, "t1": 1})
    claims = {"c1": "t-0 t-2", "c2": "t-1 t-2 t-3", "c3": "t-2 t-4 t-5"}
    for (member, mine), generation in zip(claims.items(), generations, strict=True):
        story.claim(member, ["t"], mine, generation)
    story.claim("c4", ["t1"], "t1-0", 2)
    owned = story.rebalance()
    assert {member: len(mine) for member, mine in owned.items()} == {"c1": 2, "c2": 2, "c3": 2, "c4": 1}
    # Who claims three and is the newest has one too many.
    newest = max(zip(generations, claims, strict=True))[1]
    assert story.moves == (newest != "c1")


@every_way
def test_move_existing_assignments(begin: Begin) -> None:
    """Loads of 1, 2 and 3 that no single move evens out, but a chain of two does."""
    story: Story = begin({f"t{number}": 1 for number in range(1, 7)})
    story.claim("c1", ["t1", "t2"], "t1-0", 1)
    story.claim("c2", ["t1", "t2", "t3", "t4"], "t2-0 t3-0", 1)
    story.claim("c3", ["t2", "t3", "t4", "t5", "t6"], "t4-0 t5-0 t6-0", 1)
    story.rebalance()
    if story.planner == "exact":
        assert story.loads == [2, 2, 2]
        assert story.moves == 2
    else:
        assert story.loads == [1, 2, 3]
        assert story.moves == 0


SIZES = {"t1": 6, "t2": 7, "t3": 2}
ALL = ("t1", "t2", "t3")
ABC = ("a", "b", "c")
UNKNOWN = (None, None, None)

WHERE_RACKS_CANNOT_MATTER = [
    pytest.param(3, UNKNOWN, ABC, id="brokers tell no rack"),
    pytest.param(3, ABC, UNKNOWN, id="members tell no rack"),
    pytest.param(3, ABC, ABC, id="all in all racks"),
    pytest.param(4, ("a", "b", "c", "d"), ABC, id="all in all racks and one more"),
    pytest.param(3, ABC, ("d", "e", "f"), id="members elsewhere"),
    pytest.param(3, ABC, (None, "e", "f"), id="members elsewhere or unknown"),
]

OWNED = ("t1-0 t1-1 t1-2 t1-3 t1-4", "t1-5 t2-0 t2-1 t2-2 t2-3", "t2-4 t2-5 t2-6 t3-0 t3-1")
"""Blocks that do not look at racks, which Kafka lets members own."""

EQUAL = ("t1-0 t1-3 t2-0 t2-3 t2-6", "t1-1 t1-4 t2-1 t2-4 t3-0", "t1-2 t1-5 t2-2 t2-5 t3-1")
UNEQUAL = ("t1-5 t2-0 t2-2 t2-4 t2-6", "t1-3 t2-1 t2-3 t2-5 t3-0", "t1-0 t1-1 t1-2 t1-4 t3-1")

ALIKE = Placed(topics=SIZES, replicas=1, brokers=ABC, members=ABC, wanted=[ALL] * 3)
UNLIKE = replace(ALIKE, wanted=(ALL, ALL, ("t1", "t3")))


def judge(placed: Placed, pinned: tuple[str, ...], owned: tuple[str, ...] = ()) -> int:
    """Plan, eagerly and cooperatively, and compare with the plan that Kafka's test pins.

    Returns:
        The number of partitions outside their members' racks.
    """
    group = placed.group(owned)
    plan = plan_exact(group)
    assert_best_balance(plan)
    assert_no_single_move_helps(plan)
    assert cost(group, plan.assignments()) <= cost(group, by_number(pinned))

    sent = hand_over(plan_exact(placed.group(owned, holds=True)))
    told = [
        " ".join(f"{t}-{p}" for t, ids in mine.items() for p in ids) for mine in sent.assignments().values()
    ]
    second = placed.group(tuple(told), holds=True)
    settled = plan_exact(second)
    assert hand_over(settled) is settled
    assert settled.moves == 0
    assert cost(second, settled.assignments())[:2] == cost(group, plan.assignments())[:2]
    return rack_mismatches(group, plan.assignments()) if group.replica_racks else 0


@pytest.mark.parametrize(("replicas", "brokers", "members"), WHERE_RACKS_CANNOT_MATTER)
def test_rack_aware_assignment_with_uniform_subscription_where_racks_cannot_matter(
    replicas: int, brokers: tuple[str | None, ...], members: tuple[str | None, ...]
) -> None:
    placed = replace(ALIKE, replicas=replicas, brokers=brokers, members=members)
    assert plan_exact(placed.group()).assignments() == by_number(EQUAL)
    assert plan_exact(placed.group(EQUAL)).assignments() == by_number(EQUAL)
    judge(placed, EQUAL)


@pytest.mark.parametrize(
    ("replicas", "brokers", "mismatches"),
    [(1, ABC, 0), (2, ABC, 0), (3, ("a", "b"), 5)],
    ids=["one replica", "two replicas", "one member in a rack without brokers"],
)
def test_rack_aware_assignment_with_uniform_subscription(
    replicas: int, brokers: tuple[str, ...], mismatches: int
) -> None:
    placed = replace(ALIKE, replicas=replicas, brokers=brokers)
    assert judge(placed, EQUAL) == mismatches
    assert judge(placed, EQUAL, EQUAL) == mismatches
    assert plan_exact(placed.group(EQUAL)).assignments() == by_number(EQUAL)


def test_rack_aware_assignment_with_uniform_subscription_comes_before_stickiness() -> None:
    assert judge(ALIKE, EQUAL, OWNED) == 0
    assert plan_exact(ALIKE.group(OWNED)).assignments() == by_number(EQUAL)


@pytest.mark.parametrize(("replicas", "brokers", "members"), WHERE_RACKS_CANNOT_MATTER)
def test_rack_aware_assignment_with_non_equal_subscription_where_racks_cannot_matter(
    replicas: int, brokers: tuple[str | None, ...], members: tuple[str | None, ...]
) -> None:
    placed = replace(UNLIKE, replicas=replicas, brokers=brokers, members=members)
    without = replace(UNLIKE, brokers=UNKNOWN, members=UNKNOWN)
    for owned in ((), UNEQUAL, OWNED):
        judge(placed, UNEQUAL, owned)
        plan = plan_exact(placed.group(owned))
        assert plan.assignments() == plan_exact(without.group(owned)).assignments()
    assert plan_exact(placed.group(UNEQUAL)).assignments() == by_number(UNEQUAL)


@pytest.mark.parametrize(
    ("replicas", "brokers", "pinned", "mismatches"),
    [
        (1, ABC, ("t1-3 t2-0 t2-2 t2-3 t2-6", "t1-4 t2-1 t2-4 t2-5 t3-0", "t1-0 t1-1 t1-2 t1-5 t3-1"), 4),
        (2, ABC, ("t1-3 t2-0 t2-2 t2-5 t2-6", "t1-0 t2-1 t2-3 t2-4 t3-0", "t1-1 t1-2 t1-4 t1-5 t3-1"), 0),
        (3, ("a", "b"), UNEQUAL, 5),
    ],
    ids=["one replica", "two replicas", "one member in a rack without brokers"],
)
def test_rack_aware_assignment_with_non_equal_subscription(
    replicas: int, brokers: tuple[str, ...], pinned: tuple[str, ...], mismatches: int
) -> None:
    """Kafka calls its placement best effort, but fewer partitions outside their racks are not possible here.

    With one replica two partitions of t2 lie in rack c, whose member does not want them; and it needs five
    partitions, of which three lie there.
    """
    placed = replace(UNLIKE, replicas=replicas, brokers=brokers)
    assert rack_mismatches(placed.group(), by_number(pinned)) == mismatches
    for owned in ((), pinned, OWNED):
        assert judge(placed, pinned, owned) == mismatches


def test_rack_aware_assignment_with_non_equal_subscription_in_two_rounds() -> None:
    """The plans of both rounds as Kafka's cooperative class makes them, each a bound for its round."""
    pinned = ("t1-3 t2-0 t2-2 t2-3 t2-6", "t1-4 t2-1 t2-4 t2-5 t3-0", "t1-0 t1-1 t1-2 t1-5 t3-1")
    judge(UNLIKE, pinned, OWNED)
    judge(UNLIKE, pinned, ("t1-3", "t2-1", "t3-1"))

    settled = ("t1-2 t1-3 t1-4 t2-4 t2-5", "t2-0 t2-1 t2-2 t2-3 t2-6", "t1-0 t1-1 t1-5 t3-0 t3-1")
    everywhere = replace(UNLIKE, replicas=3)
    judge(everywhere, settled, OWNED)
    judge(everywhere, settled, ("t1-2 t1-3 t1-4", "t2-0 t2-1 t2-2 t2-3", "t3-0 t3-1"))
