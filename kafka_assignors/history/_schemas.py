"""What is in the archive, in the tables made of it, and in what is worked out of them: one Arrow schema each.

Times are UTC to the microsecond. A record is known by its `partition` and `offset` in `__consumer_offsets`.
If rows of several tables belong to one record, both stand in each of them.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

TIME: Final = pa.timestamp("us", tz="UTC")
PARTITIONS: Final = pa.list_(pa.field("element", pa.int32(), nullable=False))


def _schema(*fields: tuple[str, pa.DataType, bool, str]) -> pa.Schema:
    return pa.schema(
        [
            pa.field(name, kind, nullable=nullable, metadata={"comment": comment})
            for name, kind, nullable, comment in fields
        ]
    )


_OF_RECORD: Final = (
    ("group", pa.string(), False, "the group"),
    ("partition", pa.int32(), False, "the partition of __consumer_offsets that the record is in"),
    ("offset", pa.int64(), False, "its offset there"),
    ("time", TIME, False, "when the broker wrote it"),
)
_LEADER_EPOCH: Final = (
    "leader_epoch",
    pa.int32(),
    True,
    "the leader epoch of its partition: it rises when the coordinator moves; null if the dump has none",
)

_OF_GENERATION: Final = (
    *_OF_RECORD,
    (
        "generation",
        pa.int32(),
        True,
        "the generation; of a KIP-848 member its epoch; null if it has none",
    ),
)

ARCHIVE: Final = _schema(
    ("type", pa.int16(), False, "the number that the key begins with; -1 if there is none"),
    ("count", pa.int32(), False, "1; of records that are counted and not kept, how many there were"),
    ("key", pa.binary(), True, "the record's key; null if it is not kept"),
    ("value", pa.binary(), True, "its value; null for a tombstone, and if it is not kept"),
    ("partition", pa.int32(), False, "its partition in __consumer_offsets"),
    ("offset", pa.int64(), False, "its offset; of counted records the last one's"),
    ("timestamp", TIME, False, "when the broker wrote it; of counted records the last one's"),
    ("leader_epoch", pa.int32(), True, "the partition's leader epoch: it rises when the coordinator moves"),
)
"""Records as they were in `__consumer_offsets`. Kept are the types of `KEPT_TYPES`, and records without a
proper key; of others (mostly committed offsets) only how many there were.
"""

ARCHIVED: Final = pa.schema(
    [
        *ARCHIVE,
        *_schema(
            ("source", pa.string(), False, "topic, or dump-... of a dump"),
            ("day", pa.date32(), False, "the day of its timestamp, in UTC"),
        ),
    ]
)
"""The table of an archive: its records, and the columns that it is partitioned by."""

KIP848_TYPES: Final = (3, 4, 5, 6, 7, 8, 16)
"""The records of KIP-848's consumer groups, each of which holds only a part of its group."""

KEPT_TYPES: Final = (2, *KIP848_TYPES)
"""GroupMetadata, each record of which is a whole group, and those of KIP-848."""

TOPICS: Final = _schema(
    ("topic", pa.string(), False, "a topic's name"),
    ("topic_id", pa.string(), False, "its id, as Java prints a Uuid (base64 without padding)"),
    ("partitions", pa.int32(), False, "how many partitions it had; 0 if it was gone"),
    ("seen", TIME, False, "when the cluster said so"),
)
"""The cluster's topics at each capture. KIP-848's records name topics by id alone, and no record of a classic
group says how many partitions a topic has.
"""

RECORDS: Final = _schema(
    *_OF_GENERATION,
    _LEADER_EPOCH,
    ("type", pa.int16(), False, "the number of the record's type"),
    ("name", pa.string(), False, "Kafka's name of the type"),
    ("member_id", pa.string(), True, "the member that the record is about; null if it is about the group"),
    ("tombstone", pa.bool_(), False, "whether it says that the group, or the member, is gone"),
    ("size", pa.int32(), False, "bytes of its key and value"),
)
"""One row for each record that was decoded; with `REJECTED` as many as were read."""

