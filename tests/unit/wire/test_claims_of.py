"""What counts of all that members say they own: one table, for each strategy."""

import struct
from typing import NamedTuple

import pytest

from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._wire.claims_of import claims_of
from kafka_assignors._wire.codec import read_subscriptions
from kafka_assignors._wire.user_data import encode_generation, encode_sticky
from tests.support.wire import NOTHING, partition_list, subscription

OWNED = {"o": [0, 1]}
PRIOR = {"p": [2, 4]}
V1_WITH_GENERATION = encode_sticky(PRIOR, 8)
V0 = V1_WITH_GENERATION[:-4]
WEIGHTED = encode_sticky(PRIOR, 8, 3)
KAFKA_PYTHON = struct.pack(">h", 1) + V1_WITH_GENERATION
WITHOUT_TOPICS = encode_sticky({}, 8)
LIBRDKAFKA = struct.pack(">2i", 0, 9)  # not a weight of 9
UNREADABLE = b"neither"


class Counts(NamedTuple):
    """What counts: partitions by topic, generation, whether they are held, weight; whether bytes are bad."""

    claims: dict[str, list[int]]
    generation: int
    holds: bool
    weight: int = 1
    fault: bool = False


STICKY = {
    # What it says, and as of which version: what counts.
    ("nothing", 3, False, None): Counts({}, 6, holds=False),
    ("owned", 3, True, None): Counts(OWNED, 6, holds=False),
    ("owned, without a generation", 1, True, None): Counts(OWNED, NO_GENERATION, holds=False),
    ("owned, no bytes", 3, True, b""): Counts(OWNED, 6, holds=False),
    ("prior", 3, False, V1_WITH_GENERATION): Counts(PRIOR, 8, holds=False),
    ("prior below v2", 0, False, V1_WITH_GENERATION): Counts(PRIOR, 8, holds=False),
    ("prior in Java's v0", 3, False, V0): Counts(PRIOR, NO_GENERATION, holds=False),
    ("prior with a weight", 3, False, WEIGHTED): Counts(PRIOR, 8, holds=False, weight=3),
    ("prior as kafka-python's", 3, False, KAFKA_PYTHON): Counts(PRIOR, 8, holds=False),
    ("prior and owned", 3, True, V1_WITH_GENERATION): Counts(PRIOR, 8, holds=False),
    ("an empty prior and owned", 3, True, WITHOUT_TOPICS): Counts({}, 8, holds=False),
    ("unreadable", 3, True, UNREADABLE): Counts({}, NO_GENERATION, holds=False, fault=True),
    ("a generation alone", 3, True, encode_generation(7)): Counts({}, NO_GENERATION, holds=False, fault=True),
}
COOPERATIVE = {
    ("nothing", 3, False, None): Counts({}, 6, holds=True),
    ("owned", 3, True, None): Counts(OWNED, 6, holds=True),
    ("owned, without a generation: kafka-python", 1, True, None): Counts(OWNED, NO_GENERATION, holds=True),
    ("owned, and the generation below v2: Java", 1, True, encode_generation(7)): Counts(OWNED, 7, holds=True),
    ("owned, and both generations: Java", 3, True, encode_generation(7)): Counts(OWNED, 6, holds=True),
    ("owned, and a weight", 3, True, encode_generation(7, 4)): Counts(OWNED, 6, holds=True, weight=4),
    ("owned, and prior: librdkafka", 3, True, V1_WITH_GENERATION): Counts(OWNED, 6, holds=True),
    ("owned, and a generation: librdkafka", 3, True, LIBRDKAFKA): Counts(OWNED, 6, holds=True),
    ("owned, and a generation below v2: librdkafka", 1, True, LIBRDKAFKA): Counts(OWNED, 9, holds=True),
    ("owned, and prior below v2", 1, True, V1_WITH_GENERATION): Counts(OWNED, 8, holds=True),
    ("prior: eager for once", 3, False, V1_WITH_GENERATION): Counts(PRIOR, 8, holds=False),
    ("prior with a weight", 3, False, WEIGHTED): Counts(PRIOR, 8, holds=False, weight=3),
    ("prior without a generation", 3, False, V0): Counts(PRIOR, NO_GENERATION, holds=False),
    ("owned, and unreadable", 3, True, UNREADABLE): Counts(OWNED, 6, holds=True),
    ("owned, and unreadable below v2", 1, True, UNREADABLE): Counts(
        OWNED, NO_GENERATION, holds=True, fault=True
    ),
    ("unreadable", 3, False, UNREADABLE): Counts({}, NO_GENERATION, holds=False, fault=True),
}
ANY_OTHER = {
    ("nothing", 0, False, None): Counts({}, NO_GENERATION, holds=True),
    ("owned", 3, True, None): Counts(OWNED, 6, holds=True),
    ("owned, without a generation", 1, True, None): Counts(OWNED, NO_GENERATION, holds=True),
    ("owned, and any user data", 3, True, UNREADABLE): Counts(OWNED, 6, holds=True),
}
Case = tuple[str, int, bool, bytes | None]
TABLES: dict[str | None, dict[Case, Counts]] = {
    "sticky": STICKY,
    "cooperative-sticky": COOPERATIVE,
    "copartitioned": COOPERATIVE,
    "load-aware": COOPERATIVE,
    "range": ANY_OTHER,
    None: ANY_OTHER,
}
CASES = [
    pytest.param(strategy, case, counts, id=f"{strategy}: {case[0]}")
    for strategy, table in TABLES.items()
    for case, counts in table.items()
]


def said(case: Case) -> bytes:
    """The subscription of a member; its generation is 6 where it has one."""
    _, version, owns, user_data = case
    owned = partition_list(list(OWNED.items())) if owns else NOTHING
    return subscription(version, ["o", "p"], user_data=user_data, owned=owned, generation=6)


def counted(strategy: str | None, blobs: list[bytes]) -> list[Counts]:
    """What counts of what each member says."""
    claimed, faults = claims_of(strategy, read_subscriptions(blobs))
    return [
        Counts(dict(claims), int(generation), holds=bool(holds), weight=int(weight), fault=number in faults)
        for number, (claims, generation, holds, weight) in enumerate(
            zip(claimed.claims.claims(), claimed.generations, claimed.holds, claimed.weights, strict=True)
        )
    ]


@pytest.mark.parametrize(("strategy", "case", "counts"), CASES)
def test_what_a_member_claims(strategy: str | None, case: Case, counts: Counts) -> None:
    assert counted(strategy, [said(case)]) == [counts]


@pytest.mark.parametrize("strategy", TABLES, ids=str)
def test_members_do_not_change_what_others_claim(strategy: str | None) -> None:
    table = TABLES[strategy]
    blobs = [said(case) for case in table]
    assert counted(strategy, [*blobs, b"\0", *blobs])[: len(blobs)] == list(table.values())
    assert counted(strategy, [*blobs, b"\0", *blobs])[len(blobs) + 1 :] == list(table.values())


def test_who_cannot_be_read_claims_nothing() -> None:
    for strategy in TABLES:
        (counts,) = counted(strategy, [b"\0"])
        assert (counts.claims, counts.generation, counts.fault) == ({}, NO_GENERATION, False)


def test_no_members_claim_nothing() -> None:
    for strategy in TABLES:
        assert counted(strategy, []) == []
