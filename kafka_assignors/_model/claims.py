"""What members say that they own, as columns: found among the partitions that exist, and settled."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from kafka_assignors._model.arrays import NOBODY, BoolArray, IntArray, ranges
from kafka_assignors._model.tick import Tick, go_on
from kafka_assignors._model.topic_sets import TopicNumbers

_EMPTY = np.empty(0, dtype=np.int64)
_ID_BITS = 32


@dataclass(frozen=True, kw_only=True, eq=False)
class ClaimTable:
    """The claims of many members, one row a (claimant, topic).

    Attributes:
        claimants: How many claims there are; their numbers are 0 and up.
        names: Names of topics.
        claimant: (R,) the number of the claim that a row is of, ascending.
        topic: (R,) the place of its topic in `names`.
        sizes: (R,) how many ids it has.
        ids: The partition ids of all rows, one row after another. Any integers of 64 bits.
    """

    claimants: int
    names: Sequence[str]
    claimant: IntArray
    topic: IntArray
    sizes: IntArray
    ids: IntArray

    @cached_property
    def ends(self) -> IntArray:
        """(R,) where the ids of each row end."""
        return np.cumsum(self.sizes)

    @classmethod
    def empty(cls, claimants: int) -> Self:
        """The table of so many that claim nothing."""
        return cls(claimants=claimants, names=(), claimant=_EMPTY, topic=_EMPTY, sizes=_EMPTY, ids=_EMPTY)

    @classmethod
    def of(cls, claims: Sequence[Mapping[str, Collection[int]]], tick: Tick = go_on) -> "ClaimTable":
        """Put claims into one table, those that come out of a table without reading them."""
        tables: dict[int, tuple[ClaimTable, IntArray]] = {}
        listed: list[Iterable[tuple[str, Collection[int]]]] = []
        for number, claim in enumerate(claims):
            listed.append(())
            if isinstance(claim, TableClaims):
                table = claim.table
                _, number_of = tables.setdefault(id(table), (table, np.full(table.claimants, -1)))
                if number_of[claim.number] < 0:
                    number_of[claim.number] = number
                    continue
                # The same claim once more: its rows are another claimant's already.
            listed[-1] = claim.items()
        rows: ClaimTable = cls.of_rows(listed, tick)
        for table, number_of in tables.values():
            rows = (
                rows.joined(table, number_of)
                if rows.claimant.size
                else table.renumbered(number_of, len(claims))
            )
        return rows

    @classmethod
    def of_rows(cls, rows: Sequence[Iterable[tuple[str, Collection[int]]]], tick: Tick = go_on) -> Self:
        """Put claims given as pairs of topic and ids into one table; a topic may come more than once."""
        names: dict[str, int] = {}
        claimant, topic, sizes, ids = [], [], [], [_EMPTY]
        for number, pairs in enumerate(rows):
            tick()
            for name, claimed in pairs:
                claimant.append(number)
                topic.append(names.setdefault(name, len(names)))
                ids.append(_array(claimed))
                sizes.append(ids[-1].size)
        return cls(
            claimants=len(rows),
            names=list(names),
            claimant=np.array(claimant, dtype=np.int64),
            topic=np.array(topic, dtype=np.int64),
            sizes=np.array(sizes, dtype=np.int64),
            ids=np.concatenate(ids),
        )

    def renumbered(self, number_of: IntArray, claimants: int) -> Self:
        """These rows, with claim i as number_of[i]; those with -1 are left out."""
        claimant = np.where(self.claimant < 0, -1, number_of[self.claimant])
        if claimant.size and (claimant[0] < 0 or (claimant[1:] < claimant[:-1]).any()):
            order = np.argsort(claimant, kind="stable")
            order = order[np.searchsorted(claimant[order], 0) :]
            sizes = self.sizes[order]
            at, _ = ranges((self.ends - self.sizes)[order], sizes)
            return replace(
                self,
                claimants=claimants,
                claimant=claimant[order],
                topic=self.topic[order],
                sizes=sizes,
                ids=self.ids[at],
            )
        return replace(self, claimants=claimants, claimant=claimant)

    def joined(self, other: "ClaimTable", number_of: IntArray) -> Self:
        """These rows and those of another table; see `renumbered`."""
        both = replace(
            self,
            names=[*self.names, *other.names],
            claimant=np.concatenate((self.claimant, number_of[other.claimant])),
            topic=np.concatenate((self.topic, other.topic + len(self.names))),
            sizes=np.concatenate((self.sizes, other.sizes)),
            ids=np.concatenate((self.ids, other.ids)),
        )
        return both.renumbered(np.arange(self.claimants), self.claimants)

    def claims(self) -> list["TableClaims"]:
        return [TableClaims(self, number) for number in range(self.claimants)]


class TableClaims(Mapping[str, list[int]]):
    """One claim of a table: partition ids by topic, read only if somebody asks."""

    def __init__(self, table: ClaimTable, number: int) -> None:
        self.table = table
        self.number = number

    @cached_property
    def _by_topic(self) -> dict[str, list[int]]:
        table = self.table
        start, stop = np.searchsorted(table.claimant, (self.number, self.number + 1)).tolist()
        by_topic: dict[str, list[int]] = {}
        for topic, size, end in zip(
            *(each[start:stop].tolist() for each in (table.topic, table.sizes, table.ends)), strict=True
        ):
            by_topic.setdefault(table.names[topic], []).extend(table.ids[end - size : end].tolist())
        return by_topic

    def __getitem__(self, topic: str) -> list[int]:
        return self._by_topic[topic]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_topic)

    def __len__(self) -> int:
        return len(self._by_topic)

    def __repr__(self) -> str:
        return repr(self._by_topic)


def _array(claimed: Collection[int]) -> IntArray:
    try:
        return np.fromiter(claimed, dtype=np.int64, count=len(claimed))
    except OverflowError:  # no partition has such an id
        return np.array([number for number in claimed if number >> _ID_BITS == 0], dtype=np.int64)


class Extra(NamedTuple):
    """What few members send beside claim and weight; see `Member`."""

    priority: int = 0
    data: bytes = b""


NO_EXTRA = Extra()


@dataclass(frozen=True, kw_only=True, eq=False)
class Claimed:
    """What members claim, and what stands beside it, each (M,).

    `generations` are those in which they owned what they claim. `holds` is whether they hold it now. `extras`
    has, by their numbers, members that send more than a weight.
    """

    claims: ClaimTable
    generations: IntArray
    holds: BoolArray
    weights: IntArray
    extras: Mapping[int, Extra] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Existing:
    """The partitions that exist: the ids (N,) of each, ascending in a topic.

    `topics` has the number of each topic, in their order. The partitions of topic t are
    bounds[t]..bounds[t + 1] - 1.
    """

    topics: Mapping[str, int]
    ids: IntArray
    bounds: IntArray

    @property
    def size(self) -> int:
        """N, the number of partitions."""
        return self.ids.size

    def find(self, topic: IntArray, sizes: IntArray, ids: IntArray) -> IntArray:
        """(S,) the partitions of R rows of ids; -1 for a topic or a partition that does not exist."""
        if not self.size:
            return np.full(ids.size, -1)
        first, counts = self.bounds[:-1], self.bounds[1:] - self.bounds[:-1]
        # Ids that count up from 0, as they nearly always do, tell their place.
        count = np.where(topic < 0, 0, counts[topic]).repeat(sizes)
        partition = np.where((ids >= 0) & (ids < count), ids + first[topic].repeat(sizes), -1)
        has_gaps = self.ids[self.bounds[1:] - 1] != counts - 1
        if has_gaps.any():
            odd = has_gaps[topic].repeat(sizes)  # of an unknown topic, too: it is not found
            keys = np.arange(counts.size).repeat(counts) << _ID_BITS | self.ids
            wanted = topic.repeat(sizes)[odd] << _ID_BITS | ids[odd]
            found = np.minimum(keys.searchsorted(wanted), keys.size - 1)
            right = (keys[found] == wanted) & (ids[odd] >= 0) & (ids[odd] >> _ID_BITS == 0)
            partition[odd] = np.where(right, found, -1)
        return partition

    def places_of(self, others: "Existing") -> IntArray:
        """(N,) the partitions here of those that exist elsewhere; -1 for what does not exist here."""
        topics = np.array([self.topics.get(topic, -1) for topic in others.topics], dtype=np.int64)
        return self.find(topics, np.diff(others.bounds), others.ids)


@dataclass(frozen=True, kw_only=True, eq=False)
class Claims:
    """The claims on partitions that exist, one entry a (partition, member); parallel arrays.

    `generation` is the one in which the member owned it, `held` whether it holds it at this moment.
    `subscribed` is whether it still subscribes to the topic.
    """

    partition: IntArray
    member: IntArray
    generation: IntArray
    subscribed: BoolArray
    held: BoolArray

    @classmethod
    def find(
        cls,
        table: ClaimTable,
        existing: Existing,
        *,
        subscribed: TopicNumbers,
        subscription_of: IntArray,
        generations: IntArray,
        holds: BoolArray,
        tick: Tick = go_on,
    ) -> Self:
        """Find what the M members claim among what exists; the rest of a claim is dropped."""
        if not table.ids.size:
            none = np.empty(0, dtype=np.bool_)
            return cls(partition=_EMPTY, member=_EMPTY, generation=_EMPTY, subscribed=none, held=none)
        numbers = np.array([existing.topics.get(name, -1) for name in table.names], dtype=np.int64)
        topic = numbers[table.topic]
        partition = existing.find(topic, table.sizes, table.ids)
        tick()
        member = table.claimant.repeat(table.sizes)
        wanted = subscribed.contain(subscription_of[table.claimant], topic).repeat(table.sizes)
        found = partition >= 0
        if not found.all():
            partition, member, wanted = partition[found], member[found], wanted[found]
        tick()
        times = np.bincount(partition, minlength=existing.size)
        if times.max(initial=0) > 1:
            # A member that claims a partition twice claims it once.
            once = np.unique(member * existing.size + partition, return_index=True)[1]
            partition, member, wanted = partition[once], member[once], wanted[once]
        return cls(
            partition=partition,
            member=member,
            generation=generations[member],
            subscribed=wanted,
            held=holds[member],
        )

    def owners(self, size: int) -> IntArray:
        """(size,) the member whose claim on each partition is valid, or `NOBODY`.

        Who holds a partition comes before who only remembers it, then the highest generation wins; two such
        claims of one generation cancel each other. A claim counts only while its member subscribes.
        """
        return self._highest(self.subscribed, size, holders_first=True)

    def previous_owners(self, newest: int, size: int) -> IntArray:
        """(size,) the same among the claims from before a generation, whether held or not."""
        return self._highest(self.subscribed & (self.generation < newest), size, holders_first=False)

    def _highest(self, valid: BoolArray, size: int, *, holders_first: bool) -> IntArray:
        owner = np.full(size, NOBODY, dtype=np.int64)
        partition, member = self.partition, self.member
        if not valid.all():
            partition, member = partition[valid], member[valid]
        if not partition.size or np.bincount(partition).max() <= 1:
            owner[partition] = member
            return owner
        rank = self.generation[valid]
        if holders_first:  # a generation has 32 bits, so that any claim of a holder ranks before all others
            rank += self.held[valid].astype(np.int64) << 33
        order = np.lexsort((-rank, partition))
        partition, member, rank = partition[order], member[order], rank[order]
        first = np.ones(partition.size, dtype=np.bool_)
        first[1:] = partition[1:] != partition[:-1]
        tied = np.zeros(partition.size, dtype=np.bool_)  # the next claim ranks as high, on the same partition
        tied[:-1] = ~first[1:] & (rank[1:] == rank[:-1])
        sole = first & ~tied
        owner[partition[sole]] = member[sole]
        return owner