GENERATIONS: Final = _schema(
    *_OF_GENERATION,
    _LEADER_EPOCH,
    ("protocol_type", pa.string(), False, "consumer; connect of Kafka Connect's workers; kip848"),
    (
        "protocol",
        pa.string(),
        True,
        "the strategy that the group assigns by; null without members, and of KIP-848",
    ),
    ("leader", pa.string(), True, "the leader's member id; null without members, and of KIP-848"),
    (
        "members",
        pa.int32(),
        True,
        "how many members it had; null of KIP-848, whose members have records of their own",
    ),
    ("records", pa.int32(), False, "how many records there are of this generation; the row is of the last"),
    ("first_time", TIME, False, "when the first of them was written"),
    (
        "state_time",
        TIME,
        True,
        "when the group's state last changed, by its coordinator's clock; null below v2",
    ),
    (
        "size",
        pa.int32(),
        False,
        "bytes of the record: above the topic's max.message.bytes the group cannot settle",
    ),
    ("version", pa.int16(), False, "the version of the record's value"),
)
"""One row for each group and generation. Several records of one generation are, most often, a static member
that came back: its member id is new, and the generation is not."""

MEMBERS: Final = _schema(
    *_OF_GENERATION,
    ("member_id", pa.string(), False, "the id that the coordinator gave it"),
    ("instance_id", pa.string(), True, "its group.instance.id; null of a dynamic member"),
    ("client_id", pa.string(), False, "its client.id"),
    ("host", pa.string(), False, "where it connected from, such as /10.0.0.1"),
    ("rack", pa.string(), True, "its client.rack; null if it names none"),
    (
        "topics",
        pa.list_(pa.field("element", pa.string(), nullable=False)),
        True,
        "its topics; null if unreadable",
    ),
    (
        "topic_regex",
        pa.string(),
        True,
        "of KIP-848, the expression (RE2) that it subscribes by; null if by none, and of others",
    ),
    ("session_timeout_ms", pa.int32(), True, "how long it may be silent; null of KIP-848"),
    (
        "rebalance_timeout_ms",
        pa.int32(),
        True,
        "how long others wait for it: max.poll.interval.ms; null below v1",
    ),
    (
        "subscription_version",
        pa.int16(),
        True,
        "the version of its subscription; null if unreadable, and of KIP-848",
    ),
    ("user_data", pa.binary(), True, "what its assignor added"),
    ("problem", pa.string(), True, "why its subscription or assignment cannot be read; null if both can"),
)
"""One row for each member of each record of a group, and for each KIP-848 member's own record."""

ASSIGNMENTS: Final = _schema(
    *_OF_GENERATION,
    ("member_id", pa.string(), False, "the member"),
    ("stage", pa.string(), False, "assigned (classic); target, current, revoking (KIP-848)"),
    ("topic", pa.string(), True, "the topic; null of a KIP-848 topic id whose name is not known"),
    ("topic_id", pa.string(), True, "of KIP-848 the topic's id"),
    ("partitions", PARTITIONS, False, "partition ids, in the record's order"),
)
"""What each member was given: one row for each topic."""

CLAIMS: Final = _schema(
    *_OF_GENERATION,
    ("member_id", pa.string(), False, "the member"),
    (
        "source",
        pa.string(),
        False,
        "owned (the subscription's own field), sticky (user data in Java's layout, or kafka-python's)",
    ),
    ("claimed_generation", pa.int32(), False, "the generation that it had them in; -1 if it does not say"),
    ("topic", pa.string(), True, "the topic; null if it claims nothing, but names a generation"),
    ("partitions", PARTITIONS, False, "partition ids, in the record's order"),
)
"""What each member said that it owned when it joined: one row for each topic and source."""

MOVES: Final = _schema(
    *_OF_GENERATION,
    ("topic", pa.string(), False, "the topic"),
    ("moved_partition", pa.int32(), False, "the partition that went elsewhere"),
    ("source", pa.string(), True, "who had it in the record before; null if nobody had"),
    ("target", pa.string(), True, "who has it now; null if nobody does"),
    ("before", pa.int32(), False, "the generation of the record before"),
)
"""Partitions whose owner differs from that in the group's record before. Owners are instance ids of static
members and member ids of others; a static member that came back is the same owner. What one of several owners
keeps has not moved."""

REJECTED: Final = _schema(
    ("partition", pa.int32(), False, "its partition in __consumer_offsets"),
    ("offset", pa.int64(), False, "its offset"),
    ("time", TIME, False, "when the broker wrote it"),
    ("reason", pa.string(), False, "why it cannot be read"),
    ("key", pa.binary(), True, "its key, as it was"),
    ("value", pa.binary(), True, "its value, as it was"),
)
"""Records that are not what their key says, to the last byte."""

