"""The members of a rebalance: what each of them said, one by one and as columns."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, overload

import numpy as np

from kafka_assignors._model.arrays import IntArray, places
from kafka_assignors._model.claims import NO_EXTRA, Claimed, ClaimTable, Extra, TableClaims
from kafka_assignors._model.tick import Tick, go_on
from kafka_assignors._model.topic_sets import TopicSets

NO_GENERATION = -1
"""The generation of a member that is in none, or that does not say (Kafka's DEFAULT_GENERATION)."""

MAX_WEIGHT = 1000
"""The largest weight of a member."""

MAX_PRIORITY = 1000
"""The highest priority of a member; the lowest is as far below 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """What one member brought to the rebalance, decoded and cleaned.

    Attributes:
        member_id: The id that the coordinator gave it; unique in the group.
        topics: The topics it subscribes to.
        instance_id: Its `group.instance.id` if it is a static member (KIP-345).
        rack: Its rack, None if unknown (KIP-881).
        claims: The partitions that it says it owned, by topic. Any integers: those that do not exist are
            sorted out by `Group`.
        generation: The generation in which it owned them, `NO_GENERATION` if it does not say.
        holds: Whether the claims are partitions that it holds at this moment, and until it has to revoke them
            (cooperative). Otherwise they are only a memory of what it had (eager).
        weight: How much it can take on beside the others: twice the weight, twice the partitions;
            1 to `MAX_WEIGHT`.
        priority: Of a topic's subscribers those of the highest share it; -`MAX_PRIORITY` to `MAX_PRIORITY`.
        data: What its strategy sends for the leader, which may be any bytes.
    """

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    rack: str | None = None
    claims: Mapping[str, Collection[int]] = field(default_factory=dict)
    generation: int = NO_GENERATION
    holds: bool = False
    weight: int = 1
    priority: int = 0
    data: bytes = b""


@dataclass(frozen=True, kw_only=True, eq=False)
class Members(Claimed, Sequence[Member]):
    """The members of a group as columns. As a sequence it makes them one by one, for who asks.

    Instance ids are None for dynamic members. `topics_of` (M,) is which of the different sets of topics each
    subscribes to.
    """

    ids: Sequence[str]
    instance_ids: Sequence[str | None]
    topics: TopicSets
    topics_of: IntArray
    racks: Sequence[str | None]

    @classmethod
    def of(cls, members: Iterable[Member], tick: Tick = go_on) -> Self:
        """Put members into columns; see `Group.of` for the tick."""
        listed = list(members)
        topics: dict[frozenset[str], int] = {}
        return cls(
            ids=[member.member_id for member in listed],
            instance_ids=[member.instance_id for member in listed],
            topics_of=np.array(
                [topics.setdefault(each.topics, len(topics)) for each in listed], dtype=np.int64
            ),
            topics=TopicSets.of(topics, tick),
            racks=[member.rack for member in listed],
            claims=ClaimTable.of([member.claims for member in listed], tick),
            generations=np.array([member.generation for member in listed], dtype=np.int64),
            holds=np.array([member.holds for member in listed], dtype=np.bool_),
            weights=np.array([member.weight for member in listed], dtype=np.int64),
            extras={
                number: Extra(member.priority, member.data)
                for number, member in enumerate(listed)
                if member.priority or member.data
            },
        )

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, number: int) -> Member: ...
    @overload
    def __getitem__(self, number: slice) -> list[Member]: ...
    def __getitem__(self, number: int | slice) -> Member | list[Member]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        extra = self.extras.get(number, NO_EXTRA)
        return Member(
            member_id=self.ids[number],
            topics=self.topics[self.topics_of[number]],
            instance_id=self.instance_ids[number],
            rack=self.racks[number],
            claims=TableClaims(self.claims, number),
            generation=int(self.generations[number]),
            holds=bool(self.holds[number]),
            weight=int(self.weights[number]),
            priority=extra.priority,
            data=extra.data,
        )

    def __iter__(self) -> Iterator[Member]:
        return (self[number] for number in range(len(self)))

    @property
    def wanted(self) -> Collection[str]:
        """All topics that somebody subscribes to."""
        return self.topics.names

    @property
    def static(self) -> list[int]:
        """The numbers of static members."""
        return [number for number, instance in enumerate(self.instance_ids) if instance is not None]

    @property
    def priorities(self) -> IntArray:
        """(M,) the priority of each member."""
        priorities = np.zeros(len(self.ids), dtype=np.int64)
        for number, extra in self.extras.items():
            priorities[number] = extra.priority
        return priorities

    def in_order(self) -> Self:
        """Static members by instance id, then dynamic ones by member id (Kafka's MemberInfo).

        Strings compare by their UTF-16 units, as Java's do, so that every leader sees one order. Raises
        ValueError if two members have one member id, or a member's weight or priority is out of range.
        """
        if len(set(self.ids)) != len(self.ids):
            twice = sorted({name for name in self.ids if list(self.ids).count(name) > 1})
            raise ValueError(f"member ids must differ, but {twice} is there more than once")
        in_range = (self.weights >= 1) & (self.weights <= MAX_WEIGHT)
        if not in_range.all():
            number = int(in_range.argmin())
            raise ValueError(
                f"the weight of {self.ids[number]} must be from 1 to {MAX_WEIGHT}, not {self.weights[number]}"
            )
        for number, extra in self.extras.items():
            if abs(extra.priority) > MAX_PRIORITY:
                raise ValueError(
                    f"the priority of {self.ids[number]} must be from -{MAX_PRIORITY} to {MAX_PRIORITY}, "
                    f"not {extra.priority}"
                )
        order = canonical_order(self.ids, self.instance_ids)
        if order == list(range(len(order))):
            return self
        numbers = np.array(order)
        # Sets of topics are numbered as the members come that have them.
        topics_of = self.topics_of[numbers]
        used, first = np.unique(topics_of, return_index=True)
        used = used[np.argsort(first)]
        place = places(numbers, numbers.size)
        return type(self)(
            ids=[self.ids[number] for number in order],
            instance_ids=[self.instance_ids[number] for number in order],
            topics=self.topics.chosen(used),
            topics_of=places(used, len(self.topics))[topics_of],
            racks=[self.racks[number] for number in order],
            claims=self.claims.renumbered(place, numbers.size),
            generations=self.generations[numbers],
            holds=self.holds[numbers],
            weights=self.weights[numbers],
            extras={int(place[number]): extra for number, extra in self.extras.items()},
        )


def canonical_order(ids: Sequence[str], instance_ids: Sequence[str | None]) -> list[int]:
    """The numbers of members in the order of `Members.in_order`; no instance id is None or empty.

    Members that are put in this order before they are decoded need not be put in it as columns.
    """
    if not any(instance_ids) and all(map(str.isascii, ids)):
        return sorted(range(len(ids)), key=ids.__getitem__)
    keys = [
        (not instance, (instance or name).encode("utf-16-be", "surrogatepass"))
        for name, instance in zip(ids, instance_ids, strict=True)
    ]
    return sorted(range(len(keys)), key=keys.__getitem__)
