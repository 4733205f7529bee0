"""Our models of KIP-848's assignors against Kafka's own, called as the group coordinator calls them.

Each group lives through a random history: the coordinator's answer is what the next rebalance starts from.
A history comes from a seed, which a failure names.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Self
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from kafka_assignors._model.group import Group, Member
from kafka_assignors._model.plan import check
from kafka_assignors._wire.java.orders import spread_hash, string_hash, string_order
from kafka_assignors.planners._kip848_range import plan_kip848_range
from kafka_assignors.planners._kip848_uniform import plan_kip848_uniform, slot_hash
from tests.support.java.oracle import JavaOracle
from tests.support.random_groups import ALPHABET, random_case
from tests.support.scale import examples, few, scaled

Assignments = dict[str, dict[str, list[int]]]

HISTORIES = scaled(800)
REBALANCES = 6

EVENTS = ("leave", "return", "grow", "new topic", "lost topic", "subscribe", "join")


class History:
    """A group as time goes by: its members in the order in which they joined, claims in the coordinator's."""

    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, Random(seed)
        self.topics: dict[str, int] = {}
        self.topic_ids: dict[str, UUID] = {}  # also of topics that are gone
        self.members: list[Member] = []
        self.joining = False  # whether the rebalance comes with the last one's first heartbeat
        self.equal = self.rng.random() < 0.5  # whether members subscribe to the same topics
        self.names: set[str] = set()

    @classmethod
    def begun(cls, seed: int) -> Self:
        history = cls(seed)
        # Hash tables of 16 bins and of 32 grow with the 13th and the 25th key.
        for _ in range(history.rng.choice([1, 2, 3, 6, 12, 24])):
            history.add_topic()
        for _ in range(history.rng.choice([1, 2, 5, 12, 30])):
            history.add_member()
        return history

    def new_name(self) -> str:
        """Of any length up to that of a client's member id; hashes of short ones are near each other."""
        while True:
            name = "".join(self.rng.choices(ALPHABET, k=self.rng.choice([1, 2, 3, 4, 22])))
            if name not in self.names:
                self.names.add(name)
                return name

    def add_topic(self) -> None:
        # Small ids, and ids whose halves are negative numbers in Java.
        bits = self.rng.choice([16, 64, 128, 128, 128])
        while (made := UUID(int=self.rng.getrandbits(bits))) in self.topic_ids.values():
            pass
        name = self.new_name()
        self.topics[name] = self.rng.choice([1, 2, 3, 7, 20, 60])
        self.topic_ids[name] = made

    def some_topics(self) -> frozenset[str]:
        known = [*self.topics, "missing"]
        if self.equal:
            return frozenset(known[: len(known) - self.seed % 2])
        return frozenset(self.rng.sample(known, self.rng.randint(0, len(known))))

    def add_member(self) -> None:
        instance = self.new_name() if self.rng.random() < 0.3 else None
        self.members.append(
            Member(member_id=self.new_name(), topics=self.some_topics(), instance_id=instance)
        )

    def go_on(self, assigned: Assignments) -> None:
        """What happens until the next rebalance."""
        self.members = [replace(m, claims=assigned.get(m.member_id, {})) for m in self.members]
        self.joining = False
        for event in self.rng.choices(EVENTS, k=2):
            if event in {"grow", "new topic", "lost topic"}:
                self.change_topics(event)
            else:
                self.change_members(event)
        if self.equal:
            topics = self.some_topics()
            self.members = [replace(member, topics=topics) for member in self.members]

    def change_topics(self, event: str) -> None:
        if event == "grow":
            self.topics[self.rng.choice(list(self.topics))] += self.rng.randint(1, 9)
        elif event == "new topic":
            self.add_topic()
        elif len(self.topics) > 1:
            del self.topics[self.rng.choice(list(self.topics))]

    def change_members(self, event: str) -> None:
        number = self.rng.randrange(len(self.members))
        if event == "leave":
            for _ in range(min(self.rng.randint(1, 3), len(self.members) - 1)):
                del self.members[self.rng.randrange(len(self.members))]
        elif event == "return" and self.members[number].instance_id is not None:
            self.members.append(replace(self.members.pop(number), member_id=self.new_name()))
        elif event == "subscribe":
            self.equal = self.rng.random() < 0.5
            self.members[number] = replace(self.members[number], topics=self.some_topics())
        elif event == "join":
            for _ in range(self.rng.randint(1, 4)):
                self.add_member()
        self.joining = event == "join" and self.rng.random() < 0.5

    @property
    def group(self) -> Group:
        return Group.of({topic: range(size) for topic, size in self.topics.items()}, self.members)

    @property
    def group_in_order(self) -> Group:
        """With the claims in no order but their own."""
        members = [
            replace(m, claims={t: sorted(m.claims[t]) for t in sorted(m.claims)}) for m in self.members
        ]
        return Group.of({topic: range(size) for topic, size in self.topics.items()}, members)

    @property
    def request(self) -> dict[str, Any]:
        return {
            "topics": self.topics,
            "topic_ids": {topic: identity.hex for topic, identity in self.topic_ids.items()},
            "members": [
                {
                    "member_id": member.member_id,
                    "instance_id": member.instance_id,
                    "topics": sorted(member.topics, key=string_order),
                    "owned": {topic: list(ids) for topic, ids in member.claims.items()},
                }
                for member in self.members
            ],
            "joining": self.joining,
        }

    @property
    def kind(self) -> str:
        return "equal" if len({member.topics for member in self.members}) == 1 else "unequal"

    @property
    def in_order_of_hashes(self) -> bool:
        """Whether all members have joined, and no two share a bin of both of the coordinator's maps."""
        hashes = [string_hash(member.member_id) for member in self.members]
        bins = 16
        while 4 * len(hashes) > 3 * bins:
            bins *= 2
        slots = 2
        while 3 * len(hashes) > 4 * slots:
            slots *= 2
        places = {(spread_hash(value) % bins, slot_hash(value) * slots >> 64) for value in hashes}
        return not self.joining and len(places) == len(hashes)


