"""What a leader believes of members' claims, rule by rule."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from kafka_assignors import CooperativeStickyAssignor
from kafka_assignors._assignors._membership.hand_over import PATIENCE, HandOver
from kafka_assignors._assignors._membership.host import calls
from kafka_assignors._model.claims import Extra
from kafka_assignors._model.group import Group, Member
from kafka_assignors._model.plan import Plan
from kafka_assignors._wire.user_data import UNFINISHED, encode_generation
from kafka_assignors.planners._cooperative import awaited_holders
from kafka_assignors.planners._quick import plan_quickly
from tests.support.by_hand import HandHost, Led
from tests.support.effort import with_memory
from tests.support.wire import partition_list, subscription


class Round(Led):
    """A member is a claim, the generation that it says, and its instance id."""

    def __init__(self, **options: Any) -> None:
        super().__init__(CooperativeStickyAssignor(**options))

    def __call__(
        self,
        generation: int,
        members: Mapping[str, tuple[list[int], int]],
        *,
        static: tuple[str, ...] = (),
        standby: tuple[str, ...] = (),
        topics: Mapping[str, list[str]] | None = None,
        delivered: bool = True,
        existing: Mapping[str, Sequence[int]] = MappingProxyType({"t": range(4)}),
    ) -> dict[str, list[int]]:
        """Lead a round, and get the assignment."""
        said = [
            (
                name,
                f"instance-{name}" if name in static else None,
                subscription(
                    3,
                    (topics or {}).get(name, ["t"]),
                    owned=partition_list([("t", claim)] if claim else []),
                    generation=stated,
                    user_data=encode_generation(stated, 1, Extra(-1)) if name in standby else None,
                ),
            )
            for name, (claim, stated) in members.items()
        ]
        self.lead(generation, existing, said, delivered=delivered)
        return {
            name: sorted(partition for _, partition in assignment.partitions())
            for name, assignment in self.raw.items()
        }

    def follows(self, generation: int, assignment: Any = None) -> None:
        """Another member leads, and this one takes an assignment."""
        with calls(self.host):
            self.assignor.metadata({"t"})
            self.host.generation = generation
            nothing = ConsumerProtocolAssignment(1, [], b"")
            self.assignor.on_assignment(assignment or nothing, generation)


@pytest.fixture
def round_of() -> Round:
    return Round()


def test_what_a_member_claims_is_given_to_nobody_however_often_it_was_told(round_of: Round) -> None:
    """Others began the rounds: it may have thrown its joins away."""
    for generation in range(1, 4 * PATIENCE):
        other = f"other{generation}"
        given = round_of(generation, {"leader": ([], -1), "slow": ([0, 1, 2, 3], 0), other: ([], -1)})
        assert given["leader"] == given[other] == []


def test_a_leader_begins_rounds_by_itself_and_then_leaves_claims_with_claimants(
    round_of: Round, caplog: pytest.LogCaptureFixture
) -> None:
    members = {"leader": ([], -1), "clinging": ([0, 1, 2, 3], -1)}
    waits = []
    for generation in range(1, PATIENCE + 1):
        assert round_of(generation, members) == {"leader": [], "clinging": [0, 1]}
        waits.append(round_of.wait())
        assert round_of.host.rejoins == 2 * generation  # each join is marked as one, too
    assert waits == [2.0, 4.0, 8.0]
    assert "Leaving" not in caplog.text
    assert round_of(PATIENCE + 1, members) == {"leader": [], "clinging": [0, 1, 2, 3]}
    assert round_of.host.later == []
    assert "Leaving 2 partitions with members that still claim them, though asked 4 times" in caplog.text
    assert caplog.text.count("restart them: clinging") == 1
    # In the next rebalance it is asked again: it may have been slow, and no more.
    assert round_of(PATIENCE + 2, members) == {"leader": [], "clinging": [0, 1]}


def test_a_round_that_somebody_else_begins_counts_for_nothing(round_of: Round) -> None:
    members = {"leader": ([], -1), "clinging": ([0, 1, 2, 3], -1)}
    for generation in range(1, PATIENCE + 1):
        round_of(generation, members)
        round_of.wait()
    # The generation in between was another leader's.
    assert round_of(PATIENCE + 2, members) == {"leader": [], "clinging": [0, 1]}


def test_rounds_of_others_among_those_of_the_leader_count_for_nothing(round_of: Round) -> None:
    members = {"leader": ([], -1), "clinging": ([0, 1, 2, 3], -1)}
    for generation in range(1, 6 * PATIENCE):
        assert round_of(generation, members)["clinging"] == [0, 1]
        if generation % PATIENCE:  # else a member joins before the leader does
            round_of.wait()


def test_a_round_with_other_members_than_the_one_before_counts_for_nothing(round_of: Round) -> None:
    for generation in range(1, 4 * PATIENCE):
        members = {"leader": ([], -1), "clinging": ([0, 1, 2, 3], -1), f"other{generation}": ([], -1)}
        assert round_of(generation, members)["leader"] == []
        round_of.wait()


def test_who_lets_go_after_all_is_no_error(round_of: Round, caplog: pytest.LogCaptureFixture) -> None:
    for generation in range(1, PATIENCE + 1):
        round_of(generation, {"leader": ([], -1), "clinging": ([0, 1, 2, 3], -1)})
        round_of.wait()
    members = {"leader": ([], -1), "clinging": ([0, 1], -1)}
    assert round_of(PATIENCE + 1, members) == {"leader": [2, 3], "clinging": [0, 1]}
    assert "Leaving" not in caplog.text


def test_both_rounds_of_a_rebalance_share_what_may_move() -> None:
    round_of = Round(max_moves=1)
    assert round_of(1, {"a": ([0, 1, 2, 3], 0), "b": ([], -1)}) == {"a": [0, 1, 2], "b": []}
    assert round_of(2, {"a": ([0, 1, 2], 1), "b": ([], 1)}) == {"a": [0, 1, 2], "b": [3]}
    assert round_of.host.later == []
    # The next rebalance may move as many again.
    assert round_of(3, {"a": ([0, 1, 2], 2), "b": ([3], 2)}) == {"a": [0, 1], "b": [3]}
    # So may one that another member begins before the second round.
    members = {"a": ([0, 1], 3), "b": ([3], 3), "c": ([], -1)}
    assert round_of(4, members) == {"a": [0, 1], "b": [3], "c": [2]}


def test_a_plan_that_another_leader_followed_up_is_no_evidence(round_of: Round) -> None:
    """Since then b was given all, which this leader does not know."""
    assert round_of(1, {"a": ([0, 1], 0), "b": ([2, 3], 0)}) == {"a": [0, 1], "b": [2, 3]}
    round_of.follows(2)
    given = round_of(3, {"a": ([0, 1], 1), "b": ([0, 1, 2, 3], 2)})
    assert (given["a"], len(given["b"])) == ([], 2)


def test_a_former_leader_follows_like_any_other(round_of: Round) -> None:
    round_of(1, {"leader": ([], -1), "s": ([0, 1, 2, 3], 0)})
    round_of.follows(2, ConsumerProtocolAssignment(1, [], UNFINISHED))
    assert round_of.wait() == 2.0 * 2**PATIENCE


def test_asking_again_in_one_generation_counts_once(round_of: Round) -> None:
    members = {"leader": ([], -1), "clinging": ([0, 1, 2, 3], -1)}
    for generation in range(1, PATIENCE + 1):
        for delivered in (False, True):
            assert round_of(generation, members, delivered=delivered)["clinging"] == [0, 1]
        round_of.wait()
    assert round_of(PATIENCE + 1, members)["clinging"] == [0, 1, 2, 3]


def test_what_several_claim_for_ever_is_left_with_the_newest_claimant(round_of: Round) -> None:
    """The older claim is the false one: a member that took a later assignment knows better."""
    members = {"leader": ([], -1), "new": ([0, 1, 2, 3], 6), "old": ([0, 1, 2, 3], 5)}
    for generation in range(9, 9 + PATIENCE):
        assert round_of(generation, members)["leader"] == []
        round_of.wait()
    assert round_of(9 + PATIENCE, members) == {"leader": [], "new": [0, 1, 2, 3], "old": []}


def test_claims_of_a_topic_without_subscription_are_given_away_in_the_end(round_of: Round) -> None:
    members = {"leader": ([], -1), "narrow": ([0, 1, 2, 3], 0)}
    topics = {"narrow": ["u"]}
    for generation in range(1, PATIENCE + 1):
        assert round_of(generation, members, topics=topics) == {"leader": [], "narrow": []}
        round_of.wait()
    assert round_of(PATIENCE + 1, members, topics=topics)["leader"] == [0, 1, 2, 3]


def test_what_a_standby_never_revokes_it_keeps(round_of: Round, caplog: pytest.LogCaptureFixture) -> None:
    """It subscribes and may be reading: another owner would be a second one."""
    members = {"active": ([], -1), "clinging": ([0, 1], 1)}
    for generation in range(2, PATIENCE + 2):
        assert round_of(generation, members, standby=("clinging",)) == {"active": [2, 3], "clinging": []}
        round_of.wait()
        members = {"active": ([2, 3], generation), "clinging": ([0, 1], 1)}
    given = round_of(PATIENCE + 2, members, standby=("clinging",))
    assert given == {"active": [2, 3], "clinging": [0, 1]}
    assert "Leaving 2 partitions with members that still claim them, though asked 4 times" in caplog.text


def test_a_standby_revokes_before_the_active_member_gets_anything(round_of: Round) -> None:
    members = {"active": ([], -1), "passive": ([0, 1, 2, 3], 1)}
    assert round_of(2, members, standby=("passive",)) == {"active": [], "passive": []}
    members = {"active": ([], 2), "passive": ([], 2)}
    assert round_of(3, members, standby=("passive",)) == {"active": [0, 1, 2, 3], "passive": []}
    assert round_of.host.later == []


def test_a_static_standby_that_may_hang_keeps_what_another_leader_may_have_given_it(round_of: Round) -> None:
    members = {"leader": ([0], 6), "s": ([1], 5)}
    given = round_of(7, members, static=("s",), standby=("s",))
    assert given == {"leader": [0], "s": []}
    members = {"leader": ([0], 7), "s": ([], 7)}
    assert round_of(8, members, static=("s",), standby=("s",)) == {"leader": [0, 1, 2, 3], "s": []}


def test_a_liar_who_says_the_last_generation_takes_nothing_from_its_holders(round_of: Round) -> None:
    """The leader knows that its own plan gave them to somebody else."""
    assert round_of(1, {"a": ([0, 1], 0), "b": ([2, 3], 0)}) == {"a": [0, 1], "b": [2, 3]}
    given = round_of(2, {"a": ([0, 1], 1), "b": ([0, 1, 2, 3], 1)})
    assert given == {"a": [0, 1], "b": [2, 3]}
    assert round_of.host.later == []


@pytest.mark.parametrize("stated", [5, 6, 2**31 - 1])
def test_a_generation_that_is_yet_to_come_counts_for_nothing(stated: int, round_of: Round) -> None:
    """Nobody has an assignment of the generation that is planned, either."""
    given = round_of(5, {"a": ([0, 1], 4), "b": ([0, 1, 2, 3], stated)})
    assert given == {"a": [0, 1], "b": [2, 3]}


def test_a_holder_that_says_the_generation_it_joined_but_did_not_get_is_waited_for(round_of: Round) -> None:
    """Java's consumer does."""
    assert round_of(1, {"leader": ([], -1), "java": ([0, 1, 2, 3], 0)})["java"] == [0, 1]
    given = round_of(2, {"leader": ([], -1), "java": ([0, 1, 2, 3], 1), "new": ([], -1)})
    assert given["leader"] == given["new"] == []