TABLES: Final = {
    "records": RECORDS,
    "generations": GENERATIONS,
    "members": MEMBERS,
    "assignments": ASSIGNMENTS,
    "claims": CLAIMS,
    "moves": MOVES,
    "rejected": REJECTED,
}
"""The tables made of an archive, by name."""

_OWNER_MOVE: Final = pa.struct(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("source", pa.string()),
        pa.field("target", pa.string()),
    ]
)

REASON: Final = pa.struct(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("member", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
    ]
)

REBALANCES: Final = _schema(
    ("group", pa.string(), False, "the group"),
    ("first_generation", pa.int32(), False, "the generation that it began with"),
    (
        "generation",
        pa.int32(),
        False,
        "the generation that it ended with; another than the first after a hand-over",
    ),
    (
        "began",
        TIME,
        False,
        "when the group began to rebalance, as far as its records show: see docs/history.md",
    ),
    ("ended", TIME, False, "when the last generation's assignments were written"),
    ("seconds", pa.float64(), False, "from one to the other: time to stable"),
    ("strategy", pa.string(), True, "what it was assigned by; null if nobody was left"),
    ("reasons", pa.list_(pa.field("element", REASON, nullable=False)), False, "why; see reasons.Kind"),
    ("members", pa.int32(), False, "how many members there were at its end"),
    ("joined", pa.int32(), False, "how many of them were new"),
    ("gone", pa.int32(), False, "how many were there before and not any more"),
    ("returned", pa.int32(), False, "how many static members came back"),
    ("partitions", pa.int32(), False, "how many partitions the subscriptions cover"),
    ("moved", pa.int32(), False, "how many of them changed their owner, from one member to another"),
    ("least_moved", pa.int32(), True, "how many had to for the best balance; null if that is unknown"),
    ("imbalance", pa.int32(), False, "the largest load less the smallest"),
    ("best_imbalance", pa.int32(), True, "the same of the best balance; null if that is unknown"),
    (
        "unowned_seconds",
        pa.float64(),
        False,
        "partition-seconds without an owner, by the rule of docs/history.md",
    ),
    ("moves", pa.list_(pa.field("element", _OWNER_MOVE, nullable=False)), False, "what changed its owner"),
)
"""One row for each rebalance of a group: the generations of one cooperative hand-over are one."""

GROUPS: Final = _schema(
    ("group", pa.string(), False, "the group"),
    ("since", TIME, False, "its first record"),
    ("until", TIME, False, "its last"),
    ("rebalances", pa.int32(), False, "how many there were"),
    ("per_day", pa.float64(), False, "how many a day"),
    ("moved", pa.int64(), False, "how many partitions changed their owner in all of them"),
    ("least_moved", pa.int64(), False, "how many had to, where that is known"),
    ("needless", pa.int64(), False, "how many moved beyond the least, where that is known"),
    ("unowned_seconds", pa.float64(), False, "partition-seconds without an owner"),
    ("longest_seconds", pa.float64(), False, "the longest rebalance"),
    ("members", pa.int32(), False, "how many members it had at the end"),
    ("seen_members", pa.int32(), False, "how many different members it ever had, static ones once"),
    (
        "flapping",
        pa.list_(pa.field("element", pa.string(), nullable=False)),
        False,
        "members by client id or instance id that came and went at least three times within an hour",
    ),
    ("reasons", pa.map_(pa.string(), pa.int32()), False, "how often each reason was seen"),
)
"""One row for each group: how restless it was."""

WHAT_IF: Final = _schema(
    ("group", pa.string(), False, "the group"),
    ("assignor", pa.string(), False, "the assignor that it was replayed with; actual for what happened"),
    ("scenario", pa.string(), False, "as it was; static members"),
    ("rebalances", pa.int32(), False, "how many rebalances there were"),
    ("moved", pa.int64(), False, "how many partitions changed their owner"),
    ("imbalance", pa.float64(), False, "the mean of imbalance over the rebalances that left somebody there"),
    ("worst_imbalance", pa.int32(), False, "the largest"),
    (
        "unowned_seconds",
        pa.float64(),
        False,
        "partition-seconds without an owner, by the rule of docs/history.md",
    ),
    (
        "failed",
        pa.int32(),
        False,
        "how often the assignor raised or left partitions out, at the beginning too",
    ),
)
"""One row for each group, assignor and scenario."""
