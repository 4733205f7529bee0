"""Our planners and bytes against Apache Kafka's own Java classes, on random groups.

Each group comes from a seed, which a failure names. Left out are inputs that Kafka's own sticky assignor
gets wrong: members without topics where all others agree, claims on partitions that a topic has lost, two
claims of one generation below the newest, and a claim on a topic that its member left against another claim.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any

import pytest

from kafka_assignors._assignors._messages import encode_assignments, make_subscription
from kafka_assignors._model.claims import NO_EXTRA, Extra
from kafka_assignors._model.group import NO_GENERATION, Group, Member
from kafka_assignors._model.plan import Plan
from kafka_assignors._wire.java.orders import string_order
from kafka_assignors._wire.user_data import StickyUserData, decode_sticky, encode_generation, encode_sticky
from kafka_assignors.planners import hand_over, plan_exact
from kafka_assignors.planners._kip54 import plan_kip54
from kafka_assignors.planners._range import plan_range
from kafka_assignors.planners._round_robin import plan_round_robin
from tests.support.by_hand import partitions_in
from tests.support.java.oracle import JavaOracle
from tests.support.kafka_scenarios import assert_no_single_move_helps, assert_valid, cost, flat_all
from tests.support.random_groups import ALPHABET, settled
from tests.support.scale import few, scaled

Assignments = Mapping[str, dict[str, list[int]]]
Racks = dict[str, list[list[str]]]

CASES = scaled(3000)


@dataclass(frozen=True)
class Case:
    """A random group. `topics` has the number of partitions of each topic, `racks` those of the replicas."""

    seed: int
    topics: dict[str, int]
    members: list[Member]
    racks: Racks | None = None

    @cached_property
    def group(self) -> Group:
        replica_racks = None
        if self.racks is not None:
            replica_racks = {
                (topic, number): frozenset(places)
                for topic, partitions in self.racks.items()
                for number, places in enumerate(partitions)
            }
        return Group.of({t: range(n) for t, n in self.topics.items()}, self.members, replica_racks)

    @property
    def request(self) -> dict[str, Any]:
        return {
            "topics": self.topics if self.racks is None else self.racks,
            "members": [
                {
                    "member_id": member.member_id,
                    "instance_id": member.instance_id,
                    "topics": sorted(member.topics),
                    "rack": member.rack,
                    "owned": None
                    if member.generation == NO_GENERATION and not member.claims
                    else {topic: list(ids) for topic, ids in member.claims.items()},
                    "generation": member.generation,
                }
                for member in self.members
            ],
        }


def answers_of(java: JavaOracle, strategy: str, cases: Sequence[Case]) -> Iterator[tuple[Case, Assignments]]:
    """Java's assignment of each case, with an entry for each member, partitions ascending."""
    for case, lists in lists_of(java, strategy, cases):
        yield (
            case,
            {
                member: {topic: sorted(ids) for topic, ids in sorted(partitions.items())}
                for member, partitions in lists.items()
            },
        )


def lists_of(java: JavaOracle, strategy: str, cases: Sequence[Case]) -> Iterator[tuple[Case, Assignments]]:
    """Java's assignment of each case, with an entry for each member, partitions of a topic as they come."""
    for case, answer in zip(cases, java.assign(strategy, [case.request for case in cases]), strict=True):
        assert "exception" not in answer, f"seed {case.seed}: {answer}"
        yield case, answer["assignment"]


def random_name(rng: Random, taken: set[str]) -> str:
    while True:
        name = "".join(rng.choices(ALPHABET, k=rng.randint(1, 4)))
        if name not in taken:
            taken.add(name)
            return name


def random_members(
    rng: Random, topics: Sequence[str], count: int, *, equal: bool, plain: bool = False
) -> list[Member]:
    """Members in random order; with equal subscriptions or not; static, dynamic or mixed unless `plain`."""
    static = 0.0 if plain else rng.choice([0, 0, 0.5, 1])
    ghosts = ["ghost"] if rng.random() < 0.2 else []
    ids: set[str] = set()
    instances: set[str] = set()
    members = []
    for _ in range(count):
        mine = list(topics) if equal else rng.sample(topics, rng.randint(0, len(topics)))
        instance = random_name(rng, instances) if rng.random() < static else None
        members.append(
            Member(
                member_id=random_name(rng, ids),
                instance_id=instance,
                topics=frozenset(mine + (ghosts if equal or rng.random() < 0.5 else [])),
            )
        )
    return members


