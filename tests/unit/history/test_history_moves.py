"""The moves of a group's records one after the other, both ways; and what is remembered for it."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from kafka_assignors.history._tables import fast
from kafka_assignors.history._tables.bounded import Bounded
from kafka_assignors.history._tables.moves import find_moves
from kafka_assignors.history._tables.owners import (
    Owners,
    decode_owners,
    encode_list,
    encode_owners,
    owner_of_each,
)

Given = dict[str, dict[str, list[int]]]


def changed(given: Given, rng: Random) -> Given:
    """A member gone, a new one, a partition given elsewhere, or to a second member as well."""
    after = {member: {topic: [*ids] for topic, ids in has.items()} for member, has in given.items()}
    kind = rng.choice(["gone", "new", "given", "twice", "same", "same"])
    if kind == "gone" and len(after) > 1:
        del after[rng.choice([*after])]
    elif kind == "new":
        after[f"m{rng.randrange(30)}"] = {"t": [rng.randrange(20)], "u": []}
    elif kind in ("given", "twice"):
        giver, taker = rng.choice([*after]), rng.choice([*after])
        topic = rng.choice(["t", "u"])
        ids = after[giver].get(topic)
        if ids:
            one = ids[-1] if kind == "twice" else ids.pop()
            after[taker].setdefault(topic, []).append(one)
    return after


def owners_of(given: Given) -> Owners:
    return Owners((member, encode_list(has)) for member, has in given.items())


def chain(seed: int) -> list[Owners]:
    rng = Random(seed)
    given: Given = {f"m{number}": {"t": [2 * number, 2 * number + 1], "u": [number]} for number in range(6)}
    told = [owners_of(given)]
    for _ in range(60):
        given = changed(given, rng)
        members = [*given.items()]
        rng.shuffle(members)
        told.append(owners_of(dict(members)))
    return told


def places(owners: Owners) -> dict[str, set[tuple[str, int]]]:
    """What each member was given."""
    return {name: set(owner_of_each(Owners([(name, its)]))) for name, its in owners.given.items()}


@pytest.mark.parametrize("is_fast", [True, False])
def test_a_partition_that_one_of_its_owners_keeps_has_not_moved(is_fast: bool) -> None:
    if is_fast and not fast.is_compiled():
        pytest.skip("there is no compiled part")

    def moved(before: Given, after: Given) -> list[tuple[str | None, str | None]]:
        found = find_moves([owners_of(before)], [owners_of(after)], fast=is_fast)
        return [*zip(found.source.to_pylist(), found.target.to_pylist(), strict=True)]

    def all_have(names: str) -> Given:
        return {name: {"t": [0]} for name in names}

    for before, after in (("a", "ab"), ("ab", "a"), ("ab", "b"), ("abc", "xbz"), ("xay", "bac"), ("b", "ab")):
        assert moved(all_have(before), all_have(after)) == []
    assert moved(all_have("ab"), all_have("dc")) == [("b", "d")]
    assert moved(all_have("ba"), {}) == [("b", None)]
    assert moved({}, all_have("ba")) == [(None, "b")]
    assert moved({"a": {"t": [0, 1]}, "b": {"t": [0]}}, {"a": {"t": [1]}, "c": {"t": [0]}}) == [("b", "c")]


@pytest.mark.parametrize("seed", range(40))
def test_moves_are_what_the_owners_differ_in_whatever_was_before(seed: int) -> None:
    told = chain(seed)
    expected = []
    for number, (before, after) in enumerate(pairwise(told)):
        had, has = owner_of_each(before), owner_of_each(after)
        kept = {one for name, each in places(before).items() for one in each & places(after).get(name, set())}
        expected += [
            (number, *one, had.get(one), has.get(one)) for one in sorted((had.keys() | has.keys()) - kept)
        ]
    raw = [*map(encode_owners, told)]
    for is_fast, chained in ((True, told), (True, raw), (False, raw), (False, told)):
        if is_fast and not fast.is_compiled():
            continue
        moves = find_moves(chained[:-1], chained[1:], fast=is_fast)
        assert [*zip(*(column.to_pylist() for column in moves), strict=True)] == expected


def test_owners_are_what_their_bytes_say() -> None:
    for owners in chain(1):
        assert decode_owners(encode_owners(owners)).given == owners.given


def test_one_identity_that_was_given_something_twice_has_both() -> None:
    twice = Owners([("a", encode_list({"t": [0], "u": [1]})), ("a", encode_list({"u": [2], "v": [3]}))])
    assert twice.given == {"a": encode_list({"t": [0], "u": [1, 2], "v": [3]})}


class TestBounded:
    def test_everything_is_forgotten_when_there_is_no_room(self) -> None:
        known = Bounded[str, int](10)
        known.remember("a", 1, 6)
        known.remember("b", 2, 4)
        assert known == {"a": 1, "b": 2}
        known.remember("c", 3, 1)
        assert known == {"c": 3}
