"""What the history of a group is to say, by its members' words and by the script that they were put through.

Nothing here knows how a record looks. A member's word is an event of the test kit: what it said when it
joined ("metadata"), what it was given ("assignment"), and of a leader what all said and what it gave them
("assign").
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from integration_tests.support.scripted_groups import Partitions, Reason, Script
from kafka_assignors._timelines.events import AssignmentReceived, Joining, Led, Started
from kafka_assignors._timelines.timeline import Timeline

Of = tuple[int, str]
"""A generation and a member id."""
Moved = tuple[str, int, str | None, str | None]
"""Topic, partition, who had it, and who has it."""


class Said(NamedTuple):
    """What a member told the leader."""

    topics: tuple[str, ...]
    version: int
    owned: Partitions
    generation: int
    user_data: bytes


class Round(NamedTuple):
    """A rebalance: the generations from one in which all was owned to the next."""

    reasons: frozenset[Reason]
    first: int
    last: int
    before: Mapping[tuple[str, int], str]
    after: Mapping[tuple[str, int], str]
    members: int

    def count(self, *kinds: str) -> int:
        return sum(kind in kinds for kind, _ in self.reasons)

    @property
    def moves(self) -> set[Moved]:
        return moved(self.before, self.after)

    @property
    def loads(self) -> Counter[str]:
        return Counter(self.after.values())


class Truth:
    """What members told of their generations.

    Attributes:
        name: The member of each member id, as the kit calls it: its client id.
        instance_id: The instance ids of static members by member id.
        heard: What each member heard that it was given.
        planned: What leaders gave members, in generations that anybody heard of; not all leaders tell.
        leader: The member id of each generation's leader, if it tells.
        told: What members say that they said, before each generation that they came to.
        told_to_leader: What leaders say that members said.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.name: dict[str, str] = {}
        self.instance_id: dict[str, str | None] = {}
        self.heard: dict[Of, Partitions] = {}
        self.planned: dict[Of, Partitions] = {}
        self.leader: dict[int, str] = {}
        self.told: dict[Of, Said] = {}
        self.told_to_leader: dict[Of, Said] = {}
        started = {event.member: event for event in timeline.of(Started)}
        said: dict[str, Said] = {}
        plans: list[Led] = []
        for event in timeline.of(Joining, Led, AssignmentReceived):
            if isinstance(event, Joining):
                said[event.member] = Said(
                    topics=event.topics or (),
                    version=event.version,
                    owned=_pairs(event.owned),
                    generation=event.claimed_generation,
                    user_data=bytes.fromhex(event.user_data),
                )
            elif isinstance(event, Led):
                plans.append(event)
            elif isinstance(event, AssignmentReceived):
                of = event.generation, event.member_id
                parts = _pairs(event.partitions)
                assert self.heard.setdefault(of, parts) == parts, event
                self.name[of[1]] = event.member
                self.instance_id[of[1]] = started[event.member].instance_id
                if event.member in said:
                    self.told[of] = said[event.member]
        for event in plans:
            self._add_plan(event)

    def _add_plan(self, event: Led) -> None:
        """A plan counts if anybody got it: a leader may be overtaken by the next rebalance."""
        number = event.generation
        if number not in self.generations:
            return
        self.leader[number] = event.member_id
        for member_id, given in (event.plan or {}).items():
            self.planned[number, member_id] = frozenset(map(_pair, given["partitions"]))
        for member_id, claims in event.claims.items():
            self.told_to_leader[number, member_id] = _said(claims)

    @property
    def generations(self) -> list[int]:
        return sorted({number for number, _ in self.heard})

    @property
    def given(self) -> dict[Of, Partitions]:
        """What members were given, by their own words, or by the leader's where they did not hear of it."""
        return {**self.planned, **self.heard}

    @property
    def said(self) -> dict[Of, Said]:
        """What members said, by the leader's word or by their own."""
        return {**self.told_to_leader, **self.told}

    def identity(self, member_id: str) -> str:
        return self.instance_id[member_id] or member_id

    def before(self, of: Of) -> tuple[int, Partitions] | None:
        """The last generation that this member heard of earlier, and what it had in it."""
        number, member_id = of
        earlier = [one for one, other in self.heard if other == member_id and one < number]
        return (max(earlier), self.heard[max(earlier), member_id]) if earlier else None

    def members(self, generation: int) -> dict[str, str]:
        """Identity -> the last member id that it had in a generation."""
        # A static member that came back has the same identity, and heard later.
        return {self.identity(one): one for number, one in self.given if number == generation}

    def owners(self, generation: int) -> dict[tuple[str, int], str]:
        return {
            partition: self.identity(member_id)
            for (number, member_id), partitions in self.given.items()
            if number == generation
            for partition in partitions
        }


def moved(before: Mapping[tuple[str, int], str], after: Mapping[tuple[str, int], str]) -> set[Moved]:
    return {
        (*partition, before.get(partition), after.get(partition))
        for partition in before.keys() | after.keys()
        if before.get(partition) != after.get(partition)
    }


def owners(owned: Mapping[str, Partitions]) -> dict[tuple[str, int], str]:
    return {partition: member for member, partitions in owned.items() for partition in partitions}


def by_topic(partitions: Partitions) -> dict[str, tuple[int, ...]]:
    """Partition ids, sorted, by topic."""
    return {
        topic: tuple(sorted(number for name, number in partitions if name == topic))
        for topic in {topic for topic, _ in partitions}
    }


def rounds(script: Script, truth: Truth) -> list[Round]:
    """The rebalances that a script led to.

    A client may join once more than it has to, in which nothing changes.
    """
    found: list[Round] = []
    last = 0
    for step in script.steps:
        first: int | None = None
        for number in truth.generations:
            if not step.generation_before < number <= step.generation:
                continue
            first = number if first is None else first
            before, after = truth.owners(last), truth.owners(number)
            if before.keys() - after.keys():
                continue  # somebody gave up what nobody has yet
            came = truth.members(last).keys() != truth.members(number).keys()
            why = step.reasons if came or before.keys() != after.keys() else frozenset({("unknown", "")})
            found.append(Round(why, first, number, before, after, len(truth.members(number))))
            last, first = number, None
    return found


def _said(told: Mapping[str, Any]) -> Said:
    return Said(
        topics=tuple(told["topics"]),
        version=told["version"],
        owned=frozenset(map(_pair, told["owned"])),
        generation=told["claimed_generation"],
        user_data=bytes.fromhex(told["user_data"]),
    )


def _pair(listed: Any) -> tuple[str, int]:
    topic, number = listed
    return str(topic), int(number)


def _pairs(partitions: Any) -> Partitions:
    return frozenset((one.topic, one.partition) for one in partitions)