def test_a_static_member_may_still_take_what_the_last_plan_gave_it(round_of: Round) -> None:
    """The coordinator keeps its old subscription while it does not join."""
    static = ("s",)
    assert round_of(1, {"leader": ([], -1), "s": ([], -1)}, static=static) == {
        "leader": [0, 2],
        "s": [1, 3],
    }
    given = round_of(2, {"leader": ([0, 2], 1), "s": ([], -1), "new": ([], -1)}, static=static)
    # What the static member may have is not free: the newcomer waits for it.
    assert given == {"leader": [0, 2], "s": [1], "new": []}


def test_only_the_static_member_may_still_take_what_the_last_plan_gave(round_of: Round) -> None:
    static = ("s",)
    round_of(1, {"leader": ([], -1), "s": ([], -1)}, static=static)
    given = round_of(2, {"leader": ([], 1), "new": ([], -1), "s": ([], -1)}, static=static)
    assert given == {"leader": [0], "new": [2], "s": [1, 3]}


def test_what_a_silent_static_member_claims_anyway_is_one_claim() -> None:
    groups: list[Group] = []

    def planner(group: Group) -> Plan:
        groups.append(group)
        return plan_quickly(group)

    round_of = Round(planner=planner)
    for generation, stated in ((1, -1), (2, 1)):
        members = {"a": ([], stated), "leader": ([], stated), "s": ([2], 0)}
        given = round_of(generation, members, static=("a", "s"), existing={"t": range(6)})
    claims = groups[-1].claims
    of_s = groups[-1].members.ids.index("s")
    assert given["s"] == claims.partition.tolist()
    assert set(claims.member.tolist()) == {of_s}


