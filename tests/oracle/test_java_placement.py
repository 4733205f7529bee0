"""Our placements against Apache Kafka's own Java classes, on random topics and clusters.

Each case comes from a seed, which a failure names. AdminUtils is gone from Kafka 4, so that two Java machines
answer: one with Kafka 3.9.1, one with 4.3.1.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from random import Random
from typing import Any

import pytest

from kafka_assignors._wire.java.orders import hash_order, spread_hash, string_hash
from kafka_assignors._wire.java.random import JavaRandom
from kafka_assignors.placement._explicit import parse_explicit
from kafka_assignors.placement._generators import place_rack_aware
from kafka_assignors.placement._placement import PlacementError, Racks
from kafka_assignors.placement._striped import place_striped
from tests.support.java.oracle import JavaOracle
from tests.support.random_groups import ALPHABET
from tests.support.scale import few, scaled

CASES = scaled(4000)

# The last divides 2**31 + 1: it tells whether Java draws again from the right number on.
BOUNDS = (1, 2, 3, 2**30, 2**30 + 1, 2**31 - 1, 715827883)

# Java's exception for what our message begins with.
EXCEPTIONS = {
    "partitions": "InvalidPartitionsException",
    "replication_factor": "InvalidReplicationFactorException",
    "all": "InvalidReplicationFactorException",  # ... are fenced
    "broker": "AdminOperationException",  # ... is without a rack
}


def outcome(place: Callable[[], dict[int, list[int]]]) -> dict[str, Any]:
    """Our placement in the form of the worker's answer."""
    try:
        return {"placement": {str(partition): replicas for partition, replicas in place().items()}}
    except PlacementError as error:
        return {"exception": next(java for ours, java in EXCEPTIONS.items() if str(error).startswith(ours))}


def java_seed(rng: Random) -> int:
    return rng.choice([0, 1, -1, rng.randrange(1000), rng.randrange(-(2**63), 2**63)])


def random_racks(rng: Random, scheme: str) -> Racks:
    """Up to 40 brokers with ids that leave gaps, in no order, sometimes none."""
    ids = rng.sample(range(200), rng.choice([*range(41), 1, 2, 3, 5, 6, 9]))
    names = {"".join(rng.choices(ALPHABET, k=rng.randint(1, 4))) for _ in range(rng.randint(1, 40))}
    names |= set(rng.sample(["AaAa", "AaBB", "BBAa", "BBBB", "AaC#", "BBC#"], rng.randrange(7)))  # one hash
    racks = rng.sample(sorted(names), len(names))[: rng.randint(1, 40)]
    match scheme:
        case "none":
            return dict.fromkeys(ids)
        case "equal":
            return {broker: racks[number % len(racks)] for number, broker in enumerate(ids)}
        case "lopsided":
            weights = [2**-number for number in range(len(racks))]
            return {broker: rng.choices(racks, weights)[0] for broker in ids}
        case _:
            return {broker: rng.choice([None, *racks]) for broker in ids}


def random_size(rng: Random, brokers: int, fewest: int) -> tuple[int, int]:
    """Partitions and a replication factor, which may be too few or too many."""
    partitions = max(fewest, rng.choice([0, 1, 2, rng.randint(1, 4 * brokers + 1), rng.randint(1, 60)]))
    return partitions, rng.choice([rng.randint(1, max(brokers, 1)), 1, 2, 3, rng.randint(-1, brokers + 1)])


def admin_case(seed: int, schemes: list[str]) -> dict[str, Any]:
    rng = Random(seed)
    racks = random_racks(rng, rng.choice(schemes))
    partitions, replication_factor = random_size(rng, len(racks), 0)
    return {
        "brokers": list(racks.items()),
        "partitions": partitions,
        "replication_factor": replication_factor,
        "start_index": rng.choice([-1, -1, 0, 2, rng.randrange(100)]),
        "first_partition": rng.choice([0, 0, 1, len(racks), rng.randrange(200)]),
        "seed": java_seed(rng),
    }


