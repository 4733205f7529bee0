"""Small random groups of every kind that a rebalance can meet, one for each seed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from kafka_assignors._model.group import NO_GENERATION, NOBODY, Group, Member
from kafka_assignors._model.plan import Plan

Topics = Mapping[str, list[int]]
Racks = Mapping[tuple[str, int], frozenset[str]]

SIZES = [0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 9]
RACKS = ["r1", "r2", "r3"]
ALPHABET = ("a", "b", "Z", "-", "1", "é", "日", "\ue000", "\uff5e", "\U0001f600", "\U0001d4b3")
"""Java orders and hashes strings by UTF-16 units: characters beyond U+FFFF come before U+E000..U+FFFF."""


@dataclass(frozen=True)
class Case:
    """What `Group.of` takes."""

    topics: Topics
    members: list[Member]
    replica_racks: Racks | None = None

    @property
    def group(self) -> Group:
        return Group.of(self.topics, self.members, self.replica_racks)

    def shuffled(self, rng: Random) -> "Case":
        names = rng.sample(list(self.topics), len(self.topics))
        topics = {name: rng.sample(self.topics[name], len(self.topics[name])) for name in names}
        return Case(topics, rng.sample(self.members, len(self.members)), self.replica_racks)

    def holding(self) -> "Case":
        """All that members claim, they hold."""
        return replace(self, members=[replace(member, holds=True) for member in self.members])

    def after(self, plan: Plan) -> "Case":
        """The next rebalance: each member holds exactly what it was given, in a newer generation."""
        newest = max((member.generation for member in self.members), default=NO_GENERATION)
        given = plan.assignments()
        members = [
            replace(member, claims=given[member.member_id], generation=newest + 1, holds=True)
            for member in self.members
        ]
        return replace(self, members=members)


def settled(group: Group) -> dict[tuple[str, int], str]:
    """The valid owner of each partition that has one."""
    return {
        group.name_of(partition): group.members[owner].member_id
        for partition, owner in enumerate(group.owner.tolist())
        if owner != NOBODY
    }


def random_case(seed: int) -> Case:
    """Up to 7 members, 6 topics and some 30 partitions."""
    rng = Random(seed)
    topics = _topics(rng)
    members = _subscribed(rng, topics)
    members = _with_racks(rng, members)
    members = _with_weights(rng, members)
    members = _with_claims(rng, topics, members)
    return Case(topics, members, _replica_racks(rng, topics))


def _topics(rng: Random) -> Topics:
    """Ids without gaps, as Kafka makes them, or with."""
    gaps = rng.random() < 0.3
    sizes = [rng.choice(SIZES) for _ in range(rng.choice([*[1, 2, 3, 4] * 5, 0, 6, 6]))]
    return {
        f"t{number}": sorted(rng.sample(range(40), size)) if gaps else list(range(size))
        for number, size in enumerate(sizes)
    }


def _subscribed(rng: Random, topics: Topics) -> list[Member]:
    """Subscriptions: equal, equal but for one, of few kinds, at random, or all different; static or not."""
    names = [*topics, "missing"]
    count = rng.choice([*[2, 3, 4, 5] * 4, 0, 1, 6, 7])
    kind = rng.choice(["equal", "but one", "few", "random", "random", "different"])
    some = [frozenset(name for name in names if rng.random() < 0.6) for _ in range(count + 1)]
    if kind == "equal":
        some = [frozenset(names)] * count
    elif kind == "but one":
        some = [frozenset(names)] * (count - 1) + some[:1]
    elif kind == "few":
        some = [rng.choice(some[:2]) for _ in some]
    elif kind == "different":
        some = [topics_of - {names[number % len(names)]} for number, topics_of in enumerate(some)]
    static = rng.choice([0.0, 0.0, 0.5, 1.0])
    ids = rng.sample(range(10), count)
    return [
        Member(
            member_id=f"m{ids[number]}",
            topics=some[number],
            instance_id=f"i{9 - ids[number]}" if rng.random() < static else None,
        )
        for number in range(count)
    ]


def _with_racks(rng: Random, members: list[Member]) -> list[Member]:
    """No racks, all known, some unknown, or racks where no replica is."""
    known = rng.choice([0.0, 0.7, 1.0])
    racks = rng.choice([RACKS, RACKS, RACKS[:2], RACKS[:2], ["elsewhere"]])
    return [replace(m, rack=rng.choice(racks)) if rng.random() < known else m for m in members]


def _with_weights(rng: Random, members: list[Member]) -> list[Member]:
    weights = rng.choice([[1], [1], [1], [2], [1, 2], [1, 2, 3, 5], [1, 1000]])
    return [replace(member, weight=rng.choice(weights)) for member in members]


def _replica_racks(rng: Random, topics: Topics) -> Racks | None:
    """One or two racks for each partition, all racks for all, or unknown for some or all."""
    kind = rng.choice(["none", "one", "one", "two", "two", "all", "some unknown"])
    if kind == "none":
        return None
    partitions = [(name, number) for name, ids in topics.items() for number in ids]
    if kind == "some unknown":
        partitions = [partition for partition in partitions if rng.random() < 0.6]
    count = {"one": 1, "all": 3}.get(kind, 2)
    return {partition: frozenset(rng.sample(RACKS, count)) for partition in partitions}


def _with_claims(rng: Random, topics: Topics, members: list[Member]) -> list[Member]:
    """A fresh group, the one after a rebalance, or claims of all sorts: stale, double, of what is gone."""
    kind = rng.choice(["fresh", "after", "after", "after", "any", "any"])
    if kind == "fresh" or not members:
        return members
    claims: list[dict[str, list[int]]] = [{} for _ in members]
    # In a lopsided history some members had far more than others.
    lopsided = rng.choice([1, 1, 3])
    for name, ids in topics.items():
        wants = [number for number, member in enumerate(members) if name in member.topics]
        wants = wants * 4 + list(range(len(members))) if kind == "any" else wants
        for partition in ids if wants else []:
            for _ in range(rng.choice([0, 1, 1, 2]) if kind == "any" else int(rng.random() < 0.9)):
                number = min(rng.choice(wants) for _ in range(lopsided))
                claims[number].setdefault(name, []).append(partition)
    if kind == "any":
        for claimed in claims:
            claimed.update(rng.choice([{}, {}, {"gone": [0, 1]}, {"missing": [2]}]))
            for ids in claimed.values():
                ids.extend(rng.choice([[], [], [77], [-1]]))
    newest = rng.choice([NO_GENERATION, 0, 5])
    stale = rng.choice([0.0, 0.0, 0.4])
    holding = rng.choice([0.0, 1.0, 1.0, 0.5])
    return [
        replace(
            member,
            claims=claimed,
            generation=rng.randint(NO_GENERATION, newest) if rng.random() < stale else newest,
            holds=rng.random() < holding,
        )
        for member, claimed in zip(members, claims, strict=True)
    ]