def test_of_its_own_last_plan_a_leader_knows_what_a_static_member_cannot_have(round_of: Round) -> None:
    """It has not taken that, and may; what the plan gave to a member that left is free."""
    static, members = ("s",), {"c": ([2, 3], 6), "leader": ([0], 6), "s": ([1], 6)}
    assert round_of(7, members, static=static) == {"c": [2, 3], "leader": [0], "s": [1]}
    given = round_of(8, {"leader": ([0], 7), "s": ([1], 6)}, static=static)
    assert given == {"leader": [0, 2], "s": [1, 3]}


@pytest.mark.parametrize("hears_of_it", [True, False])
def test_of_another_leaders_last_plan_nobody_knows_what_a_static_member_has(
    hears_of_it: bool, round_of: Round
) -> None:
    static, members = ("s",), {"c": ([2, 3], 5), "leader": ([0], 5), "s": ([1], 5)}
    round_of(6, members, static=static)
    if hears_of_it:
        round_of.follows(7)
    assert round_of(8, {"leader": ([0], 6), "s": ([1], 6)}, static=static) == {"leader": [0], "s": [1]}


def test_a_static_member_may_hang_with_what_another_leader_gave_it(round_of: Round) -> None:
    """It says generation 5 for ever: whether it was in generation 6, and with what, nobody can tell."""
    static = ("s",)
    members = {"leader": ([0], 6), "s": ([1], 5), "new": ([], -1)}
    for generation in range(7, 7 + PATIENCE):
        assert round_of(generation, members, static=static) == {"leader": [0], "s": [1], "new": []}
        round_of.wait()
        members = {**members, "leader": ([0], generation), "new": ([], generation)}
    # A member that has gone by itself for so long is no reason to leave partitions without an owner.
    assert round_of(7 + PATIENCE, members, static=static) == {"leader": [0, 3], "s": [1], "new": [2]}


