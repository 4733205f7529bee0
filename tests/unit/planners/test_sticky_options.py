"""The options of the sticky assignors, and how weights come to the leader."""

import struct
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kafka_assignors import CooperativeStickyAssignor, Group, Plan, RangeAssignor, StickyAssignor
from kafka_assignors._assignors import _sticky as sticky
from kafka_assignors._assignors._host import KafkaPythonHost
from kafka_assignors._model.claims import NO_EXTRA, Extra
from kafka_assignors._model.members import MAX_WEIGHT, Member
from kafka_assignors._wire.reader import UnreadableError
from kafka_assignors._wire.user_data import (
    decode_all,
    decode_generation,
    decode_sticky,
    encode_generation,
    encode_sticky,
)
from kafka_assignors.planners import plan_exact
from kafka_assignors.planners._exact import hand_out
from kafka_assignors.planners._kip54 import plan_kip54
from kafka_assignors.planners._quick import plan_quickly
from kafka_assignors.proofs import certify
from tests.support.by_hand import HandGroup, cluster_of, joined, names
from tests.support.wire import subscription

BOTH: list[Any] = [StickyAssignor, CooperativeStickyAssignor]
each_class = pytest.mark.parametrize("assignor", BOTH, ids=lambda assignor: assignor.name)

WARNING = (
    "An exact plan of 12 partitions for 3 members was not ready after {} s. "
    "Using a quicker one, which may be less balanced and move more"
)


def uneven_group() -> Group:
    """A group of 3 members and 12 partitions whose exact plan takes steps, and is not the quick one."""
    return Group.of(
        {"t": range(8), "u": range(4)},
        [
            Member(member_id="a", topics=frozenset("t"), claims={"t": range(4)}, generation=3, weight=3),
            Member(member_id="b", topics=frozenset("tu"), claims={"u": range(4)}, generation=3),
            Member(member_id="c", topics=frozenset("u")),
        ],
    )


class Consumer(ConsumerCoordinator):
    """The coordinator of a consumer with these settings, that does nothing but call assignors."""

    def __init__(self, **config: int | None) -> None:
        self.config = config

    def plan(self, assignor: Any, group: Group) -> Plan:
        plan: Plan = assignor.plan(group)
        return plan