@dataclass(frozen=True)
class Rebalance:
    """What the coordinator makes of a group: its members as listed before, and all after, ids ascending."""

    history: History
    listed: list[str]
    expected: Assignments

    @property
    def loads(self) -> dict[str, int]:
        return loads(self.expected)

    @property
    def moves(self) -> int:
        return sum(
            len(set(ids) - set(self.expected[member.member_id].get(topic, ())))
            for member in self.history.members
            for topic, ids in member.claims.items()
            if topic in member.topics & self.history.topics.keys()
        )


def rebalances(java: JavaOracle, assignor: str, *, histories: int = HISTORIES) -> Iterator[Rebalance]:
    begun = [History.begun(seed) for seed in range(histories)]
    for _ in range(REBALANCES):
        request = {"assignor": assignor, "groups": [history.request for history in begun]}
        for history, answer in zip(begun, java.ask("assign_in_coordinator", request), strict=True):
            assigned: Assignments = answer["assignment"]
            members = [member.member_id for member in history.members]
            yield Rebalance(history, answer["listed"], {m: ascending(assigned.get(m, {})) for m in members})
            history.go_on(assigned)


def ascending(partitions: Mapping[str, list[int]]) -> dict[str, list[int]]:
    return {topic: sorted(ids) for topic, ids in sorted(partitions.items())}


def loads(assignments: Mapping[str, Mapping[str, Sequence[int]]]) -> dict[str, int]:
    return {member: sum(map(len, partitions.values())) for member, partitions in assignments.items()}


