"""Members that join topics: what they say, and what a leader makes of it, round by round."""

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kafka_assignors import CopartitionedAssignor, Group, Member, lead
from kafka_assignors._assignors._membership.hand_over import PATIENCE, HandOver
from kafka_assignors._assignors._membership.host import calls
from kafka_assignors._assignors._membership.standbys import Standbys
from kafka_assignors._model.claims import Extra
from kafka_assignors._model.plan import check
from kafka_assignors._wire.user_data import UNFINISHED, decode_generation, decode_sticky, encode_generation
from kafka_assignors.planners._copartitioned import digest, plan_copartitioned
from tests.support.by_hand import HandGroup, HandHost, Led, names
from tests.support.wire import partition_list, subscription

SETS = [("a", "b")]
EXISTING = MappingProxyType({"a": range(2), "b": range(2)})


class Round(Led):
    """A member is what it holds, "a0 b1", and the generation it says.

    Generations are counted from 10: Kafka has none of number 0.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(CopartitionedAssignor(SETS, **options))

    def __call__(
        self,
        generation: int,
        members: Mapping[str, tuple[str, int]],
        *,
        static: tuple[str, ...] = (),
        data: Mapping[str, bytes] = MappingProxyType({}),
        topics: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> dict[str, str]:
        said = [
            (
                name,
                f"instance-{name}" if name in static else None,
                subscription(
                    3,
                    topics.get(name, ["a", "b"]),
                    owned=partition_list([(one[0], [int(one[1:])]) for one in claim.split()]),
                    generation=stated,
                    user_data=encode_generation(stated, 1, Extra(data=data.get(name, digest(SETS)))),
                ),
            )
            for name, (claim, since) in members.items()
            for stated in [since + 10 if since >= 0 else since]
        ]
        self.lead(generation + 10, EXISTING, said)
        return {
            name: " ".join(f"{topic}{number}" for topic, number in sorted(one.partitions()))
            for name, one in self.raw.items()
        }


@pytest.fixture
def round_of() -> Round:
    return Round()


def test_members_get_one_id_of_all_topics_and_keep_it() -> None:
    group = HandGroup({"a": range(4), "b": range(4), "c": range(2)})
    for name in ("m1", "m2"):
        group.join(name, CopartitionedAssignor(SETS))
    assert names(group.rebalance()) == {"m1": "ap0 ap2 bp0 bp2 cp0", "m2": "ap1 ap3 bp1 bp3 cp1"}
    group.join("m3", CopartitionedAssignor(SETS))
    first = names(group.rebalance())
    assert first == {"m1": "ap0 ap2 bp0 bp2", "m2": "ap1 bp1 cp1", "m3": ""}
    assert names(group.rebalance()) == {**first, "m3": "ap3 bp3 cp0"}


def test_what_is_separated_is_revoked_as_a_whole_before_it_is_assigned(round_of: Round) -> None:
    """It comes from a strategy that does not keep it together: m2 revokes b0 as well, which it will get."""
    given = round_of(1, {"m1": ("a0 b1", 0), "m2": ("a1 b0", 0)})
    assert given == {"m1": "", "m2": ""}
    assert round_of(2, {"m1": ("", 1), "m2": ("", 1)}) == {"m1": "a0 b0", "m2": "a1 b1"}
    assert round_of.host.later == []


def test_one_that_does_not_let_go_of_a_part_keeps_the_rest_from_all(round_of: Round) -> None:
    members = {"leader": ("b0 b1", 0), "slow": ("a0 a1", 0)}
    for generation in range(1, 4 * PATIENCE):
        # Others begin the rounds.
        given = round_of(generation, {**members, f"other{generation}": ("", -1)})
        assert given == {"leader": "", "slow": "a0 b0" if generation > 1 else "", f"other{generation}": ""}
        members["leader"] = ("", generation)


def test_what_two_cling_to_parts_of_is_nobodys_and_the_leader_asks_on(
    round_of: Round, caplog: pytest.LogCaptureFixture
) -> None:
    members = {"leader": ("a1 b1", 0), "x": ("a0", 0), "y": ("b0", 0)}
    waits = []
    for generation in range(1, PATIENCE + 4):
        assert round_of(generation, members) == {"leader": "a1 b1", "x": "", "y": ""}
        waits.append(round_of.wait())
    assert waits == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    assert caplog.text.count("Leaving 2 partitions without an owner") == 3
    assert round_of(PATIENCE + 4, {**members, "y": ("", PATIENCE + 3)})["x"] in {"", "a0 b0"}


Members = dict[str, tuple[str, int]]


@pytest.mark.parametrize(
    ("first", "members", "how", "left"),
    [
        (1, {"clinging": ("a0 a1", 0)}, {}, {"leader": "", "clinging": "a0 a1 b0 b1"}),
        (
            1,
            {"other": ("", 0), "left": ("a0 b1", 0)},
            {"topics": {"left": ["c"]}},
            {"leader": "a0 b0", "other": "a1 b1", "left": ""},
        ),
        (7, {"s": ("a1 b1", 5)}, {"static": ("s",)}, {"leader": "a0 b0", "s": "a1 b1"}),
    ],
    ids=["clings to parts", "does not subscribe", "static, and hangs"],
)
def test_what_is_never_let_go_of_goes_as_a_whole_in_the_end(
    first: int,
    members: Members,
    how: dict[str, Any],
    left: dict[str, str],
    *,
    round_of: Round,
    caplog: pytest.LogCaptureFixture,
) -> None:
    members = {"leader": ("b0", first - 1), **members}
    for generation in range(first, first + PATIENCE):
        assert round_of(generation, members, **how)["leader"] == ""
        members["leader"] = ("", generation)
        round_of.wait()
    assert round_of(first + PATIENCE, members, **how) == left
    assert round_of.host.later == []
    assert ("Leaving 2 partitions with members" in caplog.text) == ("clinging" in members)


def test_what_a_static_member_may_have_keeps_its_unit_from_all(round_of: Round) -> None:
    """It may hang with b0, which another leader gave it: a0 waits as well, though leader holds it."""
    static, members = ("s",), {"leader": ("a0", 6), "s": ("a1 b1", 5)}
    assert round_of(7, members, static=static) == {"leader": "", "s": "a1 b1"}
    assert round_of.raw["s"].user_data == UNFINISHED
    # The next round shows that it has missed that plan.
    members = {"leader": ("", 7), "s": ("a1 b1", 7)}
    assert round_of(8, members, static=static) == {"leader": "a0 b0", "s": "a1 b1"}


def test_both_rounds_share_what_may_move() -> None:
    round_of = Round(max_moves=1)
    assert round_of(1, {"m1": ("a0 b0 a1 b1", 0), "m2": ("", -1)}) == {"m1": "a0 b0", "m2": ""}
    assert round_of(2, {"m1": ("a0 b0", 1), "m2": ("", 1)}) == {"m1": "a0 b0", "m2": "a1 b1"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the default sets of topics"),
        (b"\0", "other sets of topics"),
        (digest([("a", "c")]), "other sets of topics"),
        (digest(SETS) + b"\0", "other sets of topics"),
        (b"\xff" * 10_000, "other sets of topics"),
    ],
    ids=["none", "one byte", "other sets", "one byte more", "many bytes"],
)
def test_a_member_with_other_sets_is_named_once_and_the_leaders_count(
    data: bytes, said: str, round_of: Round, caplog: pytest.LogCaptureFixture
) -> None:
    for generation in (1, 2):
        members = {"m1": ("a0 b0", generation - 1), "m2": ("a1 b1", generation - 1)}
        assert round_of(generation, members, data={"m2": data}) == {"m1": "a0 b0", "m2": "a1 b1"}
    warnings = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert warnings == [f"Member m2 has {said}, and not those of this leader, which count"]


@pytest.mark.parametrize("raw", [b"", b"\0\0", b"\xff" * 99, b"\0\0\0\5\0\0\0\1\0\0\0\0ka"])
def test_user_data_of_any_bytes_takes_no_group_down(raw: bytes, round_of: Round) -> None:
    hostile = subscription(3, ["a", "b"], owned=partition_list([]), generation=1, user_data=raw)
    with calls(round_of.host):
        given = lead(EXISTING, [("m", None, hostile)], round_of.assignor)
    assert len(ConsumerProtocolAssignment.decode(given["m"]).partitions()) == 4


def test_odd_topics_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    group = HandGroup({"a": range(3), "b": range(2), "c": range(2)})
    group.join("m1", CopartitionedAssignor([("a", "b"), ("c", "d")]))
    group.rebalance()
    group.rebalance()
    warnings = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    said = "they have 3, 2 partitions; what only the longer ones have is joined with nothing"
    assert warnings == [f"Topics joined by a, b: {said}"]


def test_members_say_their_sets_and_those_without_say_nothing_more() -> None:
    def said(assignor: CopartitionedAssignor) -> bytes:
        sent: ConsumerProtocolSubscription = assignor.metadata({"a", "b"})
        return sent.user_data or b""

    for sets in (SETS, [("b", "a", "a")]):
        assert decode_generation(said(CopartitionedAssignor(sets))) == (-1, 1, Extra(data=digest(SETS)))
    assert decode_generation(said(CopartitionedAssignor(weight=3))) == (-1, 3, Extra())
    assert decode_sticky(said(CopartitionedAssignor(SETS, cooperative=False))).extra == Extra(
        data=digest(SETS)
    )
    assert said(CopartitionedAssignor(cooperative=False)) == b""


def test_an_eager_consumer_is_in_a_group_with_cooperative_ones() -> None:
    eager = CopartitionedAssignor(SETS, cooperative=False)
    assert eager.supported_protocols() == [RebalanceProtocol.EAGER]
    group = HandGroup(dict(EXISTING))
    group.join("m1", eager)
    group.join("m2", CopartitionedAssignor(SETS))
    expected = {"m1": "ap0 bp0", "m2": "ap1 bp1"}
    assert [names(group.rebalance()) for _ in range(2)] == [expected] * 2


def test_out_of_time_the_quicker_plan_keeps_together_what_belongs_together(
    caplog: pytest.LogCaptureFixture,
) -> None:
    group = HandGroup({"a": range(4), "b": range(4), "c": range(2)})
    group.join("m1", CopartitionedAssignor(SETS, time_limit=1e-9), ["a", "b"])
    group.join("m2", CopartitionedAssignor(SETS))
    assert names(group.rebalance()) == {"m1": "ap0 ap1 ap2 bp0 bp1 bp2", "m2": "ap3 bp3 cp0 cp1"}
    assert "was not ready" in caplog.text


@pytest.mark.parametrize(
    ("together", "said"),
    [
        ([("a", "b"), ("b", "c")], "a topic is in one set only, but b is in two of together"),
        (["ab", "cd"], "together has sets of two topics or more, .* not 'ab'"),
        ([("a", 1)], r"together has sets of two topics or more, .* not \('a', 1\)"),
        ([("a",)], r"not \('a',\)"),
        ([("a", "a")], r"not \('a', 'a'\)"),
    ],
)
def test_sets_that_cannot_be_are_refused(together: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CopartitionedAssignor(together)


def with_topics(name: str, topics: str, **fields: Any) -> Member:
    return Member(member_id=name, topics=frozenset(topics), generation=3, holds=True, **fields)


def test_who_clings_to_a_part_is_given_no_topics_to_which_it_does_not_subscribe() -> None:
    members = [
        with_topics("active", "ab", priority=1),
        with_topics("other", "b"),
        with_topics("standby", "a", claims={"a": [0]}),
    ]
    plan = plan_copartitioned(Group.of(EXISTING, members), SETS)
    assert plan.assignments()["active"] == {"a": [0, 1], "b": [0, 1]}
    leader, host = HandOver(), HandHost()
    for generation in range(9, 9 + PATIENCE + 1):
        host.generation = generation
        leader._is_own = True
        sent, held_back = leader.apply(plan, host)
        check(sent, plan.group, held_back=held_back)
        leader._generation, leader._given = generation, leader._making
    assert sent.assignments() == {"active": {"a": [1], "b": [1]}, "other": {}, "standby": {}}


def test_who_waits_does_not_get_the_new_topic_of_a_set_before_the_others() -> None:
    members = [
        with_topics("owner", "ab", claims={"a": [0, 1]}),
        with_topics("elsewhere", "c", priority=1, claims={"c": [0]}),
        with_topics("waits", "ab", priority=1),
    ]
    group = Group.of({**EXISTING, "c": range(1)}, members)
    settled = Standbys().settle(group, HandHost(), 300.0)
    assert plan_copartitioned(settled, SETS).assignments() == {
        "owner": {"a": [0, 1], "b": [0, 1]},
        "elsewhere": {"c": [0]},
        "waits": {},
    }