def test_a_static_member_that_may_hang_keeps_nothing_of_other_topics(round_of: Round) -> None:
    """Nor does it keep from anybody what somebody holds, whatever the numbers of partitions and members."""
    members = {"a": ([], 6), "b": ([3], 6), "s": ([1], 5)}
    topics = {"a": ["t", "u"], "b": ["t", "u"], "s": ["t"]}
    round_of(7, members, static=("s",), topics=topics, existing={"t": range(4), "u": range(2)})
    assert {name: assignment.partitions() for name, assignment in round_of.raw.items()} == {
        "a": [("u", 0)],
        "b": [("t", 3), ("u", 1)],
        "s": [("t", 1)],
    }


def test_a_static_member_that_missed_a_plan_is_asked_once_more(round_of: Round) -> None:
    static = ("s",)
    assert round_of(7, {"leader": ([0], 6), "s": ([1], 5)}, static=static) == {"leader": [0], "s": [1]}
    assert round_of(8, {"leader": ([0], 7), "s": ([1], 7)}, static=static) == {"leader": [0, 2], "s": [1, 3]}


@pytest.mark.parametrize(
    ("said", "static"), [(5, ()), (-1, ("s",)), (6, ("s",))], ids=["dynamic", "new", "in the last generation"]
)
def test_what_nobody_claims_is_given_away_at_once_otherwise(said: int, static: tuple[str, ...]) -> None:
    """The coordinator removes dynamic members that hang."""
    given = Round()(7, {"leader": ([0], 6), "s": ([1] if said >= 0 else [], said)}, static=static)
    assert sorted([*given["leader"], *given["s"]]) == [0, 1, 2, 3]