def random_case(seed: int) -> Case:
    """A group without history: for range and round robin."""
    rng = Random(seed)
    counts = [rng.randint(1, 12)] if rng.random() < 0.3 else range(13)
    topics = {f"t{number}": rng.choice(counts) for number in range(rng.randint(1, 6))}
    members = random_members(rng, list(topics), rng.randint(1, 12), equal=rng.random() < 0.4)
    return Case(seed, topics, members)


def random_rack_case(seed: int) -> Case:
    """A group without history in up to four racks, often with topics that lie alike."""
    rng = Random(seed)
    case = random_case(seed)
    everywhere = [f"rack{number}" for number in range(rng.randint(1, 4))]
    replicas = rng.randint(1, min(3, len(everywhere)))
    alike = rng.random() < 0.5
    layout = {}
    for topic, count in case.topics.items():
        layout[topic] = [
            [everywhere[(number + step) % len(everywhere)] for step in range(replicas)]
            if alike
            else rng.sample(everywhere, rng.randint(1, replicas))
            for number in range(count)
        ]
    if rng.random() < 0.1:
        for partitions in layout.values():
            for places in rng.sample(partitions, len(partitions) // 2):
                places.clear()  # brokers that do not say where they are
    choices = everywhere * 3 + (["elsewhere", None, ""] if rng.random() < 0.5 else [])
    members = [replace(member, rack=rng.choice(choices)) for member in case.members]
    return Case(seed, case.topics, members, layout)


def spread(
    rng: Random, topics: Mapping[str, int], members: Sequence[Member]
) -> dict[str, dict[str, list[int]]]:
    """A past assignment: each partition to the least loaded subscriber, or (sometimes) to any or none."""
    wild = rng.random() < 0.4
    loads = Counter({member.member_id: 0 for member in members})
    owned: dict[str, dict[str, list[int]]] = {member.member_id: {} for member in members}
    for topic, count in topics.items():
        subscribers = [member.member_id for member in members if topic in member.topics]
        for partition in range(count):
            if not subscribers or (wild and rng.random() < 0.1):
                continue
            least = min(loads[name] for name in subscribers)
            name = rng.choice([name for name in subscribers if wild or loads[name] == least])
            loads[name] += 1
            owned[name].setdefault(topic, []).append(partition)
    return owned


def random_sticky_case(
    seed: int, *, equal: bool, conflicts: bool = False, plain: bool = False, holds: bool = False
) -> Case:
    """A group with a history: after members joined and left, topics grew, came and went.

    With `conflicts` members missed generations, or claim what others claim; if `plain`, all are dynamic.
    """
    rng = Random(seed)
    topics = {f"t{number}": rng.randint(1, 8) for number in range(rng.randint(1, 5))}
    now = random_members(rng, list(topics), rng.randint(1, 8), equal=equal, plain=plain)
    if len({member.topics for member in now if member.topics}) < 2:
        now = [member for member in now if member.topics] or [replace(now[0], topics=frozenset(topics))]
    if rng.random() < 0.2:
        return Case(seed, topics, now)

    before = {
        topic: rng.randint(1, count) if rng.random() < 0.2 else count for topic, count in topics.items()
    }
    if rng.random() < 0.2:
        del before[rng.choice(list(before))]
    if rng.random() < 0.2:
        before["gone"] = 3
    then = [
        replace(member, topics=member.topics | {"gone"})
        if equal or rng.random() < 0.8
        else replace(member, topics=frozenset(rng.sample(list(topics), rng.randint(0, len(topics)))))
        for member in now
        if rng.random() < 0.85
    ]
    then += [
        Member(member_id=f"left{number}", topics=frozenset(topics)) for number in range(rng.randint(0, 2))
    ]
    owned = spread(rng, before, then)
    generation = rng.randint(1, 30)
    members = [
        replace(member, claims=owned[member.member_id], generation=generation, holds=holds)
        if member.member_id in owned
        else replace(member, holds=holds)
        for member in now
    ]
    if conflicts:
        members = add_conflicts(rng, members, before, generation)
    return Case(seed, topics, members)


def add_conflicts(
    rng: Random, members: Sequence[Member], topics: Mapping[str, int], generation: int
) -> list[Member]:
    """Let some members miss generations, and let them claim more; without Kafka's own bad corners."""
    generations = [
        rng.choice([generation, generation - 1, rng.randrange(generation), NO_GENERATION])
        if rng.random() < 0.5
        else member.generation
        for member in members
    ]
    claimed: dict[tuple[str, int], list[int]] = {}
    for number, member in enumerate(members):
        for topic, ids in member.claims.items():
            for partition in ids:
                claimed.setdefault((topic, partition), []).append(number)
    for topic, count in topics.items():
        for partition in range(count):
            if rng.random() < 0.3:
                claimed.setdefault((topic, partition), []).append(rng.randrange(len(members)))

    claims: list[dict[str, list[int]]] = [{} for _ in members]
    for (topic, partition), claimants in claimed.items():
        subscribed = [number for number in dict.fromkeys(claimants) if topic in members[number].topics]
        subscribed.sort(key=lambda number: -generations[number])
        newest = [number for number in subscribed if generations[number] == generations[subscribed[0]]]
        older = [generations[number] for number in subscribed[len(newest) :]]
        past = bool(subscribed) and generations[subscribed[0]] < max(generations)
        if len(set(older)) < len(older) or (len(newest) > 1 and past):
            subscribed = subscribed[:1]
        rng.shuffle(subscribed)
        for number in subscribed:
            claims[number].setdefault(topic, []).append(partition)
    return [
        replace(member, claims=claims[number], generation=generations[number])
        for number, member in enumerate(members)
    ]


def counts_of(assignments: Assignments) -> dict[str, dict[str, int]]:
    return {
        member: {topic: len(ids) for topic, ids in partitions.items()}
        for member, partitions in assignments.items()
    }


def fewest_moves(group: Group) -> int:
    """With equal subscriptions: what members own above their share, less the extras that they may keep."""
    share, extras = divmod(group.size, len(group.members))
    owned = Counter(settled(group).values())
    above = [count - share for count in owned.values() if count > share]
    return sum(above) - min(extras, len(above))


def check_by_kafkas_rules(case: Case, plan: Plan) -> None:
    """Complete, to subscribers only, nothing twice; nothing can go to a member that has two or more less."""
    wanted = frozenset[str]().union(*(member.topics for member in case.members))
    every = {(topic, number) for topic in case.topics.keys() & wanted for number in range(case.topics[topic])}
    try:
        assert set().union(*flat_all(plan.assignments()).values()) == every
        assert_valid(case.group, plan.assignments())
        assert_no_single_move_helps(plan)
    except AssertionError as error:
        error.add_note(f"seed {case.seed}")
        raise


@pytest.mark.parametrize(
    ("strategy", "planner", "make"),
    [
        pytest.param("range", plan_range, random_case, id="range"),
        pytest.param("range", plan_range, random_rack_case, id="range-racks"),
        pytest.param("roundrobin", plan_round_robin, random_case, id="roundrobin"),
    ],
)
def test_range_and_round_robin_are_exactly_javas(
    java: JavaOracle, strategy: str, planner: Callable[[Group], Plan], make: Callable[[int], Case]
) -> None:
    cases = [make(seed) for seed in range(CASES)]
    for case, theirs in answers_of(java, strategy, cases):
        assert planner(case.group).assignments() == theirs, f"seed {case.seed}"


def test_racks_often_matter_in_the_rack_cases() -> None:
    cases = [random_rack_case(seed) for seed in range(scaled(500))]
    plain = [replace(case, racks=None) for case in cases]
    different = sum(
        plan_range(with_racks.group).assignments() != plan_range(without.group).assignments()
        for with_racks, without in zip(cases, plain, strict=True)
    )
    assert few() or different > scaled(100)


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
@pytest.mark.parametrize("conflicts", [False, True], ids=["clean", "conflicts"])
def test_equal_subscriptions_get_javas_plan_partition_by_partition_in_its_order_and_kip54s_is_as_good(
    java: JavaOracle, strategy: str, *, conflicts: bool
) -> None:
    holds = strategy == "cooperative-sticky"
    drawn = (random_sticky_case(seed, equal=True, conflicts=conflicts, holds=holds) for seed in range(CASES))
    # Ids of one bin of Java's hash map are walked as they were put: by id, as here.
    cases = [
        replace(case, members=sorted(case.members, key=lambda member: string_order(member.member_id)))
        for case in drawn
    ]
    chosen = moves = 0
    for case, theirs in lists_of(java, strategy, cases):
        goal, plan = plan_exact(case.group), plan_kip54(case.group)
        sent = encode_assignments(hand_over(goal) if holds else goal)
        assert {member: partitions_in(sent[member]) for member in sent} == theirs, f"seed {case.seed}"
        check_by_kafkas_rules(case, plan)
        assert cost(case.group, plan.assignments()) == cost(case.group, goal.assignments()), case.seed
        assert plan.moves == fewest_moves(case.group), f"seed {case.seed}"
        moves += plan.moves
        chosen += goal.assignments() != plan.assignments()
    assert few() or moves > CASES / 4
    assert few() or chosen > CASES / 100, "no choice of Java differed from those of KIP-54"


@pytest.mark.parametrize("seed", range(scaled(5)))
def test_a_large_group_that_java_and_exact_lead_in_turn_gets_one_plan(java: JavaOracle, seed: int) -> None:
    rng = Random(seed)
    topics = {f"topic-{number}": rng.randint(10, 300) for number in range(rng.randint(1, 5))}
    members: dict[str, Member] = {}
    for generation in range(1, 13):
        for _ in range(rng.randint(1, 120 - len(members)) if rng.random() < 0.6 else 0):
            name = f"consumer-{rng.getrandbits(64):x}"
            members[name] = Member(member_id=name, topics=frozenset(topics))
        for name in rng.sample(sorted(members), rng.randint(0, len(members) // 2)):
            del members[name]
        if not members:
            continue
        in_order = [members[name] for name in sorted(members)]
        ((case, theirs),) = answers_of(java, "sticky", [Case(seed, topics, in_order)])
        assert plan_exact(case.group).assignments() == theirs, f"seed {seed}, generation {generation}"
        members = {
            name: replace(member, claims=theirs[name], generation=generation)
            for name, member in members.items()
        }


@pytest.mark.parametrize(
    ("strategy", "conflicts"), [("sticky", False), ("sticky", True), ("cooperative-sticky", False)]
)
def test_unequal_subscriptions_of_dynamic_members_give_javas_plan(
    java: JavaOracle, strategy: str, *, conflicts: bool
) -> None:
    # Which of several partitions of a topic moves back is the choice of Java's HashSet.
    how = {"conflicts": conflicts, "plain": True, "holds": strategy == "cooperative-sticky"}
    cases = [random_sticky_case(seed, equal=False, **how) for seed in range(CASES)]
    compared = same = 0
    for case, theirs in answers_of(java, strategy, cases):
        group = case.group
        if group.uniform:  # in the topics that exist; Java takes unknown ones into account
            continue
        plan = plan_kip54(group)
        ours = (hand_over(plan) if how["holds"] else plan).assignments()
        assert counts_of(ours) == counts_of(theirs), f"seed {case.seed}"
        assert how["holds"] or plan.moves == cost(group, theirs)[2], f"seed {case.seed}"
        compared += 1
        same += ours == theirs
    assert few() or compared > CASES / 2
    assert few() or same > 0.99 * compared


@pytest.mark.parametrize("conflicts", [False, True], ids=["clean", "conflicts"])
def test_unequal_subscriptions_are_balanced_as_well_as_javas_and_exact_plans_never_worse(
    java: JavaOracle, *, conflicts: bool
) -> None:
    # With static members ties fall differently: Java goes by the member id, which changes with a restart.
    cases = [random_sticky_case(seed, equal=False, conflicts=conflicts) for seed in range(CASES)]
    same_loads = same_moves = our_squares = their_squares = our_moves = their_moves = better = 0
    for case, theirs in answers_of(java, "sticky", cases):
        plan = plan_kip54(case.group)
        check_by_kafkas_rules(case, plan)
        mine, javas = cost(case.group, plan.assignments()), cost(case.group, theirs)
        same_loads += mine[0] == javas[0]
        same_moves += plan.moves == mine[2] == javas[2]
        our_squares += sum(load**2 for load in mine[0])
        their_squares += sum(load**2 for load in javas[0])
        our_moves += plan.moves
        their_moves += javas[2]
        exact = plan_exact(case.group)
        check_by_kafkas_rules(case, exact)
        best = cost(case.group, exact.assignments())
        assert best <= javas, f"seed {case.seed}"
        better += best < javas
    assert few() or same_loads > 0.98 * CASES
    assert few() or same_moves > 0.97 * CASES
    assert few() or our_squares <= 1.001 * their_squares
    assert few() or our_moves <= 1.01 * their_moves
    assert few() or better > CASES / 100


@pytest.mark.parametrize("conflicts", [False, True], ids=["clean", "conflicts"])
def test_cooperative_rounds_hold_back_as_many_partitions_as_javas_and_claims_are_settled_alike(
    java: JavaOracle, *, conflicts: bool
) -> None:
    """Where nobody owns above the share, Java keeps every valid claim, and holds back what is contested."""
    cases = [random_sticky_case(seed, equal=True, conflicts=conflicts, holds=True) for seed in range(CASES)]
    owned = contested = 0
    for case, theirs in answers_of(java, "cooperative-sticky", cases):
        group = case.group
        plan = hand_over(plan_kip54(group))
        given = flat_all(theirs)
        assert plan.partitions.size == sum(map(len, given.values())), f"seed {case.seed}"
        owners = settled(group)
        if max(Counter(owners.values()).values(), default=0) > group.size // len(group.members):
            continue
        held_back = {group.name_of(partition) for partition in range(group.size)}.difference(*given.values())
        claimed = {group.name_of(partition) for partition in set(group.holders[:, 0].tolist())}
        for partition, owner in owners.items():
            assert partition in given[owner], f"seed {case.seed}"
        assert held_back == claimed - owners.keys(), f"seed {case.seed}"
        owned += len(owners)
        contested += len(held_back)
    assert few() or owned > CASES
    assert few() or not conflicts or contested > scaled(100)


def random_claims(rng: Random) -> dict[str, list[int]]:
    topics = rng.sample(["a", "b.c", "d-1", "ééé", "t" * 249], rng.randint(0, 4))
    return {topic: rng.sample(range(1000), rng.randint(1, 20)) for topic in topics}


def ascending(claims: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    return {topic: sorted(ids) for topic, ids in claims.items()}


@pytest.mark.parametrize("seed", range(20))
def test_sticky_user_data_has_javas_layout_both_ways(java: JavaOracle, seed: int) -> None:
    rng = Random(seed)
    claims, generation = random_claims(rng), rng.randint(-1, 2**31 - 1)
    member = {"strategy": "sticky", "member_id": "m", "owned": claims, "generation": generation}
    theirs = java.ask("write_user_data", member)

    ours = encode_sticky(claims, generation)
    assert len(ours) == len(bytes.fromhex(theirs))
    assert java.ask("read_sticky", ours.hex()) == {"owned": ascending(claims), "generation": generation}
    assert decode_sticky(bytes.fromhex(theirs)) == StickyUserData(claims, generation)

    without_generation = bytes.fromhex(theirs)[:-4]
    assert java.ask("read_sticky", without_generation.hex()) == {"owned": claims, "generation": None}
    assert decode_sticky(without_generation) == StickyUserData(claims, NO_GENERATION)


@pytest.mark.parametrize(
    "extra", [NO_EXTRA, Extra(-1), Extra(1000, b"any")], ids=["weight", "priority", "data"]
)
def test_java_reads_past_what_a_member_appends(java: JavaOracle, extra: Extra) -> None:
    claims = {"t": [0, 1]}
    longer = encode_sticky(claims, 7, weight=2, extra=extra)
    assert longer != encode_sticky(claims, 7)
    assert java.ask("read_sticky", longer.hex()) == {"owned": claims, "generation": 7}


@pytest.mark.parametrize("seed", range(20))
def test_subscriptions_are_javas_to_the_byte(java: JavaOracle, seed: int) -> None:
    rng = Random(seed)
    claims, generation = random_claims(rng), rng.randint(-1, 1000)
    topics = rng.sample(["x", "a", "ß", "t" * 249], rng.randint(0, 4))
    rack = rng.choice([None, "eu-west-1a", "é"])
    user_data = rng.choice([None, b"", encode_generation(generation)])
    ours = make_subscription(topics, owned=claims, generation=generation, rack=rack, user_data=user_data)
    written = ours.encode()
    read = {
        "topics": sorted(topics),
        "user_data_hex": None if user_data is None else user_data.hex(),
        "owned": ascending(claims),
        "generation": generation,
        "rack": rack,
    }
    assert java.ask("read_subscription", written.hex()) == read
    assert java.ask("write_subscription", {**read, "version": 3}) == written.hex()


def test_generations_of_cooperative_members_are_javas_to_the_byte(java: JavaOracle) -> None:
    for generation in (NO_GENERATION, 0, 7, 2**31 - 1):
        member = {"strategy": "cooperative-sticky", "member_id": "m", "owned": {}, "generation": generation}
        theirs = java.ask("write_user_data", member)
        assert encode_generation(generation).hex() == theirs


@pytest.mark.parametrize("seed", range(20))
def test_assignments_are_read_by_java(java: JavaOracle, seed: int) -> None:
    partitions = ascending(random_claims(Random(seed)))
    member = Member(member_id="m", topics=frozenset(partitions))
    plan = plan_exact(Group.of(partitions, [member]))
    encoded = encode_assignments(plan)["m"].encode()
    assert java.ask("read_assignment", encoded.hex()) == partitions
