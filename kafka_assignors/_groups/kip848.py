"""A group of KIP-848, put together from records that each hold a part of it.

The coordinator writes each member's metadata (type 5), the group's epoch (3), and what members are to have
(7) and for which epoch (6). It also writes what each of them has (8). A snapshot is what these add up to:

- The generation is the epoch of the target assignment.
- A member has what it was given and what it has yet to revoke: it consumes both. A static member that is away
  (its epoch is -2) has nothing.
- The group is settled as Kafka's `ConsumerGroup` is stable. No epoch is waiting for a target assignment, and
  every member is stable at the target's epoch. A group without members is.
- A snapshot is worth telling if members, subscriptions, owners, the generation, or whether it is settled
  differ from the snapshot before.

Where the log was not read for long, compaction may have removed the tombstones of members, or of the group,
before they were seen. Two rules of the coordinator's show that:

- No member's epoch is ahead of its group's. One that is was in a group of the same name before this one.
- A living member says what it has after each newer target assignment. It learns of it at its next heartbeat,
  at the latest when its session timeout is over. If it then takes longer than its rebalance timeout to revoke
  partitions, it is fenced. One that says nothing for longer than both is gone. If it says something after
  all, it is there again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kafka_assignors._common.uuids import uuid_text
from kafka_assignors._groups.snapshots import KIP848, ArchivedRecord, Partitions, Snapshot, SnapshotMember
from kafka_assignors._wire.offsets_topic import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadata,
    ConsumerGroupPartitionMetadata,
    ConsumerGroupRegularExpression,
    ConsumerGroupTargetAssignmentMetadata,
    EpochMemberState,
    Record,
    TopicPartitions,
)

_AWAY: Final = -2
"""The epoch of a static member that left and may come back."""

_SESSION_TIMEOUT_MS: Final = 60_000
"""The longest that brokers allow by default (`group.consumer.max.session.timeout.ms`); what it is, is in no
record, but for members that use the classic protocol.
"""


@dataclass(slots=True)
class _KnownMember:
    """What is known of a member: what it said, and what it has.

    `due_us` is since when it is to say that it has what a newer target gives it. `gone` is a member that took
    longer for that than the coordinator allows. `made` is what the last snapshot has of it, None if that may
    have changed.
    """

    metadata: ConsumerGroupMemberMetadataValue | None = None
    has: ConsumerGroupCurrentMemberAssignmentValue | None = None
    metadata_last: bool = False
    due_us: int | None = None
    gone: bool = False
    made: SnapshotMember | None = None

    @property
    def patience_us(self) -> int:
        """How long it may take to say that it has what it is to have, in microseconds."""
        if self.metadata is None:
            return 1000 * _SESSION_TIMEOUT_MS
        return 1000 * (
            max(_session_timeout_ms(self.metadata), _SESSION_TIMEOUT_MS) + self.metadata.rebalance_timeout_ms
        )


class Kip848Group:
    """What is known of a group of KIP-848; see the module.

    There is no snapshot before both its epoch and its assignment's are known, as where the log begins with
    what compaction has left. `topic_names` are by Java's text of their ids.
    """

    def __init__(self, topic_names: Mapping[str, str]) -> None:
        self._names = {**topic_names}
        self._matches: dict[str, tuple[str, ...]] = {}
        self._given_out: tuple[object, ...] | None = None
        self._changed = False
        self._forget()

    def _forget(self) -> None:
        self._members: dict[str, _KnownMember] = {}
        self._epoch: int | None = None
        self._rose_us = 0
        self._assignment_epoch: int | None = None
        self._last: ArchivedRecord | None = None
        self._group = ""
        self._ended: int | None = None

    def learn(self, topic_names: Mapping[str, str]) -> None:
        self._rename(topic_names)

    def _rename(self, names: Mapping[str, str]) -> None:
        """Take names of topics; what members have may be called otherwise now."""
        self._names.update(names)
        for member in self._members.values():
            member.made = None

    def add(self, record: ArchivedRecord, decoded: Record) -> None:
        match decoded:
            case ConsumerGroupMetadata(value=value):
                self._move_on(None if value is None else value.epoch, record.time_us)
            case ConsumerGroupTargetAssignmentMetadata(value=value):
                self._assign(None if value is None else value.assignment_epoch, record.time_us)
            case ConsumerGroupMemberMetadata(member_id=member_id, value=value):
                member = self._member(member_id)
                member.metadata, member.metadata_last = value, True
            case ConsumerGroupCurrentMemberAssignment(member_id=member_id, value=value):
                member = self._member(member_id)
                member.has, member.metadata_last = value, False
            case ConsumerGroupRegularExpression(regular_expression=expression, value=value):
                self._matches[expression] = () if value is None else value.topics
                self._rename({})
            case ConsumerGroupPartitionMetadata(value=value):
                topics = () if value is None else value.topics
                self._rename({uuid_text(topic.topic_id): topic.topic_name for topic in topics})
            case _:
                return
        self._changed = True
        self._last = record
        self._group = getattr(decoded, "group_id", self._group)

    def _move_on(self, epoch: int | None, time_us: int) -> None:
        """The group's epoch; None if it is gone. A lower one than before is that of a group made anew."""
        if epoch is None:
            if self._epoch is not None:
                ended = self._assignment_epoch or self._epoch
                self._forget()
                self._ended = ended
            return
        self._ended = None
        if epoch == self._epoch:
            return
        self._epoch, self._rose_us = epoch, time_us
        # Records of the group that this one follows are told by their epochs alone: of this group's own,
        # compaction may have left some before its epoch's, such as those of members that joined early.
        if self._assignment_epoch is not None and self._assignment_epoch > epoch:
            self._assignment_epoch = None
        for member_id, member in [*self._members.items()]:
            if member.has is None or member.has.member_epoch <= epoch:
                continue
            if member.metadata_last:  # a consumer keeps its id for as long as it lives: it is in both groups
                member.has = member.made = None
            else:
                del self._members[member_id]

    def _assign(self, epoch: int | None, time_us: int) -> None:
        """The epoch of the target assignment; None if there is none any more."""
        self._assignment_epoch = epoch
        if epoch is None:
            return
        for member in self._members.values():
            if member.due_us is None and (member.has is None or member.has.member_epoch < epoch):
                member.due_us = time_us

    def give_up(self, now_us: int) -> None:
        """Take members for gone that would have said something by now, or would have been fenced."""
        for member in self._members.values():
            if member.due_us is not None and not member.gone and now_us - member.due_us > member.patience_us:
                member.gone = self._changed = True

    def snapshot(self) -> Snapshot | None:
        """The group as it is now; None if nothing worth telling has changed, or too little is known."""
        if not self._changed or self._last is None:
            return None
        self._changed = False
        self._members = {one: known for one, known in self._members.items() if known.metadata or known.has}
        if self._ended is not None:
            made = self._make((), settled=True)
            self._ended = self._given_out = None
            return made
        if self._epoch is None or self._assignment_epoch is None:
            return None
        members = [
            self._read(member_id, member)
            for member_id, member in self._members.items()
            if member.metadata is not None and not member.gone
        ]
        members.sort(key=lambda member: (member.identity, member.member_id))
        made = self._make(tuple(members), settled=not members or self._stable)
        picture = (
            made.generation,
            made.settled,
            [(one.identity, one.member_id, one.topics, one.assignment) for one in made.members],
        )
        if picture == self._given_out:
            return None
        self._given_out = picture
        return made

    def _member(self, member_id: str) -> _KnownMember:
        """A member of which there is a record, so that it is not gone without a word."""
        member = self._members.setdefault(member_id, _KnownMember())
        member.due_us, member.gone, member.made = None, False, None
        return member

    @property
    def _stable(self) -> bool:
        return self._epoch == self._assignment_epoch and all(
            member.has is not None
            and member.has.state == EpochMemberState.STABLE
            and member.has.member_epoch == self._assignment_epoch
            for member in self._members.values()
            if not member.gone
        )

    def _make(self, members: tuple[SnapshotMember, ...], *, settled: bool) -> Snapshot:
        assert self._last is not None  # noqa: S101 - for the type checker
        wanted = Counter(
            member.metadata.server_assignor
            for member in self._members.values()
            if member.metadata is not None and member.metadata.server_assignor and not member.gone
        )
        return Snapshot(
            group=self._group,
            generation=self._ended or self._assignment_epoch or self._epoch or 0,
            time_us=self._last.time_us,
            state_time_us=self._rose_us or None,
            partition=self._last.partition,
            offset=self._last.offset,
            leader_epoch=self._last.leader_epoch,
            protocol_type=KIP848,
            strategy=max(sorted(wanted), key=lambda name: wanted[name], default=None) if members else None,
            members=members,
            settled=settled,
        )

    def _read(self, member_id: str, member: _KnownMember) -> SnapshotMember:
        if member.made is not None:
            return member.made
        metadata, has = member.metadata, member.has
        assert metadata is not None  # noqa: S101 - for the type checker
        regex = metadata.subscribed_topic_regex
        matching = () if regex is None else self._matches.get(regex, ())
        assignment: Partitions = frozenset()
        if has is not None and has.member_epoch != _AWAY:
            assignment = self._flat((*has.assigned_partitions, *has.partitions_pending_revocation))
        member.made = SnapshotMember(
            member_id=member_id,
            instance_id=metadata.instance_id,
            client_id=metadata.client_id,
            host=metadata.client_host,
            rack=metadata.rack_id or None,
            topics=frozenset((*metadata.subscribed_topic_names, *matching)),
            claims={},
            assignment=assignment,
            session_timeout_ms=_session_timeout_ms(metadata),
            rebalance_timeout_ms=metadata.rebalance_timeout_ms,
        )
        return member.made

    def _flat(self, given: Iterable[TopicPartitions]) -> Partitions:
        return frozenset(
            (self._names.get(text, text), partition)
            for one in given
            for text in (uuid_text(one.topic_id),)
            for partition in one.partitions
        )


def _session_timeout_ms(metadata: ConsumerGroupMemberMetadataValue) -> int:
    """That of a member that uses the classic protocol; of others it is not told: -1."""
    classic = metadata.classic_member_metadata
    return -1 if classic is None else classic.session_timeout_ms