def test_static_members_are_told_that_a_round_follows_and_begin_it_if_nobody_does(round_of: Round) -> None:
    static = ("s",)
    round_of(1, {"leader": ([], -1), "s": ([0, 1, 2, 3], 0)}, static=static)
    assert round_of.raw["s"].user_data == UNFINISHED
    assert not round_of.raw["leader"].user_data
    follower = CooperativeStickyAssignor()
    host = HandHost()
    with calls(host):
        follower.metadata({"t"})
        host.generation = 1
        follower.on_assignment(round_of.raw["s"], 1)
    ((seconds, action),) = host.later
    before = host.rejoins
    action(host)
    assert (seconds, host.rejoins) == (2.0 * 2**PATIENCE, before + 1)
    round_of(2, {"leader": ([2, 3], 1), "s": ([0, 1], 1)}, static=static)
    assert not round_of.raw["s"].user_data


@pytest.mark.parametrize("change", ["another generation", "closed"])
def test_a_round_is_not_begun_when_it_has_become_pointless(change: str, round_of: Round) -> None:
    round_of(1, {"leader": ([], -1), "slow": ([0, 1, 2, 3], 0)})
    before = round_of.host.rejoins
    if change == "closed":
        round_of.host.closed = True
    else:
        round_of.host.generation = 2
    round_of.wait()
    assert round_of.host.rejoins == before


def test_a_join_calls_off_the_round_that_was_to_begin(round_of: Round) -> None:
    round_of(1, {"leader": ([], -1), "slow": ([0, 1, 2, 3], 0)})
    assert len(round_of.host.later) == 1
    with calls(round_of.host):
        round_of.assignor.metadata({"t"})
    assert round_of.host.later == []


def test_a_topic_that_came_since_the_last_plan_was_given_to_nobody(round_of: Round) -> None:
    assert round_of(1, {"a": ([], -1), "b": ([], -1)}, existing={"t": []}) == {"a": [], "b": []}
    assert round_of(2, {"a": ([], 1), "b": ([], 1)}) == {"a": [0, 2], "b": [1, 3]}


def test_told_partitions_are_found_again_when_topics_change(round_of: Round) -> None:
    """What the last plan gave is evidence also when numbers of partitions shift."""
    assert round_of(1, {"a": ([0, 1], 0), "b": ([2, 3], 0)})["b"] == [2, 3]
    members, topics = {"a": ([0, 1], 1), "b": ([0, 1, 2, 3], 1)}, {"a": ["a", "t"], "b": ["a", "t"]}
    round_of(2, members, topics=topics, existing={"a": range(2), "t": [0, 1, 3, 7]})
    given = {name: assignment.partitions() for name, assignment in round_of.raw.items()}
    assert ("t", 0) in given["a"]
    assert ("t", 1) in given["a"]
    assert ("t", 3) in given["b"]


def test_giving_up_on_a_false_claim_needs_memory_for_claims_not_for_all_pairs() -> None:
    partitions, members = 20_000, 500  # 80 MB, if each pair of both took a number
    everything = {"t": range(partitions)}
    group = Group.of(
        everything,
        [
            Member(
                member_id=f"m{number:03}",
                topics=frozenset({"t"}),
                claims=everything if number == 0 else {"t": range(40 * number, 40 * number + 40)},
                generation=5,
                holds=True,
            )
            for number in range(members)
        ],
    )
    plan = plan_quickly(group)
    awaited, owner = awaited_holders(plan), plan.owner.copy()
    _, peak = with_memory(lambda: HandOver._leave(plan, awaited, owner))
    assert peak < 10_000_000
