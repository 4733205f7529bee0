"""Claims as columns: whether they come as mappings or out of tables, a group is the same."""

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from kafka_assignors._model.claims import ClaimTable
from kafka_assignors._model.group import NOBODY, Group
from kafka_assignors._model.members import NO_GENERATION, Member
from kafka_assignors._wire.codec import read_partition_lists
from tests.support.scale import examples
from tests.support.wire import partition_list

Claim = Mapping[str, Collection[int]]

TOPICS = ("a", "b", "c", "gone")
INT32 = st.integers(-(2**31), 2**31 - 1)
IDS = st.lists(st.integers(-1, 7) | INT32, max_size=6)
CLAIMS = st.lists(st.dictionaries(st.sampled_from(TOPICS), IDS, max_size=4), max_size=7)
ID_SETS = st.lists(st.integers(0, 5), unique=True) | st.lists(
    st.sampled_from([3, 4, 7, 2**31 - 1]), unique=True
)
SIZES = st.dictionaries(st.sampled_from(TOPICS[:3]), ID_SETS)


def out_of_table(claims: Sequence[Claim]) -> list[Claim]:
    """The same claims as rows of a table."""
    raw = [partition_list([(name, [*ids]) for name, ids in claim.items()]) for claim in claims]
    return [*read_partition_lists(raw).table.claims()]


def out_of_tables(claims: Sequence[Claim], rng: Random, tables: int) -> list[Claim]:
    """The same claims, some as they are and the others as rows of some tables, in any order there.

    The tables have rows of other claims too.
    """
    others: list[Claim] = [{"a": [0, 1, 2, 3, 4, 5]}, {"b": [0, 1], "other": [7]}, {}]
    mixed = list(claims)
    place_of = [rng.randrange(tables + 1) for _ in claims]
    for table in range(tables):
        mine = [number for number, place in enumerate(place_of) if place == table]
        rows: list[tuple[int | None, Claim]] = [(number, claims[number]) for number in mine]
        rows += [(None, rng.choice(others)) for _ in range(rng.randrange(4))]
        rng.shuffle(rows)
        for (number, _), row in zip(rows, out_of_table([claim for _, claim in rows]), strict=True):
            if number is not None:
                mixed[number] = row
    return mixed


def plain(claims: Sequence[Claim]) -> list[dict[str, list[int]]]:
    return [{name: list(ids) for name, ids in claim.items()} for claim in claims]


def members_with(claims: Sequence[Claim], rng: Random) -> list[Member]:
    """Members with these claims, in any order, whose other traits come out of `rng`."""
    members = [
        Member(
            member_id=f"m{number}",
            topics=frozenset(name for name in TOPICS if rng.random() < 0.8),
            claims=claim,
            generation=rng.choice([NO_GENERATION, 3, 4, 4]),
            holds=rng.random() < 0.5,
        )
        for number, claim in enumerate(claims)
    ]
    rng.shuffle(members)
    return members


def sole_best(ranks: Mapping[int, Any]) -> int:
    """The member whose rank is the highest, if no other's is as high."""
    best = [member for member, rank in ranks.items() if rank == max(ranks.values())]
    return best[0] if len(best) == 1 else NOBODY


def by_the_rules(
    sizes: Mapping[str, Sequence[int]], members: Sequence[Member]
) -> tuple[list[int], list[int], list[list[int]], bool]:
    """Owners, previous owners, holders, and whether somebody claims what it does not subscribe to."""
    named = sorted(members, key=lambda member: member.member_id)
    topics = sorted(name for name, ids in sizes.items() if ids and any(name in one.topics for one in named))
    newest = max((member.generation for member in members), default=NO_GENERATION)
    owner, previous, holders, required = [], [], [], False
    partitions = [(topic, number) for topic in topics for number in sorted({*sizes[topic]})]
    for partition, (topic, number) in enumerate(partitions):
        claimants = {each: one for each, one in enumerate(named) if number in one.claims.get(topic, ())}
        valid = {each: one for each, one in claimants.items() if topic in one.topics}
        owner.append(sole_best({each: (one.holds, one.generation) for each, one in valid.items()}))
        before = {each: one.generation for each, one in valid.items() if one.generation < newest}
        previous.append(sole_best(before))
        holders += [[partition, each] for each, member in claimants.items() if member.holds]
        required |= valid.keys() != claimants.keys()
    return owner, previous, holders, required


