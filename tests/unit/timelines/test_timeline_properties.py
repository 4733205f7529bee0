"""Ownership, overlaps, gaps, moves and best plans of random timelines, against slow and obvious oracles."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given, strategies as st
from kafka import TopicPartition

from kafka_assignors._timelines.best import best_plan, find_settled, unevenness
from kafka_assignors._timelines.events import (
    Assigned,
    AssignmentReceived,
    End,
    Event,
    Lost,
    Revoked,
)
from kafka_assignors._timelines.ownership import Ownership, Reading
from kafka_assignors._timelines.timeline import Timeline
from tests.support.scale import examples
from tests.support.timelines import event, history

MEMBERS = "abc"
PARTITIONS = tuple(TopicPartition("t", number) for number in range(3))
END = 12

Unit = tuple[TopicPartition, int]
"""A partition in the second that begins at a time."""


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """Any events at whole seconds, members' ends among them, and two members that may be one instance."""
    static = draw(st.booleans())
    events = [
        event(0, name, "started", instance_id="one" if static and name in "ab" else None) for name in MEMBERS
    ]
    generation = 1
    ends = ["crashed", "closed", "exited", "unsubscribed"]
    kinds = ["assigned", "revoked", "lost", "assignment", "assignment", *ends]
    for time in draw(st.lists(st.integers(1, END - 1), min_size=5, max_size=20).map(sorted)):
        generation += draw(st.integers(0, 1))
        kind = draw(st.sampled_from(kinds))
        partitions = draw(st.sets(st.sampled_from(PARTITIONS)))
        events.append(
            event(
                time,
                draw(st.sampled_from(MEMBERS)),
                kind,
                *(() if kind in ends else partitions),
                generation=draw(st.integers(max(1, generation - 1), generation)),
            )
        )
    return Timeline(events, end=END)


def owners_by_callback(events: Iterable[Event]) -> set[tuple[str, TopicPartition]]:
    """Who has what after these events."""
    owners: set[tuple[str, TopicPartition]] = set()
    for one in events:
        match one:
            case Assigned():
                owners |= {(one.member, partition) for partition in one.partitions}
            case Revoked() | Lost():
                owners -= {(one.member, partition) for partition in one.partitions}
            case _ if isinstance(one, End):
                owners = {pair for pair in owners if pair[0] != one.member}
    return owners


def owners_by_generation(
    events: Iterable[Event], identity: Mapping[str, str]
) -> set[tuple[str, TopicPartition]]:
    """Who has what after these events: each one's last word in the newest generation, unless it ended."""
    events = list(events)
    newest = max((one.generation for one in events if isinstance(one, AssignmentReceived)), default=None)
    owners: dict[str, tuple[str, frozenset[TopicPartition]]] = {}
    for one in events:
        who = identity[one.member]
        if isinstance(one, AssignmentReceived) and one.generation == newest:
            owners[who] = one.member, one.partitions
        elif isinstance(one, End) and who in owners and owners[who][0] == one.member:
            del owners[who]
    return {(member, partition) for member, partitions in owners.values() for partition in partitions}


def owners_at(timeline: Timeline, reading: Reading, second: int) -> set[tuple[str, TopicPartition]]:
    events = [one for one in timeline.events if one.time <= second]
    if reading == "callback":
        return owners_by_callback(events)
    return owners_by_generation(events, timeline.identity)


def seconds(owned: Ownership) -> range:
    return range(int(owned.start), END if owned.end is None else int(owned.end))


@examples(300)
@given(timelines(), st.sampled_from(["callback", "generation"]))
def test_ownership_is_what_the_events_say_at_every_moment(timeline: Timeline, reading: Reading) -> None:
    for second in range(END):
        found = {(one.member, one.partition) for one in timeline.ownership(reading) if second in seconds(one)}
        assert found == owners_at(timeline, reading, second)


@examples(300)
@given(timelines(), st.sampled_from(["callback", "generation"]))
def test_overlaps_are_the_moments_with_two_owners(timeline: Timeline, reading: Reading) -> None:
    expected: Counter[tuple[TopicPartition, frozenset[str]]] = Counter()
    for second in range(END):
        owners = owners_at(timeline, reading, second)
        for (first, one), (other, same) in itertools.combinations(owners, 2):
            if one == same:
                expected[one, frozenset((first, other))] += 1
    found: Counter[tuple[TopicPartition, frozenset[str]]] = Counter()
    for overlap in timeline.overlaps(reading):
        found[overlap.partition, frozenset(overlap.members)] += int(overlap.seconds)
    assert found == expected


class Counted(dict[str, str]):
    """Who each member is, and how often that was asked."""

    asked = 0

    def __getitem__(self, member: str) -> str:
        self.asked += 1
        return super().__getitem__(member)


def test_a_large_generation_is_read_member_by_member_and_not_pair_by_pair() -> None:
    nothing = dict.fromkeys((f"m{number}" for number in range(100)), "")
    timeline = history(nothing, nothing)
    timeline.identity = identity = Counted(timeline.identity)
    assert (timeline.double_assigned(), timeline.ownership("generation")) == ({}, ())
    assert identity.asked < 10 * len(timeline.events)