SIX = {0: "rack1", 1: "rack2", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack1"}
SIX_FROM_6 = {broker + 6: rack for broker, rack in SIX.items()}
TWELVE = SIX | {6: "rack1", 7: "rack2", 8: "rack2", 9: "rack3", 10: "rack1", 11: "rack3"}
SKEWED = {0: "rack1", 1: "rack2", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack2"}
KAFKAS_OWN: list[tuple[Racks, int, int, int, int]] = [
    (SIX, 6, 3, 2, 0),
    (SIX, 6, 3, -1, 0),
    (SIX, 13, 3, 0, 0),
    (SIX | {1: "rack1"}, 12, 3, -1, 0),
    (SIX, 12, 2, -1, 0),
    (SIX_FROM_6, 6, 2, -1, 0),
    ({0: "rack1", 1: "rack2", 4: "rack3"}, 3, 2, -1, 0),
    (SIX_FROM_6, 12, 2, -1, 12),
    (TWELVE, 96, 3, -1, 0),
    (SKEWED, 6, 5, -1, 0),
    (SKEWED, 6, 2, -1, 0),
    (dict.fromkeys(range(6), "rack1"), 6, 3, -1, 0),
    ({0: "a", 1: "b", 2: "c", 3: "a", 4: "a"}, 6, 4, 2, 0),
    ({0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: None}, 10, 5, -1, 0),
]
"""Clusters of Kafka's AdminRackAwareTest: racks, partitions, replication factor, start, first partition."""

KAFKAS_OWN_STRIPED: list[tuple[Racks, set[int], int, int]] = [
    (dict.fromkeys([3, 1, 0, 4, 2]), {1}, 5, 4),
    ({0: None, 1: None}, {1}, 3, 1),
    (dict.fromkeys([3, 1, 2]), {1}, 4, 3),
    ({11: "1", 10: "1", 30: "3", 31: "3", 21: "2", 20: "2"}, {20}, 3, 4),
    ({11: "1", 10: "1", 30: "3", 31: "3", 20: "2", 21: "2", 41: "4", 40: "4"}, {30, 31, 20, 21, 40}, 3, 4),
    (dict.fromkeys([0, 1, 2]), {0, 1, 2}, 1, 1),
    ({11: "1", 10: "1"}, {10, 11}, 1, 1),
    ({11: "1", 10: "1"}, set(), 1, 3),
    (dict.fromkeys([0, 3, 2, 1]), set(), 200, 3),
]
"""Those of its StripedReplicaPlacerTest: racks, fenced brokers, partitions, replication factor."""


def kafkas_own() -> list[dict[str, Any]]:
    what = ("brokers", "partitions", "replication_factor", "start_index", "first_partition", "seed")
    return [
        dict(zip(what, ([*racks.items()], *sizes, seed), strict=True))
        for racks, *sizes in KAFKAS_OWN
        for seed in range(10)
    ]


def kafkas_own_striped() -> list[dict[str, Any]]:
    what = ("brokers", "partitions", "replication_factor", "seed")
    return [
        dict(zip(what, (brokers, *sizes, seed), strict=True))
        for racks, fenced, *sizes in KAFKAS_OWN_STRIPED
        for brokers in [[(broker, rack, broker in fenced) for broker, rack in racks.items()]]
        for seed in range(10)
    ]


def compared(
    java: JavaOracle, verb: str, cases: list[dict[str, Any]], place: Callable[[dict[str, Any]], Any]
) -> list[dict[str, Any]]:
    """Java's answers, which are ours."""
    answers: list[dict[str, Any]] = java.ask(verb, cases)
    for seed, (case, answer) in enumerate(zip(cases, answers, strict=True)):
        assert outcome(partial(place, case)) == answer, f"seed {seed}: {case}"
    return answers


def by_admin(place: Callable[..., Any], case: dict[str, Any], brokers: Any) -> Any:
    """A placement of ours as AdminUtils makes it, with -1 for a start that is drawn."""
    start = case["start_index"]
    return place(
        case["partitions"],
        case["replication_factor"],
        brokers,
        start_index=None if start == -1 else start,
        first_partition=case["first_partition"],
        seed=case["seed"],
    )


def assert_both_kinds(answers: list[dict[str, Any]], exceptions: set[str]) -> None:
    """The random cases reached placements and every kind of error."""
    kinds = Counter(answer.get("exception", "placement") for answer in answers)
    assert kinds.keys() <= {"placement", *exceptions}
    assert few() or kinds.keys() == {"placement", *exceptions}
    assert few() or kinds["placement"] > CASES // 2, kinds


def test_placements_with_racks_and_without_are_javas(kafka_3_9: JavaOracle) -> None:
    schemes = ["none", "none", "none", "none", "equal", "equal", "lopsided", "lopsided", "some"]
    cases = [admin_case(seed, schemes) for seed in range(2 * CASES)]
    for case in cases:
        case["brokers"].sort()
    cases += kafkas_own()

    def place(case: dict[str, Any]) -> Any:
        return by_admin(place_rack_aware, case, dict(case["brokers"]))

    answers = compared(kafka_3_9, "assign_replicas", cases, place)
    expected = ("InvalidPartitionsException", "InvalidReplicationFactorException", "AdminOperationException")
    assert_both_kinds(answers, {*expected})


def test_striped_placements_are_javas(java: JavaOracle) -> None:
    cases: list[dict[str, Any]] = []
    for seed in range(CASES):
        rng = Random(seed)
        racks = random_racks(rng, rng.choice(["none", "equal", "lopsided", "some"]))
        fenced_share = rng.choice([0, 0, 0.1, 0.5, 0.9, 1])
        partitions, replication_factor = random_size(rng, len(racks), 1)
        cases.append(
            {
                "brokers": [(broker, rack, rng.random() < fenced_share) for broker, rack in racks.items()],
                "partitions": partitions,
                "replication_factor": replication_factor,
                "seed": java_seed(rng),
            }
        )

    def place(case: dict[str, Any]) -> Any:
        racks = {broker: rack for broker, rack, _ in case["brokers"]}
        fenced = [broker for broker, _, is_fenced in case["brokers"] if is_fenced]
        size = case["partitions"], case["replication_factor"]
        return place_striped(*size, racks, fenced=fenced, seed=case["seed"])

    answers = compared(java, "place_striped", cases + kafkas_own_striped(), place)
    assert_both_kinds(answers, {"InvalidReplicationFactorException"})


def test_random_numbers_are_javas(java: JavaOracle) -> None:
    for seed in range(scaled(300)):
        rng = Random(seed)
        bounds = [rng.choice([*BOUNDS, rng.randint(1, 100)]) for _ in range(30)]
        request: dict[str, Any] = {"seed": java_seed(rng), "bounds": bounds, "shuffle": rng.randrange(50)}
        random = JavaRandom(request["seed"])
        drawn = [random.next_int(bound) for bound in bounds]
        shuffled = list(range(request["shuffle"]))
        random.shuffle(shuffled)
        assert {"drawn": drawn, "shuffled": shuffled} == java.ask("random_numbers", request), f"seed {seed}"


def test_the_order_of_a_hash_map_is_javas(java: JavaOracle) -> None:
    for seed in range(scaled(500)):
        rng = Random(seed)
        keys: list[str | None] = [None, *(f"rack-{number}" for number in range(rng.randrange(200)))]
        keys += ["".join(rng.choices(ALPHABET, k=rng.randint(1, 6))) for _ in range(rng.randrange(200))]
        rng.shuffle(keys)
        keys = keys[: rng.randint(0, 200)]
        assert hash_order(keys, string_hash) == java.ask("hash_order", keys), f"seed {seed}: {keys}"


@pytest.mark.parametrize("colliding", range(2, 11))
def test_the_order_of_a_hash_map_with_keys_of_one_hash_is_javas(colliding: int, java: JavaOracle) -> None:
    """From nine in a bin on, Java enlarges the table early; it makes a tree of the bin at the eleventh."""
    family: list[str | None] = []
    family += ["".join(parts) for parts in product(["Aa", "BB"], repeat=4)][:colliding]
    others = [
        key
        for key in (None, *(f"rack-{number}" for number in range(60)))
        if (spread_hash(string_hash(key)) ^ spread_hash(string_hash(family[0]))) & 15
    ]
    for seed in range(scaled(50)):
        rng = Random(seed)
        chosen = rng.sample(others, rng.randint(0, len(others)))
        keys: list[str | None] = [*chosen[:3], *family, *chosen[3:]]
        assert hash_order(keys, string_hash) == java.ask("hash_order", keys), f"seed {seed}: {keys}"


def test_explicit_placements_are_read_as_by_kafka_topics(kafka_3_9: JavaOracle) -> None:
    rng = Random(1)
    texts = [
        "",
        ",",
        ":",
        ",,0",
        "0:1,,1:0",
        "0,",
        "0:1:,1:0::,,",
        "+1",
        "1_0",
        "2147483647",
        "2147483648",
        "--1",
    ]
    for _ in range(CASES):
        size = rng.randint(1, 4)
        entries = [
            ":".join(str(broker) for broker in rng.sample(range(9), size)) for _ in range(rng.randint(1, 4))
        ]
        text = ",".join(entries)
        for _ in range(rng.choice([0, 0, 1, 2])):  # damage
            place = rng.randrange(len(text) + 1)
            text = text[:place] + rng.choice([*"0123456789,:-+ x._\t", "\u00a0", ""]) + text[place + 1 :]
        texts.append(text)
    answers = kafka_3_9.ask("parse_replica_assignments", texts)
    exceptions = set()
    read = refused = 0
    for text, answer in zip(texts, answers, strict=True):
        placement = answer.get("placement")
        if placement is None:
            exceptions.add(answer["exception"])
            with pytest.raises(PlacementError):
                parse_explicit(text)
        elif not placement or any(not brokers or min(brokers) < 0 for brokers in placement.values()):
            # Kafka's tool reads these; its brokers do not take them.
            refused += 1
            with pytest.raises(PlacementError):
                parse_explicit(text)
        else:
            read += 1
            assert outcome(lambda: parse_explicit(text)) == answer, repr(text)  # noqa: B023 - called now
    expected = {"NumberFormatException", "AdminCommandFailedException", "AdminOperationException"}
    assert exceptions <= expected
    assert few() or exceptions == expected
    assert few() or read > CASES // 2
    assert few() or refused > scaled(10)
