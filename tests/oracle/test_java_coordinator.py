"""Leaders and strategies against Kafka's own coordinator, on random groups; a failure names the seed."""

from random import Random
from typing import Any

from kafka_assignors._groups.election import NoCommonStrategyError, elect_leader
from kafka_assignors._wire.java.orders import HashKeys, string_hash
from kafka_assignors.groups import elect_strategy
from tests.support.java.oracle import JavaOracle
from tests.support.scale import few, scaled

GROUPS = scaled(2000)
STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky", "my-own", "\N{GRINNING FACE}")


def random_changes(rng: Random) -> list[list[Any]]:
    """Members that come, some with nothing in common with the others, go, and miss rounds."""
    changes: list[list[Any]] = []
    ids: list[str] = []
    most = rng.choice([3, 10, 60])
    for number in range(rng.randint(1, 2 * most)):
        if ids and rng.random() < 0.3:
            changes.append(["remove", ids.pop(rng.randrange(len(ids)))])
        elif ids and rng.random() < 0.2:
            changes.append(["join", rng.sample(ids, rng.randint(0, len(ids)))])
        else:
            ids.append(f"client-{number}-{rng.getrandbits(128):032x}")
            known = rng.sample(STRATEGIES, rng.randint(1, len(STRATEGIES)))
            # Most have one strategy in common with the others, in some place of their lists.
            if rng.random() < 0.9 and "range" not in known:
                known.insert(rng.randint(0, len(known)), "range")
            changes.append(["add", ids[-1], known])
    return changes


class OurGroup:
    def __init__(self) -> None:
        self.members: HashKeys[str] = HashKeys((), string_hash)
        self.known: dict[str, list[str]] = {}
        self.leader: str | None = None

    def change(self, what: str, argument: Any, strategies: list[str] | None = None) -> list[Any]:
        done = True
        if what == "add":
            assert strategies is not None
            try:
                elect_strategy({**self.known, argument: strategies})
            except NoCommonStrategyError:
                done = False
            else:
                self.members.add(argument)
                self.known[argument] = strategies
                self.leader = elect_leader(self.members, leader=self.leader)
        elif what == "remove":
            self.members.discard(argument)
            self.known.pop(argument, None)
            self.leader = elect_leader(self.members, leader=self.leader)
        else:
            elected = elect_leader(self.members, leader=self.leader, joined=argument)
            done = elected is not None
            self.leader = elected or self.leader
        preferences = {member: self.known[member] for member in self.members}
        return [done, self.leader, elect_strategy(preferences).strategy if preferences else None]


def test_leader_and_strategy_are_those_of_kafkas_classic_group(java: JavaOracle) -> None:
    cases = {seed: random_changes(Random(seed)) for seed in range(GROUPS)}
    answers = java.ask("elect", list(cases.values()))
    elections = 0
    for (seed, changes), answer in zip(cases.items(), answers, strict=True):
        group = OurGroup()
        for place, (change, said) in enumerate(zip(changes, answer, strict=True)):
            assert group.change(*change) == said, f"seed {seed}, change {place}: {change}"
            elections += 1
    assert few() or elections > 20 * GROUPS
