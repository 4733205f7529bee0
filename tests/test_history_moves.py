"""The moves of a group's records one after the other, both ways; and what is remembered for it."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from kafka_assignors.history.tables import fast, owners
from kafka_assignors.history.tables.owners import decode_owners, encode_owners, find_moves
from kafka_assignors.protocol.bounded import Bounded

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


def chain(seed: int) -> list[bytes]:
    rng = Random(seed)
    given: Given = {f"m{number}": {"t": [2 * number, 2 * number + 1], "u": [number]} for number in range(6)}
    told = [encode_owners(given.items())]
    for _ in range(60):
        given = changed(given, rng)
        members = [*given.items()]
        rng.shuffle(members)
        told.append(encode_owners(members))
    return told


@pytest.mark.parametrize("seed", range(40))
def test_moves_are_what_the_owners_differ_in_whatever_was_before(seed: int) -> None:
    told = chain(seed)
    expected = []
    for number, (before, after) in enumerate(pairwise(told)):
        had, has = decode_owners(before), decode_owners(after)
        expected += [
            (number, *one, had.get(one), has.get(one))
            for one in sorted(had.keys() | has.keys())
            if had.get(one) != has.get(one)
        ]
    for is_fast in (True, False) if fast.is_compiled() else (False,):
        moves = find_moves(told[:-1], told[1:], fast=is_fast)
        assert [*zip(*(column.to_pylist() for column in moves), strict=True)] == expected


def test_moves_are_the_same_when_nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    told = chain(0)
    expected = find_moves(told[:-1], told[1:], fast=False)
    monkeypatch.setattr(owners, "_exclusive", Bounded[bytes, None](0))
    monkeypatch.setattr(owners, "_given", owners._GivenByMember(0))
    assert find_moves(told[:-1], told[1:], fast=False) == expected


class TestBounded:
    def test_everything_is_forgotten_when_there_is_no_room(self) -> None:
        known = Bounded[str, int](10)
        known.remember("a", 1, 6)
        known.remember("b", 2, 4)
        assert known == {"a": 1, "b": 2}
        known.remember("c", 3, 1)
        assert known == {"c": 3}

    def test_what_is_forgotten_leaves_its_room(self) -> None:
        known = Bounded[str, int](10)
        known.remember("a", 1, 6)
        known.forget("a", 6)
        known.forget("a", 6)
        known.remember("b", 2, 4)
        known.remember("c", 3, 6)
        assert known == {"b": 2, "c": 3}
        known.remember("d", 4, 1)
        assert known == {"d": 4}
