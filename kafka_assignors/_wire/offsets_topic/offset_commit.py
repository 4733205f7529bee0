"""What a group has committed of a partition (`OffsetCommitKey`, `OffsetCommitValue`)."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kafka_assignors._wire.offsets_topic.wire import RecordReader, read_message

_VERSIONS: Final = range(5)
_FLEXIBLE_SINCE: Final = 4
_EXPIRE_TIMESTAMP_IN: Final = 1
_LEADER_EPOCH_SINCE: Final = 3
_TOPIC_ID_TAG: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitValue:
    """A committed offset.

    Attributes:
        version: The version that it was written in, 0 to 4.
        offset: The offset to continue at.
        leader_epoch: That of the last record consumed; -1 if it is unknown, and below v3.
        metadata: What the member wrote beside it.
        commit_timestamp: When, in ms since the epoch.
        expire_timestamp: When it is forgotten, in v1; else -1: then the group's state and
            `offsets.retention.minutes` decide.
        topic_id: The topic's id where the broker wrote it (v4).
    """

    version: int
    offset: int
    leader_epoch: int = -1
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = -1
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommit:
    """Record types 0 (`LegacyOffsetCommit`, of brokers before 0.9) and 1.

    Attributes:
        group_id: The group.
        topic: The topic's name.
        partition: The partition's id.
        value: What was committed; None for a tombstone: the offset is forgotten.
    """

    group_id: str
    topic: str
    partition: int
    value: OffsetCommitValue | None


def decode_offset_commit(data: bytes) -> OffsetCommitValue:
    """Read an `OffsetCommitValue`, v0 to v4.

    Raises:
        RecordError: The bytes are something else.
    """
    return read_message(data, "OffsetCommitValue", _read, versions=_VERSIONS, flexible_since=_FLEXIBLE_SINCE)


def _read(reader: RecordReader, version: int) -> OffsetCommitValue:
    offset = reader.int64("the offset")
    leader_epoch = reader.int32("the leader epoch") if version >= _LEADER_EPOCH_SINCE else -1
    metadata = reader.text("the metadata")
    commit_timestamp = reader.int64("the commit timestamp")
    expire_timestamp = reader.int64("the expire timestamp") if version == _EXPIRE_TIMESTAMP_IN else -1
    topic_id = reader.tagged({_TOPIC_ID_TAG: lambda: reader.uuid("the topic id")}).get(_TOPIC_ID_TAG)
    return OffsetCommitValue(
        version=version,
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=commit_timestamp,
        expire_timestamp=expire_timestamp,
        topic_id=topic_id,
    )