@pytest.fixture
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An hour passes from one look at the clock to the next."""
    monkeypatch.setattr(sticky, "time", SimpleNamespace(monotonic=count(step=3600.0).__next__))
    return iter(())


@each_class
class TestTimeLimit:
    @pytest.mark.parametrize("options", [{}, {"max_skew": 1}, {"max_moves": 0}])
    def test_an_exact_plan_that_is_not_ready_in_time_is_given_up_for_a_quick_one(
        self, assignor: Any, options: dict[str, int], caplog: pytest.LogCaptureFixture
    ) -> None:
        group = uneven_group()
        quick = plan_quickly(group).assignments()
        assert quick != plan_exact(group).assignments()
        plan = assignor(time_limit=1e-9, **options).plan(group)
        assert plan.assignments() == quick
        assert [record.getMessage() for record in caplog.records] == [WARNING.format("1e-09")]

    @pytest.mark.parametrize("limit", [None, 60, 0.5])
    def test_within_the_limit_the_plan_is_exact_and_nothing_is_said(
        self, assignor: Any, limit: float | None, caplog: pytest.LogCaptureFixture
    ) -> None:
        group = uneven_group()
        plan = assignor(time_limit=limit).plan(group)
        assert plan.assignments() == plan_exact(group).assignments()
        assert not caplog.records

    @pytest.mark.usefixtures("slow_clock")
    def test_members_that_are_alike_are_planned_exactly_whatever_the_limit(
        self, assignor: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        group = Group.of({"t": range(5)}, [Member(member_id=name, topics=frozenset("t")) for name in "ab"])
        assert assignor().plan(group).loads.tolist() == [3, 2]
        assert not caplog.records

    @pytest.mark.usefixtures("slow_clock")
    @pytest.mark.parametrize("planner", ["kip54", plan_kip54])
    def test_other_planners_have_no_limit(
        self, assignor: Any, planner: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        group = uneven_group()
        plan = assignor(planner=planner, time_limit=1e-9).plan(group)
        assert plan.assignments() == plan_kip54(group).assignments()
        assert not caplog.records

    @pytest.mark.usefixtures("slow_clock")
    @pytest.mark.parametrize(
        ("options", "timeouts", "limit"),
        [
            ({}, {"session_timeout": 45_000, "max_poll_interval": 300_000, "request_timeout": 305_000}, "5"),
            ({}, {"session_timeout": 6_000, "max_poll_interval": 300_000, "request_timeout": 305_000}, "2"),
            ({}, {"session_timeout": 6_000, "max_poll_interval": 1_500, "request_timeout": 305_000}, "0.5"),
            ({}, {"session_timeout": 6_000, "max_poll_interval": 5_000, "request_timeout": 900}, "0.3"),
            ({}, {"session_timeout": 6_000, "max_poll_interval": None}, "2"),
            ({}, {"session_timeout": 6_000}, "2"),
            ({"time_limit": 70}, {"session_timeout": 6_000}, "70"),
            ({}, None, "5"),
        ],
    )
    def test_the_limit_is_a_third_of_the_consumers_shortest_timeout_and_5_s_at_most_or_what_is_given(
        self,
        assignor: Any,
        options: dict[str, int],
        timeouts: dict[str, int | None] | None,
        limit: str,
        *,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        made, group = assignor(**options), uneven_group()
        if timeouts is None:
            plan = made.plan(group)
        else:
            plan = Consumer(**{f"{name}_ms": time for name, time in timeouts.items()}).plan(made, group)
        assert plan.assignments() == plan_quickly(uneven_group()).assignments()
        assert [record.getMessage() for record in caplog.records] == [WARNING.format(limit)]

    def test_what_goes_wrong_in_a_planner_is_not_taken_for_a_lack_of_time(self, assignor: Any) -> None:
        def broken(group: Group) -> Plan:
            raise TimeoutError(f"{group.size}")

        with pytest.raises(TimeoutError, match="12"):
            assignor(planner=broken).plan(uneven_group())


def test_kafka_pythons_own_settings_allow_a_limit() -> None:
    config = ConsumerCoordinator.DEFAULT_CONFIG
    shortest = min(config["session_timeout_ms"], config["max_poll_interval_ms"])
    assert 0 < KafkaPythonHost(Consumer(**config)).patience <= shortest / 1000


class TestWeightsOnTheWire:
    @pytest.mark.parametrize("weight", [0, -1, MAX_WEIGHT + 1, 2**31 - 1, -(2**31)])
    def test_a_weight_that_is_none_counts_as_1(self, weight: int) -> None:
        raw = encode_sticky({"t": [0]}, 4) + struct.pack(">i", weight)
        read, _ = decode_all([raw, encode_sticky({}, 5, 3)])
        assert read.weights.tolist() == [1, 3]
        assert read.generations.tolist() == [4, 5]
        assert read.claims.claims()[0] == {"t": [0]}
        assert (decode_sticky(raw).generation, decode_sticky(raw).weight) == (4, 1)
        assert decode_generation(struct.pack(">2i", 4, weight)) == (4, 1, NO_EXTRA)

    def test_priority_and_data_follow_the_weight(self) -> None:
        standby, measured = Extra(-1), Extra(5, b"any")
        assert encode_generation(7, 1, standby) == bytes.fromhex("00000007 00000001 ffffffff")
        assert encode_generation(7, 2, measured) == bytes.fromhex("00000007 00000002 00000005") + b"kaany"
        assert decode_generation(encode_generation(7, 1, standby)) == (7, 1, standby)
        assert decode_generation(encode_generation(7, 2, measured)) == (7, 2, measured)
        blobs = [encode_sticky({"t": [0]}, 4, 3, measured), b"", encode_sticky({}, 5, 1, standby)]
        read, _ = decode_all(blobs)
        assert (read.weights.tolist(), read.extras) == ([3, 1, 1], {0: measured, 2: standby})

    @pytest.mark.parametrize(("weight", "priority"), [(0, 1), (MAX_WEIGHT + 1, 1), (1, 1001), (1, -1001)])
    def test_what_is_no_weight_with_a_priority_cannot_be_read(self, weight: int, priority: int) -> None:
        raw = struct.pack(">2i", weight, priority)
        for behind in (raw, raw + b"kaany"):
            assert decode_generation(struct.pack(">i", 4) + behind) is None
            with pytest.raises(UnreadableError):
                decode_sticky(encode_sticky({"t": [0]}, 4) + behind)
        assert decode_generation(struct.pack(">3i", 4, 1, 1) + b"xxany") is None

    def test_the_first_subscription_tells_the_weight_and_no_generation(self) -> None:
        def told(assignor: Any) -> bytes | None:
            raw = assignor.metadata({"t"}).encode()
            data: bytes | None = ConsumerProtocolSubscription.decode(raw).user_data
            return data

        assert told(StickyAssignor()) is None
        assert told(StickyAssignor(weight=2)) == bytes.fromhex("00000000 ffffffff 00000002")
        assert told(CooperativeStickyAssignor()) == bytes.fromhex("ffffffff")
        assert told(CooperativeStickyAssignor(weight=2)) == bytes.fromhex("ffffffff 00000002")
        assert told(StickyAssignor(priority=-1)) == bytes.fromhex("00000000 ffffffff 00000001 ffffffff")
        assert told(CooperativeStickyAssignor(priority=2)) == bytes.fromhex("ffffffff 00000001 00000002")

    def test_later_ones_tell_it_behind_what_java_tells(self) -> None:
        for assignor, java in (
            (StickyAssignor, "00000001 0001 74 00000001 00000003 00000006"),
            (CooperativeStickyAssignor, "00000006"),
        ):
            cases: dict[str, dict[str, Any]] = {
                "": {},
                "000003e8": {"weight": 1000},
                "00000001 00000005": {"priority": 5, "max_active": 1, "return_after": 60},
            }
            for told, options in cases.items():
                member = assignor(**options)
                member.on_assignment(ConsumerProtocolAssignment(1, [("t", [3])], b""), 6)
                sent = ConsumerProtocolSubscription.decode(member.metadata({"t"}).encode())
                assert sent.user_data == bytes.fromhex(java + told)


class TestWeightsInTheGroup:
    @each_class
    def test_twice_the_weight_gets_twice_the_partitions(self, assignor: Any) -> None:
        group = HandGroup({"t": range(9)})
        group.join("a", assignor())
        group.join("b", assignor(weight=2))
        for _ in range(3):
            loads = {member: len(topics["t"]) for member, topics in group.rebalance().items()}
            assert loads == {"a": 3, "b": 6}

    def test_planners_that_know_no_weights_ignore_them(self) -> None:
        for leader in (RangeAssignor(), StickyAssignor(planner="kip54")):
            group = HandGroup({"t": range(4)})
            group.join("a", leader)
            group.join("b", StickyAssignor(weight=3))
            assert {name: len(topics["t"]) for name, topics in group.rebalance().items()} == {"a": 2, "b": 2}


class TestStandbysInTheGroup:
    @each_class
    @pytest.mark.parametrize(
        ("planner", "expected"),
        [("exact", {"a": 3, "b": 6, "c": 0}), ("kip54", {"a": 5, "b": 4, "c": 0}), (plan_quickly, None)],
        ids=["exact", "kip54", "function"],
    )
    def test_with_each_planner_standbys_get_nothing_until_the_others_are_gone(
        self, assignor: Any, planner: Any, expected: dict[str, int] | None
    ) -> None:
        group = HandGroup({"t": range(9)})
        group.join("a", assignor(planner=planner))
        group.join("b", assignor(planner=planner, weight=2))
        group.join("c", assignor(planner=planner, weight=1000, priority=-1, max_active=5))
        loads = {member: len(topics.get("t", ())) for member, topics in group.rebalance().items()}
        assert loads["c"] == 0
        assert sum(loads.values()) == 9
        assert expected is None or loads == expected
        group.leave("a")
        group.leave("b")
        assert group.rebalance() == {"c": {"t": [*range(9)]}}

    @each_class
    def test_a_leader_without_a_consumer_limits_the_active_and_has_no_clock(self, assignor: Any) -> None:
        group = HandGroup({"t": range(4)})
        group.join("a", assignor(max_active=1, return_after=60))
        group.join("b", assignor())
        assert names(group.rebalance()) == {"a": "tp0 tp1 tp2 tp3", "b": ""}
        group.join("c", assignor(priority=1))
        assigned = group.rebalance()
        if assignor is CooperativeStickyAssignor:
            assigned = group.rebalance()
        assert names(assigned) == {"a": "", "b": "", "c": "tp0 tp1 tp2 tp3"}


class TestWindows:
    @each_class
    @pytest.mark.parametrize(
        ("options", "loads"),
        [
            ({}, [5, 5]),
            ({"max_skew": 0}, [5, 5]),
            ({"max_skew": 2}, [7, 3]),
            ({"max_skew": 100}, [10, 0]),
            ({"max_moves": 0}, [10, 0]),
            ({"max_moves": 2}, [8, 2]),
            ({"max_moves": 100}, [5, 5]),
            ({"max_skew": 1, "max_moves": 100}, [6, 4]),
        ],
    )
    def test_a_newcomer_gets_no_more_than_skew_and_moves_want(
        self, assignor: Any, options: dict[str, int], loads: list[int]
    ) -> None:
        group = HandGroup({"t": range(10)})
        group.join("a", assignor(**options))
        assert names(group.rebalance()) == {"a": " ".join(f"tp{number}" for number in range(10))}
        group.join("b", assignor(**options))
        assigned = group.rebalance()
        if assignor is CooperativeStickyAssignor:  # what changes hands is let go in this round
            assert [len(assigned[name].get("t", [])) for name in "ab"] == [loads[0], 0]
            if "max_moves" in options:
                return  # it counts what moves in each round: in the next one nobody owns the rest
            assigned = group.rebalance()
        assert [len(assigned[name].get("t", [])) for name in "ab"] == loads

    def test_what_nobody_owned_makes_up_for_what_members_lack(self) -> None:
        """Two members lack one partition each. One is free, so one move balances all."""
        members = [
            Member(member_id=name, topics=frozenset("t"), claims={"t": owned}, generation=1)
            for name, owned in (("a", [1, 2]), ("b", []), ("c", []))
        ]
        plan = plan_exact(Group.of({"t": range(3)}, members), max_moves=1)
        assert (plan.loads.tolist(), plan.moves) == ([1, 1, 1], 1)


@each_class
class TestConstruction:
    @pytest.mark.parametrize(
        ("name", "rule", "values"),
        [
            ("weight", "a whole number from 1 to 1000", [0, -3, 1001, 1.5, "2"]),
            ("priority", "a whole number from -1000 to 1000", [1001, -1001, 0.5, True, None]),
            ("max_active", "a whole number, 1 or more", [0, -1, 1.5, True]),
            ("return_after", "more than 0 s, 1000000000 at most", [0, -1, float("nan"), float("inf")]),
            ("max_skew", "a whole number, 0 or more", [-1, 1.5]),
            ("max_moves", "a whole number, 0 or more", [-2, True]),
            ("time_limit", "more than 0 s", [0, -0.5, float("nan")]),
        ],
    )
    def test_what_is_out_of_range_is_an_error_that_names_value_and_range(
        self, assignor: Any, name: str, rule: str, values: list[Any]
    ) -> None:
        for value in values:
            with pytest.raises(ValueError, match=f"^{name} must be {rule}, not {value!r}"):
                assignor(**{name: value})

    def test_a_planner_that_there_is_not_is_refused(self, assignor: Any) -> None:
        with pytest.raises(ValueError, match="there is no planner 'best'; choose one of exact, kip54"):
            assignor(planner="best")

    @pytest.mark.parametrize(("planner", "named"), [("kip54", "'kip54'"), (plan_kip54, "<func")])
    @pytest.mark.parametrize("option", ["max_skew", "max_moves"])
    def test_windows_are_for_the_exact_planner(
        self, assignor: Any, option: str, planner: Any, named: str
    ) -> None:
        with pytest.raises(ValueError, match=f"{option} is an option of the planner 'exact', not of {named}"):
            assignor(**{option: 0}, planner=planner)


class TestUnreadableUserData:
    @pytest.mark.parametrize("count", [0, 2**31 - 1])
    def test_a_long_one_is_warned_of_once_and_briefly_however_often_it_comes(
        self, count: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        name = (b"\xff" if count == 0 else b"n") * 32_767
        data = struct.pack(f">ih{len(name)}sii", 1, len(name), name, count, 5)
        assignor = StickyAssignor()
        for _ in range(3):
            bad = joined("bad", subscription(3, ["t"], user_data=data, generation=9))
            assignor.assign(cluster_of({"t": range(6)}), [bad, joined("k", subscription(3, ["t"]))])
        (message,) = [record.getMessage() for record in caplog.records]
        assert len(message) < 1000
        bad = joined("bad", subscription(3, ["t"], user_data=b"\0", generation=9))
        assignor.assign(cluster_of({"t": range(6)}), [bad])
        assert [len(record.getMessage()) < 1000 for record in caplog.records] == [True, True]


def test_a_window_that_allows_everything_is_as_wide_as_the_group() -> None:
    group = uneven_group()
    widest = plan_exact(group, max_skew=10**20)
    assert widest.assignments() == plan_exact(group, max_skew=group.size).assignments()
    assert certify(widest).optimal


def test_memory_does_not_grow_with_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def least_loaded(*given: Any) -> Any:
        members = real(*given)
        lengths.append(len(members))
        return members

    real = hand_out._least_loaded
    monkeypatch.setattr(hand_out, "_least_loaded", least_loaded)
    members = [
        Member(
            member_id=f"m{number:02}",
            topics=frozenset("t"),
            claims={"t": range(10 * number, 10 * number + 9)},
            generation=1,
        )
        for number in range(20)
    ]
    group = Group.of({"t": range(200)}, members)
    assert plan_exact(group, max_skew=200).moves == 0
    (length,) = lengths
    assert length <= 200 + 20