def test_many_owners_after_one_another_are_not_compared_pair_by_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, asked = Ownership.ended, list[Ownership]()

    def counted(one: Ownership, until: float) -> float:
        asked.append(one)
        return ended(one, until)

    monkeypatch.setattr(Ownership, "ended", counted)
    kinds = ("assigned", "revoked")
    timeline = Timeline([event(time, "a", kinds[time % 2], *PARTITIONS) for time in range(200)])
    assert timeline.overlaps() == ()
    assert len(asked) < 10 * len(timeline.ownership())


@examples(300)
@given(timelines(), st.sampled_from(["callback", "generation"]))
def test_gaps_are_the_moments_without_an_owner_after_the_first(timeline: Timeline, reading: Reading) -> None:
    # An owner for no time at all is an owner too.
    first = {one.partition: one.start for one in reversed(timeline.ownership(reading))}
    expected: set[Unit] = set()
    for second in range(END):
        owned = {partition for _, partition in owners_at(timeline, reading, second)}
        expected |= {(one, second) for one, begin in first.items() if begin <= second and one not in owned}
    found = [
        (gap.partition, second)
        for gap in timeline.gaps(reading)
        for second in range(int(gap.start), int(gap.start + gap.seconds))
    ]
    assert len(found) == len(set(found))
    assert set(found) == expected


ASSIGNMENTS = st.dictionaries(st.sampled_from("0123"), st.sampled_from(["", *MEMBERS]), min_size=1)
"""Partition -> its owner, or nobody."""


def by_member(owners: Mapping[str, str]) -> dict[str, str]:
    return {
        member: "".join(number for number, owner in owners.items() if owner == member) for member in MEMBERS
    }


@given(st.lists(ASSIGNMENTS, max_size=6))
def test_moves_are_the_changes_between_one_owner_and_the_next(generations: list[dict[str, str]]) -> None:
    timeline = history(*map(by_member, generations))
    expected = []
    for number in "0123":
        owners = [
            (generation, owners[number])
            for generation, owners in enumerate(generations, start=1)
            if owners.get(number)
        ]
        expected += [
            (generation, number, source, target)
            for (_, source), (generation, target) in itertools.pairwise(owners)
            if source != target
        ]
    found = [
        (one.generation, str(one.partition.partition), one.source, one.target) for one in timeline.moves()
    ]
    assert sorted(found) == sorted(expected)
    assert timeline.moves(after=3) == tuple(one for one in timeline.moves() if one.generation > 3)


TOPICS = {"s": 2, "t": 3}
ALL = tuple(TopicPartition(topic, number) for topic, count in TOPICS.items() for number in range(count))
SUBSCRIPTIONS = st.fixed_dictionaries(
    {member: st.frozensets(st.sampled_from(sorted(TOPICS))) for member in MEMBERS}
)


def least_by_trying(
    subscriptions: Mapping[str, frozenset[str]],
    before: Mapping[TopicPartition, str],
    weights: Mapping[str, int],
) -> tuple[tuple[TopicPartition, ...], int]:
    """The partitions that somebody wants, and the fewest moves among all the most balanced assignments."""
    wanted = tuple(one for one in ALL if any(one.topic in topics for topics in subscriptions.values()))
    choices = [[name for name in MEMBERS if one.topic in subscriptions[name]] for one in wanted]
    ways = []
    for owners in itertools.product(*choices):
        loads = {member: owners.count(member) for member in MEMBERS}
        moves = sum(
            before[one] != owner
            for one, owner in zip(wanted, owners, strict=True)
            if one.topic in subscriptions[before[one]]
        )
        ways.append((unevenness(loads, weights), moves))
    return wanted, min(ways)[1]


@given(
    SUBSCRIPTIONS,
    st.tuples(*[st.sampled_from(MEMBERS) for _ in ALL]),
    st.fixed_dictionaries({"a": st.integers(1, 3)}),
)
def test_the_best_plan_moves_as_little_as_the_best_of_all_assignments(
    subscriptions: dict[str, frozenset[str]], owners: tuple[str, ...], weights: dict[str, int]
) -> None:
    before = dict(zip(ALL, owners, strict=True))
    wanted, least = least_by_trying(subscriptions, before, weights)
    holdings = {member: frozenset(one for one in wanted if before[one] == member) for member in MEMBERS}
    assert best_plan(wanted, subscriptions, holdings, weights=weights).moves == least


@given(st.tuples(*[st.sampled_from(MEMBERS)] * 4), st.tuples(*[st.sampled_from(MEMBERS)] * 4))
def test_a_settled_rebalance_counts_what_was_taken_from_members_that_are_there(
    before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    first = by_member(dict(zip("0123", before, strict=True)))
    # c is gone then.
    second = by_member(dict(zip("0123", (owner.replace("c", "a") for owner in after), strict=True)))
    del second["c"]
    timeline = history(first, second)
    *_, settled = find_settled(timeline.rebalances, timeline.events, timeline.identity)
    taken = [
        number for number in range(4) if before[number] != "c" and str(number) not in second[before[number]]
    ]
    assert settled.generations == (2,)
    assert [move.partition.partition for move in settled.moves] == taken
    assert settled.least == max(0, max(before.count("a"), before.count("b")) - 2)
