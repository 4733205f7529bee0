"""Groups of odd structures, each made from its few numbers and a seed: what may take a planner long.

Most groups have few kinds of members and topics. These have many of both, in shapes for which algorithms
on graphs are slow: nested, overlapping and chained subscriptions, members alone with most topics, many levels
of load; with many racks, weights, and owners that fit or do not.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from benchmarks.cases import IntArray
from benchmarks.wire import string
from kafka_assignors._assignors._messages import make_subscription
from kafka_assignors._model.group import Group
from kafka_assignors._model.members import Member
from kafka_assignors._wire.user_data import encode_sticky
from kafka_assignors.planners import plan_exact

PARTITIONS: Final = 5000
MEMBERS: Final = 500

SHAPES: Final = (
    "nested",  # member k has the first k / members of the topics
    "steps",  # the same, with few large steps
    "geometric",  # member k has the first topics / 1.02^k topics
    "intervals",  # neighbouring topics from anywhere on
    "chain",  # a few neighbouring topics, each member a little further on than the one before
    "star",  # one half of the topics is everybody's, of the other each member has some for itself
    "bipartite",  # each topic with the same probability
    "all but few",  # all topics but some drawn at random
    "blocks",  # services with topics of their own, and members in two of them
    "tree",  # of halves, quarters, ... of the topics each member has one
    "layers",  # many levels of load: member k shares topics with members of about its number only
)
EVENTS: Final = ("fresh", "join", "leave", "random owners", "stale claims", "three own all")


@dataclass(frozen=True, kw_only=True)
class Structure:
    """The few numbers that a group is made from.

    Attributes:
        shape: Who subscribes to what, one of `SHAPES`.
        topics: How many topics the partitions are of.
        uneven: Topics have many partitions or few.
        members: How many members there are.
        width: How large a part of the topics a member has, 0 to 1, where the shape has a choice.
        racks: Of members and replicas; 0 for none.
        replicas: Of each partition.
        weights: The largest weight; 1 for members that are all alike.
        event: What members owned before, one of `EVENTS`.
        max_skew, max_moves: The options.
        seed: For whatever is drawn.
    """

    shape: str
    topics: int
    uneven: bool = False
    members: int = MEMBERS
    width: float = 0.5
    racks: int = 0
    replicas: int = 2
    weights: int = 1
    event: str = "fresh"
    max_skew: int | None = None
    max_moves: int | None = None
    seed: int = 0

    @property
    def options(self) -> dict[str, int]:
        """The options of the planner that are set."""
        given = {"max_skew": self.max_skew, "max_moves": self.max_moves}
        return {name: value for name, value in given.items() if value is not None}

    def __str__(self) -> str:
        parts = [f"{self.shape} ({self.width:.2f})", f"{self.topics} topics{', uneven' * self.uneven}"]
        if self.racks:
            parts.append(f"{self.racks} racks, {self.replicas} replicas")
        if self.weights > 1:
            parts.append(f"weights to {self.weights}")
        return ", ".join([*parts, self.event, *(f"{name} {value}" for name, value in self.options.items())])


@dataclass(frozen=True, kw_only=True, eq=False)
class Made:
    """A group before its rebalance, as its leader is told of it.

    Attributes:
        topics: The partition ids of each topic.
        members: Member id, instance id and subscription of each member.
        racks: The racks of each partition's replicas.
        pairs: How many (member, topic) there are.
    """

    topics: Mapping[str, range]
    members: list[tuple[str, str | None, bytes]]
    racks: Mapping[tuple[str, int], frozenset[str]] | None
    pairs: int


def make(structure: Structure) -> Made:
    """Make the group of a structure."""
    chance = random.Random(f"{structure.shape} {structure.seed}")
    names = [f"topic-{number:04}" for number in range(structure.topics)]
    topics = dict(zip(names, map(range, _sizes(structure, chance)), strict=True))
    members = []
    for number in range(structure.members):
        wanted = [names[topic] for topic in _topics(structure, number, chance)]
        members.append(
            Member(
                member_id=f"member-{number:04}",
                topics=frozenset(wanted),
                rack=f"rack-{number % structure.racks}" if structure.racks else None,
                weight=chance.randint(1, structure.weights),
            )
        )
    racks = None
    if structure.racks:
        every = [f"rack-{number}" for number in range(structure.racks)]
        of_replicas = min(structure.replicas, structure.racks)
        racks = {
            (name, number): frozenset(chance.sample(every, of_replicas))
            for name, ids in topics.items()
            for number in ids
        }
    members = _after(structure.event, members, topics, racks, chance)
    return Made(
        topics=topics,
        members=[(each.member_id, None, _subscription(each)) for each in members],
        racks=racks,
        pairs=sum(len(each.topics) for each in members),
    )


def _sizes(structure: Structure, chance: random.Random) -> list[int]:
    if not structure.uneven:
        return [PARTITIONS // structure.topics] * structure.topics
    parts = np.array([chance.paretovariate(1) for _ in range(structure.topics)])
    sizes = np.maximum(parts / parts.sum() * (PARTITIONS - structure.topics), 0).astype(np.int64) + 1
    return [int(size) for size in sizes]


def _topics(structure: Structure, number: int, chance: random.Random) -> IntArray:
    """The topics of a member."""
    every = np.arange(structure.topics)
    if structure.shape in _DRAWN:
        return _DRAWN[structure.shape](structure, number, every, chance)
    start, stop = _run(structure, number, chance)
    return every[start : max(stop, start + 1)] if start < every.size else every[-1:]


def _run(structure: Structure, number: int, chance: random.Random) -> tuple[int, int]:
    """First topic and end, in shapes with one run of topics each."""
    count, members = structure.topics, structure.members
    wide = max(1, round(structure.width * count))
    match structure.shape:
        case "nested":
            run = 0, (number + 1) * count // members
        case "steps":
            run = 0, (number * 20 // members + 1) * count // 20
        case "geometric":
            run = 0, int(count / 1.02**number)
        case "intervals":
            start = chance.randrange(count)
            run = start, start + chance.randint(1, wide)
        case "chain":
            start = number * count // members
            run = start, start + 2 + wide * 20 // count
        case "tree":
            parts = 2 ** (number % 10)
            part = number // 10 % parts
            run = part * count // parts, (part + 1) * count // parts
        case "layers":
            start = int(count * (1 - 0.985**number))
            run = start, start + max(1, wide // 10)
        case _:
            raise ValueError(f"there is no shape {structure.shape!r}; choose one of {', '.join(SHAPES)}")
    return run


def _star(structure: Structure, number: int, every: IntArray, chance: random.Random) -> IntArray:
    del chance
    shared = every[: round(structure.width * every.size) // 2 + 1]
    return np.unique(np.concatenate((shared, every[every.size // 2 :][number :: structure.members])))


def _bipartite(structure: Structure, number: int, every: IntArray, chance: random.Random) -> IntArray:
    del number
    return _some(every, structure.width, chance)


def _all_but_few(structure: Structure, number: int, every: IntArray, chance: random.Random) -> IntArray:
    del structure
    return np.delete(every, chance.sample(range(every.size), min(every.size - 1, 1 + number % 7)))


def _blocks(structure: Structure, number: int, every: IntArray, chance: random.Random) -> IntArray:
    del structure, chance
    own = every[number % 25 :: 25]
    return own if number % 10 else np.concatenate((own, every[(number + 1) % 25 :: 25]))


_DRAWN: Final[Mapping[str, Callable[[Structure, int, IntArray, random.Random], IntArray]]] = {
    "star": _star,
    "bipartite": _bipartite,
    "all but few": _all_but_few,
    "blocks": _blocks,
}


def _some(every: IntArray, probability: float, chance: random.Random) -> IntArray:
    drawn = np.random.default_rng(chance.getrandbits(32)).random(every.size) < probability
    return every[drawn] if drawn.any() else every[chance.randrange(every.size) :][:1]


def _after(
    event: str,
    members: list[Member],
    topics: Mapping[str, range],
    racks: Mapping[tuple[str, int], frozenset[str]] | None,
    chance: random.Random,
) -> list[Member]:
    """The members with what they owned before."""
    if event in {"join", "leave"}:
        # Any one may be new: the last of some shapes has hardly any topics.
        changed = chance.randrange(len(members))
        there = [member for number, member in enumerate(members) if event == "leave" or number != changed]
        settled = plan_exact(Group.of(topics, there, racks)).assignments()
        after = [_owning(member, settled.get(member.member_id, {})) for member in members]
        return after if event == "join" else after[:changed] + after[changed + 1 :]
    claims: list[dict[str, list[int]]] = [{} for _ in members]
    if event == "three own all":
        for number in (0, len(members) // 2, len(members) - 1):
            claims[number] = {topic: list(topics[topic]) for topic in sorted(members[number].topics)}
    elif event != "fresh":
        _claim_at_random(claims, members, topics, chance, stale=event == "stale claims")
    return [
        _owning(member, claim, generation=1 + number % 3 if event == "stale claims" else 1 + number)
        for number, (member, claim) in enumerate(zip(members, claims, strict=True))
    ]


def _claim_at_random(
    claims: list[dict[str, list[int]]],
    members: list[Member],
    topics: Mapping[str, range],
    chance: random.Random,
    *,
    stale: bool,
) -> None:
    """Give each partition to a subscriber, or, if claims are stale, to two members whoever they are."""
    wanting: dict[str, list[int]] = {topic: [] for topic in topics}
    for number, member in enumerate(members):
        for topic in sorted(member.topics):
            wanting[topic].append(number)
    for topic, numbers in wanting.items():
        for partition in topics[topic] if stale or numbers else ():
            for number in chance.choices(range(len(members)) if stale else numbers, k=1 + stale):
                claims[number].setdefault(topic, []).append(partition)


def _owning(member: Member, claims: Mapping[str, list[int]], generation: int = 1) -> Member:
    return replace(member, claims=claims, generation=generation) if claims else member


def _subscription(member: Member) -> bytes:
    """What a member of the `sticky` strategy sends; the topics, which are many, written as they are."""
    told = make_subscription(
        [],
        owned={},
        generation=member.generation,
        rack=member.rack,
        user_data=encode_sticky(member.claims, member.generation, member.weight),
    ).encode()
    names = sorted(member.topics)
    return bytes(told[:2] + len(names).to_bytes(4, "big") + b"".join(map(string, names)) + told[6:])
