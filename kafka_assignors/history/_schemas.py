"""What is in the archive, in the tables made of it, and in what is worked out of them: one Arrow schema each.

docs/history_tables.md says what has a row in each. Times are UTC to the microsecond. A record is known by its
`partition` and `offset` in `__consumer_offsets`.
"""

import re
from typing import Final

import pyarrow as pa

TIME: Final = pa.timestamp("us", tz="UTC")


def _some(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


_OWNER_MOVE: Final = pa.struct(
    [
        _some("topic", pa.string()),
        _some("partition", pa.int32()),
        ("source", pa.string()),
        ("target", pa.string()),
    ]
)
_REASON: Final = pa.struct([_some(name, pa.string()) for name in ("kind", "member", "text")])
_NESTED: Final = {
    "time": TIME,
    "counts": pa.map_(pa.string(), pa.int32()),
    "ids": pa.list_(_some("element", pa.int32())),
    "strings": pa.list_(_some("element", pa.string())),
    "moves": pa.list_(_some("element", _OWNER_MOVE)),
    "reasons": pa.list_(_some("element", _REASON)),
}


def _schema(table: str) -> pa.Schema:
    """Columns, one a line: name, type (with ? if it may be null), and what it is, which may go on below."""
    fields = []
    for line in filter(None, re.sub(r"\n +", " ", table).split("\n")):
        name, kind, comment = line.split(maxsplit=2)
        plain = kind.rstrip("?")
        type_ = _NESTED[plain] if plain in _NESTED else pa.type_for_alias(plain)
        fields.append(pa.field(name, type_, kind != plain, {"comment": comment}))
    return pa.schema(fields)


_OF_GENERATION: Final = """\
group       string  the group
partition   int32   the partition of __consumer_offsets that the record is in
offset      int64   its offset there
time        time    when the broker wrote it
generation  int32?  the generation; of a KIP-848 member its epoch; null if it has none
"""
_LEADER_EPOCH: Final = """\
leader_epoch  int32?  the leader epoch of its partition: it rises when the coordinator moves; null if the dump
                      has none
"""

ARCHIVE: Final = _schema("""\
type          int16    the number that the key begins with; -1 if there is none
count         int32    1; of records that are counted and not kept, how many there were
key           binary?  the record's key; null if it is not kept
value         binary?  its value; null for a tombstone, and if it is not kept
partition     int32    its partition in __consumer_offsets
offset        int64    its offset; of counted records the last one's
timestamp     time     when the broker wrote it; of counted records the last one's
leader_epoch  int32?   the partition's leader epoch: it rises when the coordinator moves
""")
"""Records of the types of `KEPT_TYPES`, or without a proper key, and some commits if a capture is asked for
them; of others only how many there were.
"""

_ADDED: Final = _schema("""\
source  string  topic, or dump-... of a dump
day     date32  the day of its timestamp, in UTC
""")
ARCHIVED: Final = pa.schema([*ARCHIVE, *_ADDED])
"""The table of an archive: its records, and the columns that it is partitioned by."""

KEPT_TYPES: Final = (2, 3, 4, 5, 6, 7, 8, 16)
"""GroupMetadata, each record of which is a whole group, and those of KIP-848, each a part of one."""

COMMIT_KEY: Final = b"\0\1"
"""What the key of a committed offset begins with: its type, which is kept if a capture is asked for it."""

TOPICS: Final = _schema("""\
topic       string  a topic's name
topic_id    string  its id, as Java prints a Uuid (base64 without padding)
partitions  int32   how many partitions it had; 0 if it was gone
seen        time    when the cluster said so
""")
"""The cluster's topics at each capture: records have ids alone (KIP-848), or no numbers of partitions."""

TABLES: Final = {
    "records": _schema(f"""{_OF_GENERATION}{_LEADER_EPOCH}\
type       int16    the number of the record's type
name       string   Kafka's name of the type
member_id  string?  the member that the record is about; null if it is about the group
tombstone  bool     whether it says that the group, or the member, is gone
size       int32    bytes of its key and value
"""),
    "generations": _schema(f"""{_OF_GENERATION}{_LEADER_EPOCH}\
protocol_type  string   consumer; connect of Kafka Connect's workers; kip848
protocol       string?  the strategy that the group assigns by; null without members, and of KIP-848
leader         string?  the leader's member id; null without members, and of KIP-848
members        int32?   how many members it had; null of KIP-848, whose members have records of their own
records        int32    how many records there are of this generation; the row is of the last
first_time     time     when the first of them was written
state_time     time?    when the group's state last changed, by its coordinator's clock; null below v2
size           int32    bytes of the record: above the topic's max.message.bytes the group cannot settle
version        int16    the version of the record's value
"""),
    "members": _schema(f"""{_OF_GENERATION}\
member_id             string    the id that the coordinator gave it
instance_id           string?   its group.instance.id; null of a dynamic member
client_id             string    its client.id
host                  string    where it connected from, such as /10.0.0.1
rack                  string?   its client.rack; null if it names none
topics                strings?  its topics; null if unreadable
topic_regex           string?   of KIP-848, the expression (RE2) that it subscribes by; null if by none, and
                                of others
session_timeout_ms    int32?    how long it may be silent; null of KIP-848
rebalance_timeout_ms  int32?    how long others wait for it: max.poll.interval.ms; null below v1
subscription_version  int16?    the version of its subscription; null if unreadable, and of KIP-848
user_data             binary?   what its assignor added
problem               string?   why its subscription or assignment cannot be read; null if both can
"""),
    "assignments": _schema(f"""{_OF_GENERATION}\
member_id   string   the member
stage       string   assigned (classic); target, current, revoking (KIP-848)
topic       string?  the topic; null of a KIP-848 topic id whose name is not known
topic_id    string?  of KIP-848 the topic's id
partitions  ids      partition ids, in the record's order
"""),
    "claims": _schema(f"""{_OF_GENERATION}\
member_id           string   the member
source              string   owned (the subscription's own field), sticky (user data in Java's layout, or
                             kafka-python's)
claimed_generation  int32    the generation that it had them in; -1 if it does not say
topic               string?  the topic; null if it claims nothing, but names a generation
partitions          ids      partition ids, in the record's order
"""),
    "moves": _schema(f"""{_OF_GENERATION}\
topic            string   the topic
moved_partition  int32    the partition that went elsewhere
source           string?  who had it before the rebalance; null if nobody had
target           string?  who has it after it; null if nobody does
before           int32    the generation before the rebalance
"""),
    "rejected": _schema("""\
partition  int32    its partition in __consumer_offsets
offset     int64    its offset
time       time     when the broker wrote it
reason     string   why it cannot be read
key        binary?  its key, as it was
value      binary?  its value, as it was
"""),
}
"""The tables made of an archive, by name."""

REBALANCES: Final = _schema("""\
group             string   the group
first_generation  int32    the generation that it began with
generation        int32    the generation that it ended with; another than the first after a hand-over
began             time     when the group began to rebalance, as far as its records show: see docs/history.md
ended             time     when the last generation's assignments were written
seconds           float64  from one to the other: time to stable
strategy          string?  what it was assigned by; null if nobody was left
reasons           reasons  why; see reasons.Kind
members           int32    how many members there were at its end
joined            int32    how many of them were new
gone              int32    how many were there before and not any more
returned          int32    how many static members came back
partitions        int32    how many partitions the subscriptions cover
moved             int32    how many of them changed their owner, from one member to another
least_moved       int32?   the fewest moves that reach the best balance; null if that is unknown
imbalance         int32    the largest load less the smallest
best_imbalance    int32?   the same of the best balance; null if that is unknown
unowned_seconds   float64  partition-seconds that were certainly without an owner, mostly far too few
moves             moves    what changed its owner
""")

GROUPS: Final = _schema("""\
group            string   the group
since            time     its first record
until            time     its last
rebalances       int32    how many there were
per_day          float64? how many a day; null of less than a day
moved            int64    how many partitions changed their owner in all of them
least_moved      int64    the fewest moves that reach the best balance, where that is known
needless         int64    how many moved beyond the least, where that is known
unowned_seconds  float64  partition-seconds that were certainly without an owner, mostly far too few
longest_seconds  float64  the longest rebalance
members          int32    how many members it had at the end
seen_members     int32    how many different members it ever had, static ones once
returned         int32    how often static members came back to their generation, which is no rebalance
flapping         strings  members by client id or instance id that came and went at least three times within
                          an hour
reasons          counts   how many rebalances had each reason; member restarted also if one joined within 10
                          minutes after one of its name was gone
""")
