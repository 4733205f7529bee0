"""How far a group is behind: what it has committed of each partition, and what records that has."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kafka_assignors._cluster.groups import Extent
from kafka_assignors._common.plain import fields_of
from kafka_assignors._groups.account import MemberAccount

Position = tuple[str, int, int]
"""An offset of a partition: topic, partition id, offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """A partition that a group reads, or has read; `owner` is the id of the member that has it.

    `beginning` is the offset of the first record that it still has, `end` the one after its last; None if the
    cluster did not say. `seconds` ago the first record that is not committed was written; 0 without lag. It
    is None if that was not asked, or is not known: why, if it was asked, is `undated`.
    """

    topic: str
    partition: int
    owner: str | None
    committed: int | None
    beginning: int | None
    end: int | None
    seconds: float | None = None
    undated: str = ""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def position(self) -> Position:
        """Its first offset that is neither committed nor deleted."""
        return self.topic, self.partition, max(self.committed or 0, self.beginning or 0)

    @property
    def lag(self) -> int | None:
        """How many offsets there are from the commit to the end; None if one of them is not known.

        Offsets whose records were deleted do not count. It is 0 if the commit is beyond the end, as after a
        topic was created again.
        """
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - max(self.committed, self.beginning or 0))

    @property
    def lost(self) -> int:
        """How many offsets behind the commit were deleted before the group had read them."""
        return 0 if self.committed is None else max(0, (self.beginning or 0) - self.committed)

    @property
    def beyond(self) -> bool:
        return self.committed is not None and self.end is not None and self.committed > self.end

    @property
    def unknown(self) -> bool:
        """Whether there is a commit, and the lag is not known because the end is not."""
        return self.committed is not None and self.end is None

    def to_json(self) -> dict[str, Any]:
        return fields_of(self, "lag", "lost", without=("undated",))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """How far a group is behind, in each partition that it owns, subscribes to or has committed of."""

    partitions: tuple[PartitionLag, ...]

    @property
    def total(self) -> int:
        """The lag of all partitions of which it is known."""
        return sum(one.lag or 0 for one in self.partitions)

    @property
    def uncommitted(self) -> tuple[PartitionLag, ...]:
        """Those that have records, of which the group has committed nothing."""
        return tuple(
            one for one in self.partitions if one.committed is None and (one.end or 0) > (one.beginning or 0)
        )

    @property
    def lost(self) -> tuple[PartitionLag, ...]:
        """Those of which records were deleted before the group had read them."""
        return tuple(one for one in self.partitions if one.lost)

    @property
    def unknown(self) -> tuple[PartitionLag, ...]:
        """Those with a commit whose lag is not known, as their ends are not."""
        return tuple(one for one in self.partitions if one.unknown)

    @property
    def seconds(self) -> float | None:
        """How long ago the oldest record that is not committed was written, as far as that is known."""
        return max((one.seconds for one in self.partitions if one.seconds is not None), default=None)

    def dated(self, ages: Mapping[Position, float | str]) -> "GroupLag":
        """The same with how old the records at the positions of partitions that lag are, or why not."""
        return GroupLag(partitions=tuple(_dated(one, ages) for one in self.partitions))

    def by_member(self) -> dict[str, "GroupLag"]:
        """Member id -> the same of what it has; nothing of a member that has nothing."""
        found: dict[str, list[PartitionLag]] = defaultdict(list)
        for one in self.partitions:
            if one.owner is not None:
                found[one.owner].append(one)
        return {member: GroupLag(partitions=tuple(partitions)) for member, partitions in found.items()}

    def to_json(self) -> dict[str, Any]:
        return {**self.counts(), "partitions": [one.to_json() for one in self.partitions]}

    def counts(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "seconds": self.seconds,
            "uncommitted": len(self.uncommitted),
            "unknown": len(self.unknown),
            "lost": sum(one.lost for one in self.partitions),
        }


def _dated(one: PartitionLag, ages: Mapping[Position, float | str]) -> PartitionLag:
    if one.lag is None or one.beyond:
        return one
    age = ages[one.position] if one.lag else 0.0
    return replace(one, undated=age) if isinstance(age, str) else replace(one, seconds=age)


def lag_owners(
    members: Collection[MemberAccount],
    topics: Mapping[str, Collection[int]],
    committed: Collection[tuple[str, int]],
) -> dict[tuple[str, int], str | None]:
    """Each partition that a group owns, subscribes to or has committed of, by topic and id, and its owner.

    `topics` has the partition ids of each topic that exists. Commits of topics that are gone do not count.
    """
    owners = {one: member.member_id for member in members for one in member.assignment}
    subscribed = {topic for member in members for topic in member.topics}
    wanted = {(topic, partition) for topic in subscribed for partition in topics.get(topic, ())}
    wanted.update(one for one in committed if one[0] in topics)
    return {one: owners.get(one) for one in sorted(wanted | owners.keys())}


def find_lag(
    owners: Mapping[tuple[str, int], str | None],
    committed: Mapping[tuple[str, int], int],
    extents: Mapping[tuple[str, int], Extent],
) -> GroupLag:
    """How far a group is behind in the partitions of `lag_owners`; `extents` has what the cluster named."""
    return GroupLag(
        partitions=tuple(
            PartitionLag(
                topic=one[0],
                partition=one[1],
                owner=owner,
                committed=committed.get(one),
                beginning=extent.beginning if extent else None,
                end=extent.end if extent else None,
            )
            for one, owner in owners.items()
            for extent in [extents.get(one)]
        )
    )
