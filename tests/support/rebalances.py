"""Random rebalances, one for each seed, as a leader meets them."""

from dataclasses import dataclass
from random import Random

from kafka_assignors._model.group import Group
from kafka_assignors._model.members import NO_GENERATION, Member

RACKS = ("r1", "r2", "r3")


@dataclass(frozen=True)
class Rebalance:
    """What `Group.of` takes."""

    topics: dict[str, list[int]]
    members: list[Member]
    racks: dict[tuple[str, int], frozenset[str]]

    @property
    def group(self) -> Group:
        return Group.of(self.topics, self.members, self.racks)


def random_rebalance(seed: int, *, weights: bool = True) -> Rebalance:
    """Up to 8 members, 5 topics and 50 partitions; subscriptions, racks, weights and claims of every kind."""
    rng = Random(seed)
    names = [f"t{number}" for number in range(rng.randint(1, 5))]
    topics = {
        name: sorted(rng.sample(range(40), rng.randint(0, 10)))
        if rng.random() < 0.2
        else list(range(rng.randint(0, 10)))
        for name in names
    }
    kinds = [
        frozenset(name for name in [*names, "unknown"] if rng.random() < 0.7)
        for _ in range(rng.choice([1, 2, 8]))
    ]
    has_racks, has_weights, static = rng.random() < 0.5, rng.random() < 0.3 and weights, rng.random() < 0.3
    owners = rng.choice(["nobody", "one of them", "anybody"])
    members = []
    for number in rng.sample(range(20), rng.randint(0, 8)):
        claims: dict[str, list[int]] = {}
        wanted = rng.choice(kinds)
        if owners != "nobody":
            for name in wanted if owners == "one of them" else names:
                some = [each for each in topics.get(name, ()) if rng.random() < rng.choice([0.1, 0.3, 0.9])]
                if some:
                    claims[name] = some
        members.append(
            Member(
                member_id=f"m{number}",
                topics=wanted,
                instance_id=f"i{20 - number}" if static and rng.random() < 0.7 else None,
                rack=rng.choice([None, *RACKS]) if has_racks else None,
                claims=claims,
                generation=rng.choice([NO_GENERATION, 4, 5, 5, 5]) if claims else NO_GENERATION,
                weight=rng.choice([1, 1, 2, 3, 1000]) if has_weights else 1,
            )
        )
    if owners == "one of them":
        members = _undisputed(members)
    everywhere = rng.random() < 0.2
    racks = {
        (name, number): frozenset(RACKS if everywhere else rng.sample(RACKS, rng.randint(0, 2)))
        for name, ids in topics.items()
        for number in ids
    }
    return Rebalance(topics, members, racks)


def _undisputed(members: list[Member]) -> list[Member]:
    """The members with what none before them claims."""
    taken: set[tuple[str, int]] = set()
    left = []
    for member in members:
        claims = {
            name: [number for number in ids if (name, number) not in taken]
            for name, ids in member.claims.items()
        }
        taken |= {(name, number) for name, ids in claims.items() for number in ids}
        left.append(
            Member(
                member_id=member.member_id,
                topics=member.topics,
                instance_id=member.instance_id,
                rack=member.rack,
                claims={name: ids for name, ids in claims.items() if ids},
                generation=5,
                weight=member.weight,
            )
        )
    return left
