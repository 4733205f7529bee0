"""The assignors driven by hand: what they send, what they make of what others send."""

from typing import Any

import pytest
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor as StockCooperativeSticky
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as StockSticky
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kafka_assignors import (
    Assignor,
    BroadcastAssignor,
    CooperativeStickyAssignor,
    CopartitionedAssignor,
    Group,
    InvalidPlanError,
    Plan,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors._wire.user_data import encode_sticky
from kafka_assignors.planners._kip54 import plan_kip54
from kafka_assignors.planners._range import plan_range
from kafka_assignors.planners._round_robin import plan_round_robin
from tests.support.by_hand import HandGroup, cluster_of, joined, names, partitions_in
from tests.support.wire import subscription

ALL: list[Any] = [
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    CooperativeStickyAssignor,
    CopartitionedAssignor,
    RandomAssignor,
    BroadcastAssignor,
]
COOPERATIVE = [CooperativeStickyAssignor, CopartitionedAssignor]
STICKY = [StickyAssignor, *COOPERATIVE]


def given_to(assignor: Assignor, partitions: list[tuple[str, list[int]]], generation: int) -> None:
    assignor.on_assignment(ConsumerProtocolAssignment(1, partitions, b""), generation)


def assign(assignor: Assignor, topics: dict[str, Any], *members: Any) -> dict[str, str]:
    assignments = assignor.assign(cluster_of(topics), list(members))
    return names({member: partitions_in(assignment) for member, assignment in assignments.items()})


class TestContract:
    def test_wire_names(self) -> None:
        cooperative = ["cooperative-sticky", "copartitioned"]
        names_of_all = ["range", "roundrobin", "sticky", *cooperative, "random", "broadcast"]
        assert [one.name for one in ALL] == [one().name for one in ALL] == names_of_all

    @pytest.mark.parametrize("assignor", ALL)
    def test_only_those_that_are_made_for_it_can_be_cooperative_and_all_can_be_eager(
        self, assignor: Any
    ) -> None:
        eager = [RebalanceProtocol.EAGER]
        both = [RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER]
        expected = both if assignor in COOPERATIVE else eager
        assert assignor().supported_protocols() == expected

    @pytest.mark.parametrize("assignor", ALL)
    def test_partition_ids_come_from_the_metadata(self, assignor: Any) -> None:
        group = HandGroup({"t": [40, 10, 33, 21]})
        group.join("a", assignor())
        group.join("b", assignor())
        assigned = group.rebalance()
        # By chance one member may have nothing.
        given = {partition for topics in assigned.values() for partition in topics.get("t", [])}
        assert given == {10, 21, 33, 40}

    @pytest.mark.parametrize("assignor", ALL)
    def test_every_member_gets_an_entry_also_without_topics_or_metadata(
        self, assignor: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        group = HandGroup({"t": range(2)})
        group.join("a", assignor(), ["t", "unknown"])
        group.join("b", assignor(), [])
        group.join("c", assignor(), ["unknown"])
        assert names(group.rebalance()) == {"a": "tp0 tp1", "b": "", "c": ""}
        assert "Leaving out topics without metadata: unknown; they are missing, or hidden" in caplog.text


class TestConfiguration:
    @pytest.mark.parametrize("assignor", ALL)
    def test_an_unknown_option_is_an_error(self, assignor: Any) -> None:
        with pytest.raises(TypeError, match="flavour"):
            assignor(flavour="sweet")

    @pytest.mark.parametrize("rack", ["", 5, b"r", "\ud800", "r" * 2**15])
    @pytest.mark.parametrize("assignor", ALL)
    def test_a_rack_must_be_a_name(self, assignor: Any, rack: Any) -> None:
        with pytest.raises(ValueError, match="rack must be a non-empty string"):
            assignor(rack=rack)

    def test_a_planner_may_be_a_function(self) -> None:
        group = HandGroup({"t": range(4)})
        group.join("a", StickyAssignor(planner=plan_round_robin))
        group.join("b", StickyAssignor())
        assert names(group.rebalance()) == {"a": "tp0 tp2", "b": "tp1 tp3"}

    def test_a_seed_makes_random_plans_repeatable(self) -> None:
        members = [joined(name, RandomAssignor().metadata({"t"})) for name in "abc"]
        first, second, other = (
            assign(RandomAssignor(seed=seed), {"t": range(50)}, *members) for seed in (3, 3, 4)
        )
        assert first == second != other


class TestMalformedSubscriptions:
    """What kafka-python's decoder lets pass, `assign` survives."""

    @pytest.mark.parametrize("assignor", ALL)
    @pytest.mark.parametrize(
        "raw",
        [
            bytes.fromhex("0001 ffffffff ffffffff ffffffff 00000000"),
            bytes.fromhex("0000 00000002 ffff 0001 74 ffffffff"),
            bytes.fromhex("0001 00000001 0001 74 ffffffff 00000001 ffff 00000001 00000000"),
            bytes.fromhex("0001 00000001 0001 74 ffffffff 00000001 0001 74 ffffffff"),
            bytes.fromhex("7fff 00000001 0001 74 ffffffff 00000000 ffffffff ffff 00112233"),
        ],
        ids=["null topics", "null topic", "null owned topic", "null owned partitions", "future version"],
    )
    def test_nulls_and_futures_are_survived(self, assignor: Any, raw: bytes) -> None:
        good = assignor()
        members = [joined("bad", raw), joined("good", good.metadata({"t"}))]
        assigned = assign(good, {"t": range(2)}, *members)
        assert {*assigned["bad"].split(), *assigned["good"].split()} == {"tp0", "tp1"}


class TestSubscription:
    def test_the_first_subscription_is_javas(self) -> None:
        """Version 3; topics; user data null; nothing owned; generation -1; rack null."""
        raw = StickyAssignor().metadata({"b", "a"}).encode()
        assert raw == bytes.fromhex("0003 00000002 0001 61 0001 62 ffffffff 00000000 ffffffff ffff")

    def test_sticky_tells_prior_assignment_and_generation_in_its_user_data(self) -> None:
        """What Java's StickyAssignor sends in a later join from a rack, byte by byte."""
        assignor = StickyAssignor(rack="rack-x")
        given_to(assignor, [("t123456789", [5, 1, 3])], 2)
        assert assignor.metadata({"t123456789"}).encode() == bytes.fromhex(
            "0003 00000001 000a 74313233343536373839"
            "00000024 00000001 000a 74313233343536373839 00000003 00000001 00000003 00000005 00000002"
            "00000000 00000002 0006 7261636b2d78"
        )

    def test_cooperative_sticky_tells_owned_partitions_and_its_generation_as_java_does(self) -> None:
        assignor = CooperativeStickyAssignor()
        assert assignor.metadata({"t"}).encode() == bytes.fromhex(
            "0003 00000001 0001 74 00000004 ffffffff 00000000 ffffffff ffff"
        )
        given_to(assignor, [("t", [2, 0])], 2)
        assert assignor.metadata({"t"}).encode() == bytes.fromhex(
            "0003 00000001 0001 74 00000004 0000000200000001 0001 74 00000002 00000000 00000002 00000002 ffff"
        )

    @pytest.mark.parametrize("assignor", [RangeAssignor, RoundRobinAssignor, RandomAssignor])
    def test_others_tell_no_user_data_and_claim_nothing(self, assignor: Any) -> None:
        member = assignor(rack="r")
        given_to(member, [("t", [0, 1])], 4)
        sent = ConsumerProtocolSubscription.decode(member.metadata({"t"}).encode())
        assert (sent.version, sent.topics, sent.user_data) == (3, ["t"], None)
        assert (sent.owned_partitions, sent.generation_id, sent.rack_id) == ([], 4, "r")

    @pytest.mark.parametrize("assignor", STICKY)
    def test_topics_that_are_no_longer_subscribed_are_not_claimed(self, assignor: Any) -> None:
        group = HandGroup({"t": range(2), "u": range(2)})
        group.join("a", assignor())
        group.rebalance()
        group.join("a", group.assignors["a"], ["u"])
        group.join("b", assignor())
        group.rebalance()
        assert names(group.rebalance()) == {"a": "up0 up1", "b": "tp0 tp1"}


class TestClaimsOfOthers:
    """Whatever another member sends, `assign` plans for the group."""

    TOPICS = {"t": range(4)}  # noqa: RUF012 - never changed

    def test_sticky_honours_the_user_data_of_kafka_pythons_own_class(self) -> None:
        stock = StockSticky()
        stock.on_assignment(ConsumerProtocolAssignment(1, [("t", [1, 3])], b""), 5)
        members = [joined("a", subscription(1, ["t"])), joined("b", stock.metadata({"t"}))]
        assert assign(StickyAssignor(), self.TOPICS, *members) == {"a": "tp0 tp2", "b": "tp1 tp3"}

    @pytest.mark.parametrize("assignor", STICKY)
    def test_bad_bytes_mean_no_claims_and_a_warning_that_says_whose_and_why(
        self, assignor: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        bad = subscription(3, ["t"], user_data=encode_sticky({"t": [0, 1, 2]}, 9)[:-2], generation=9)
        good = assignor()
        given_to(good, [("t", [2, 3])], 9)
        members = [joined("bad-member", bad), joined("good", good.metadata({"t"}))]
        assert assign(good, self.TOPICS, *members) == {"bad-member": "tp0 tp1", "good": "tp2 tp3"}
        assert "bad-member" in caplog.text
        assert "25 bytes are no sticky user data" in caplog.text


class TestHandOver:
    def test_a_member_that_lost_its_claims_on_the_way_cannot_block_a_partition(self) -> None:
        """kafka-python's own members go on claiming what they no longer have; one more round heals it."""
        group = HandGroup({"t": range(6)})
        group.join("ours", CooperativeStickyAssignor())
        group.join("stock", StockCooperativeSticky())
        group.rebalance()
        given_to(group.assignors["ours"], [("t", [0, 1, 2, 3, 4, 5])], 2)
        group.generation = 2
        group.rebalance()
        final = group.rebalance()
        assert sorted(final["ours"]["t"] + final["stock"]["t"]) == [0, 1, 2, 3, 4, 5]
        assert len(final["stock"]["t"]) == 3


class TestWhatLeavesIsChecked:
    def test_a_wrong_plan_never_leaves(self) -> None:
        group = HandGroup({"t": range(2), "u": range(2)})
        all_to_one = StickyAssignor(planner=lambda group: Plan.from_owner(group, plan_range(group).owner * 0))
        group.join("a", all_to_one, ["t"])
        group.join("b", StickyAssignor())
        with pytest.raises(InvalidPlanError, match="which it does not subscribe to"):
            group.rebalance()

    def test_an_assignor_of_ones_own_needs_a_name_and_a_plan(self) -> None:
        class First(Assignor):
            """Everything to the first member that subscribes."""

            name = "first"

            def plan(self, group: Group) -> Plan:
                owner = plan_kip54(group).owner
                for topic, subscribers in enumerate(group.subscribers):
                    owner[group.topic_of == topic] = subscribers[0]
                return Plan.from_owner(group, owner)

        group = HandGroup({"t": range(2), "u": range(2)})
        group.join("a", First(), ["u"])
        group.join("b", First())
        assert names(group.rebalance()) == {"a": "up0 up1", "b": "tp0 tp1"}