def test_uniform_is_javas_to_the_partition(java: JavaOracle) -> None:
    kinds: Counter[str] = Counter()
    for rebalance in rebalances(java, "UniformAssignor"):
        history = rebalance.history
        plan = plan_kip848_uniform(history.group, topic_ids=history.topic_ids, listed=rebalance.listed)
        assert plan.assignments() == rebalance.expected, f"seed {history.seed}"
        kinds[history.kind] += 1
        # Without the order in which members are listed:
        plan = plan_kip848_uniform(history.group, topic_ids=history.topic_ids)
        equal = plan.assignments() == rebalance.expected
        assert equal or not history.in_order_of_hashes, f"seed {history.seed}"
        kinds["not listed, equal"] += equal
        if history.kind == "equal":
            assert sorted(plan.loads) == sorted(rebalance.loads.values()), f"seed {history.seed}"
            # Loads and moves need no ids, and no order of claims.
            bare = plan_kip848_uniform(history.group_in_order, listed=rebalance.listed)
            assert loads(bare.assignments()) == rebalance.loads, f"seed {history.seed}"
            assert plan.moves == bare.moves == rebalance.moves, f"seed {history.seed}"
            kinds["without ids, equal"] += bare.assignments() == rebalance.expected
    assert few() or min(kinds["equal"], kinds["unequal"]) > HISTORIES
    assert few() or HISTORIES // 10 < kinds["without ids, equal"] < kinds["equal"] - HISTORIES // 10
    assert few() or kinds["not listed, equal"] > 0.95 * HISTORIES * REBALANCES


def test_range_is_javas(java: JavaOracle) -> None:
    kinds: Counter[str] = Counter()
    for rebalance in rebalances(java, "RangeAssignor", histories=scaled(400)):
        history = rebalance.history
        assert plan_kip848_range(history.group).assignments() == rebalance.expected, f"seed {history.seed}"
        kinds[history.kind] += 1
    assert few() or min(kinds.values()) > HISTORIES // 2


def test_loads_are_evened_out_in_16_rounds_at_most_as_in_java(java: JavaOracle) -> None:
    """In a chain of topics with two subscribers each, loads move on by few topics a round."""
    chain = 25
    history = History(1)
    history.topics = {f"t{number:02}": 100 for number in range(chain)}
    history.topic_ids = {topic: UUID(int=chain - number) for number, topic in enumerate(history.topics)}
    names = list(history.topics)
    history.members = [
        Member(
            member_id=f"m{number:02}",
            topics=frozenset(names[max(number - 1, 0) : number + 1]),
            claims={names[number]: range(100)} if number < chain else {},
        )
        for number in range(chain + 1)
    ]
    moves = []
    for _ in range(3):
        request = {"assignor": "UniformAssignor", "groups": [history.request]}
        (answer,) = java.ask("assign_in_coordinator", request)
        plan = plan_kip848_uniform(history.group, topic_ids=history.topic_ids, listed=answer["listed"])
        assigned = answer["assignment"]
        assert plan.assignments() == {member: ascending(mine) for member, mine in sorted(assigned.items())}
        moves.append(plan.moves)
        history.members = [replace(m, claims=assigned[m.member_id]) for m in history.members]
    assert moves == [366, 79, 0]  # The second rebalance, of the same group, goes on where the first ended.


def test_who_is_not_listed_comes_last_of_a_bin() -> None:
    """Aa and BB have one hash."""
    members = [Member(member_id=name, topics=frozenset("a")) for name in ("Aa", "BB")]
    group = Group.of({"a": range(1)}, members)
    assert plan_kip848_uniform(group).assignments() == {"Aa": {}, "BB": {"a": [0]}}
    assert plan_kip848_uniform(group, listed=["gone", "BB"]).assignments() == {"Aa": {"a": [0]}, "BB": {}}


def test_an_id_is_needed_for_every_topic_or_for_none() -> None:
    group = Group.of({"a": range(1), "b": range(1)}, [Member(member_id="m0", topics=frozenset("ab"))])
    with pytest.raises(
        ValueError, match=r"topic_ids has none for \['b'\]: give the id of every topic, or no"
    ):
        plan_kip848_uniform(group, topic_ids={"a": UUID(int=1)})


@examples(500)
@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_plans_are_valid_and_the_order_in_which_a_group_is_described_makes_no_difference(
    seed: int, order: Random
) -> None:
    case = random_case(seed)  # with racks and weights, which the coordinator does not look at
    for planner in (plan_kip848_uniform, plan_kip848_range):
        group = case.group
        plan = planner(group)
        check(plan, group)
        assert planner(case.shuffled(order).group).assignments() == plan.assignments()