class TestTables:
    @given(CLAIMS, st.randoms(use_true_random=False), st.integers(0, 3))
    def test_claims_come_out_of_a_table_as_they_went_in(
        self, claims: list[dict[str, list[int]]], rng: Random, tables: int
    ) -> None:
        mixed = out_of_tables(claims, rng, tables)
        table = ClaimTable.of(mixed)
        assert table.claimants == len(claims)
        assert plain(table.claims()) == claims
        assert (np.diff(table.claimant) >= 0).all()
        assert plain(ClaimTable.of(table.claims()).claims()) == claims

    @given(CLAIMS, st.randoms(use_true_random=False), st.integers(1, 3))
    def test_any_selection_in_any_order_may_be_put_into_a_table(
        self, claims: list[dict[str, list[int]]], rng: Random, tables: int
    ) -> None:
        mixed = out_of_tables(claims, rng, tables)
        chosen = rng.sample(range(len(claims)), rng.randint(0, len(claims)))
        table = ClaimTable.of([mixed[number] for number in chosen])
        assert plain(table.claims()) == [claims[number] for number in chosen]
        assert plain(mixed) == claims

    def test_two_members_may_make_the_same_claim(self) -> None:
        claim = out_of_table([{"a": [0, 1]}, {"b": [2]}])[0]
        assert plain(ClaimTable.of([claim, {}, claim]).claims()) == [{"a": [0, 1]}, {}, {"a": [0, 1]}]

    def test_ids_may_be_in_any_collection(self) -> None:
        claims: list[Claim] = [{"a": range(2), "b": {5}}, {"a": (7, 7), "c": dict.fromkeys([1])}]
        assert plain(ClaimTable.of(claims).claims()) == [{"a": [0, 1], "b": [5]}, {"a": [7, 7], "c": [1]}]

    def test_ids_of_64_bits_are_kept_and_others_dropped(self) -> None:
        kept = [2**31, 2**32, 2**40, 2**63 - 1, -1, -(2**40), -(2**63)]
        for number in (*kept, 2**63, -(2**63) - 1, 2**100):
            expected = [{"a": [number, 1] if number in kept else [1]}]
            assert plain(ClaimTable.of([{"a": [number, 1]}]).claims()) == expected


class TestAsMappings:
    @given(CLAIMS)
    def test_a_claim_out_of_a_table_is_a_mapping_like_any(self, claims: list[dict[str, list[int]]]) -> None:
        for claim, row in zip(claims, out_of_table(claims), strict=True):
            assert row == claim
            assert claim == row
            assert len(row) == len(claim)
            assert list(row) == list(claim)
            assert list(row.values()) == list(claim.values())
            assert [row[name] for name in row] == [claim[name] for name in claim]
            assert bool(row) == bool(claim)
            assert repr(row) == repr(claim)

    def test_topics_that_are_not_there(self) -> None:
        row = out_of_table([{"a": [1]}, {"b": [2]}])[0]
        assert "b" not in row
        assert row.get("b") is None
        with pytest.raises(KeyError):
            row["b"]

    def test_a_topic_that_comes_twice_has_all_its_ids(self) -> None:
        raw = bytes.fromhex("00000003 0001 61 00000001 00000003 0001 62 00000000 0001 61 00000001 00000001")
        (row,) = read_partition_lists([raw]).table.claims()
        assert row == {"a": [3, 1], "b": []}


class TestGroups:
    @examples(300)
    @given(SIZES, CLAIMS, st.integers(0, 2**32), st.integers(1, 3))
    def test_claims_are_settled_by_the_rules_wherever_they_come_from(
        self, sizes: dict[str, list[int]], claims: list[dict[str, list[int]]], seed: int, tables: int
    ) -> None:
        expected = by_the_rules(sizes, members_with(claims, Random(seed)))
        for same in (claims, out_of_tables(claims, Random(seed), tables), out_of_table(claims)):
            group = Group.of(sizes, members_with(same, Random(seed)))
            assert (group.owner.tolist(), group.previous.tolist()) == expected[:2]
            assert (sorted(group.holders.tolist()), not group.claims.subscribed.all()) == expected[2:]

    @pytest.mark.parametrize("ids", [[0, 1, 2], [0, 1, 5]], ids=["without gaps", "with gaps"])
    @pytest.mark.parametrize("number", [2**31, 2**32, 2**32 + 1, 2**40, 2**63 - 1, -1, -(2**32), -(2**63)])
    def test_ids_out_of_range_are_nobodys(self, ids: list[int], number: int) -> None:
        claims: list[Claim] = [{"a": [number], "b": [1, number], "c": [number]}]
        for claim in (claims[0], ClaimTable.of(claims).claims()[0]):
            group = Group.of(
                {"a": ids, "b": ids, "c": ids},
                [Member(member_id="m", topics=frozenset("abc"), claims=claim, generation=1, holds=True)],
            )
            assert np.flatnonzero(group.owner != NOBODY).tolist() == [4]
            assert group.holders.tolist() == [[4, 0]]
