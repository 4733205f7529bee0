"""The records of consumers' classic groups as most of them are, many at a time: what is in their bytes.

One that is anything else is odd: in another version than 0 to 3, with bytes left over, with more members than
hardly another has, or with something in it that is not as it should be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors.history._tables.cursors import Cursor, Data, Each, Span, only, picked

if TYPE_CHECKING:
    from kafka_assignors._model.arrays import BoolArray, IntArray

_CLASSIC_TYPE: Final = 2
_LAST_VERSION: Final = 3
_REBALANCE_TIMEOUT_SINCE: Final = 1
_STATE_TIME_SINCE: Final = 2
_INSTANCE_ID_SINCE: Final = 3

_OWNED_SINCE: Final = 1
_GENERATION_SINCE: Final = 2
_RACK_SINCE: Final = 3

# Bytes that each of them takes, or more.
_LEAST_MEMBER: Final = 18
_LEAST_NAME: Final = 2
_LEAST_TOPIC: Final = 6

_INT32: Final = 4
_KAFKA_PYTHON: Final = 1
"""The version before a prior assignment of kafka-python's."""
_LIKE_JAVA: Final = _LEAST_TOPIC << 16
"""In Java's layouts a number of topics that begins with the same bytes takes so many or more."""


class Records(NamedTuple):
    """The fields of each record, as they follow each other; `members` is how many there are."""

    group: Span
    version: IntArray
    generation: IntArray
    protocol: Span
    leader: Span
    state_time: IntArray
    members: IntArray


class Members(NamedTuple):
    """The same of members."""

    id: Span
    instance: Span
    client: Span
    host: Span
    rebalance_timeout: IntArray
    session_timeout: IntArray
    subscription: Span
    assignment: Span


class Topics(NamedTuple):
    """Topics of partition lists, and the bytes of their partitions."""

    name: Span
    partitions: Span


class Subscriptions(NamedTuple):
    """The fields of each member's subscription.

    Those that subscribe to what the first member of their group does have no topics here, and in `same_as`
    how many members before them that one is.
    """

    version: IntArray
    topics: Each[Span]
    same_as: IntArray
    user_data: Span
    owned: Each[Topics]
    generation: IntArray
    rack: Span


class Assigned(NamedTuple):
    """What members were given: where their partition lists are, and what is in them."""

    lists: Span
    topics: Each[Topics]


class Sticky(NamedTuple):
    """What stands in user data."""

    topics: Each[Topics]
    generation: IntArray


class Said(NamedTuple):
    """Members, and what is in their bytes.

    Attributes:
        members: The members.
        subscriptions: Of each.
        assigned: Of those that were given something, or nothing in so many bytes.
        sticky: Of those that say in their user data what they had.
    """

    members: Members
    subscriptions: Subscriptions
    assigned: Each[Assigned]
    sticky: Each[Sticky]


class Groups(NamedTuple):
    """Records.

    Attributes:
        rows: (K,) their numbers in the batch.
        records: What is in them.
        members: What is in their members.
    """

    rows: IntArray
    records: Records
    members: Each[Said]


def read_groups(keys: Data, values: Data, rows: IntArray) -> Groups:
    """Read records.

    Args:
        keys: The keys of a batch.
        values: Their values.
        rows: The numbers of the records to be read.

    Returns:
        Those of them that are not odd.
    """
    cursor = Cursor(keys, picked(keys.whole, rows))
    group = _read_key(cursor)
    rows, group = picked((rows, group), cursor.fine)
    cursor = Cursor(values, picked(values.whole, rows))
    records = _read_record(cursor, group, values)
    each = cursor.each(records.members, lambda part, some: _read_member(part, records.version[some]))
    cursor.need(cursor.left == 0)
    rows, records, each = picked((rows, records, each), cursor.fine)

    record, members = each
    fine = np.ones(rows.size, dtype=np.bool_)
    cursor = Cursor(values, members.subscription)
    subscriptions = _read_subscription(cursor, values, np.searchsorted(record, record))
    fine[record[~cursor.fine]] = False
    is_cooperative = values.is_text(records.protocol, b"cooperative-sticky")
    is_sticky = is_cooperative | values.is_text(records.protocol, b"sticky")
    member = np.flatnonzero(is_sticky[record] & (subscriptions.user_data.size > 0) & cursor.fine)
    user_data = picked(subscriptions.user_data, member)
    first = Cursor(values, user_data).int32(when=user_data.size >= _INT32)
    cursor = Cursor(values, user_data)
    sticky = Each(member, _read_sticky(cursor, first, is_cooperative[record[member]]))
    fine[record[member[~cursor.fine]]] = False
    member = np.flatnonzero(members.assignment.size > 0)
    cursor = Cursor(values, picked(members.assignment, member))
    assigned = Each(member, _read_assignment(cursor))
    fine[record[member[~cursor.fine]]] = False
    said = Each(record, Said(members, subscriptions, assigned, sticky))
    return only(Groups(rows, records, said), fine)


def _read_key(cursor: Cursor) -> Span:
    cursor.need(cursor.int16() == _CLASSIC_TYPE)
    group = cursor.string()
    cursor.need((group.size >= 0) & (cursor.left == 0))
    return group


def _read_record(cursor: Cursor, group: Span, data: Data) -> Records:
    version = cursor.int16()
    cursor.need((version >= 0) & (version <= _LAST_VERSION))
    cursor.need(data.is_text(cursor.string(), b"consumer"))
    return Records(
        group,
        version,
        cursor.int32(),
        cursor.string(),
        cursor.string(),
        cursor.int64(when=version >= _STATE_TIME_SINCE),
        cursor.count(_LEAST_MEMBER),
    )


def _read_member(cursor: Cursor, version: IntArray) -> Members:
    member = Members(
        cursor.string(),
        cursor.string(when=version >= _INSTANCE_ID_SINCE),
        cursor.string(),
        cursor.string(),
        cursor.int32(when=version >= _REBALANCE_TIMEOUT_SINCE),
        cursor.int32(),
        cursor.blob(),
        cursor.blob(),
    )
    for never_null in (member.id, member.client, member.host, member.subscription, member.assignment):
        cursor.need(never_null.size >= 0)
    return member


def _read_name(cursor: Cursor, _rows: IntArray) -> Span:
    name = cursor.string()
    cursor.need(name.size >= 0)
    return name


def _read_topic(cursor: Cursor, rows: IntArray) -> Topics:
    name = _read_name(cursor, rows)
    size = cursor.count(_INT32) * _INT32
    return Topics(name, Span(cursor.skip(size), size))


def _read_partitions(cursor: Cursor, when: BoolArray | None = None) -> Each[Topics]:
    return cursor.each(cursor.count(_LEAST_TOPIC, when), _read_topic)


def _read_subscription(cursor: Cursor, data: Data, first: IntArray) -> Subscriptions:
    version = cursor.int16()
    cursor.need(version >= 0)
    return Subscriptions(
        version,
        *_read_names(cursor, data, first),
        cursor.blob(),
        _read_partitions(cursor, version >= _OWNED_SINCE),
        cursor.int32(when=version >= _GENERATION_SINCE, otherwise=NO_GENERATION),
        cursor.string(when=version >= _RACK_SINCE),
    )


def _read_names(cursor: Cursor, data: Data, first: IntArray) -> tuple[Each[Span], IntArray]:
    """Topics that members subscribe to; mostly all of a group to the same ones, which are read once then.

    Args:
        cursor: In subscriptions.
        data: What they lie in.
        first: (M,) the first member of each one's group.

    Returns:
        `topics` and `same_as` of `Subscriptions`.
    """
    start = cursor.at.copy()
    count = cursor.count(_LEAST_NAME)
    member = np.arange(start.size)
    names = cursor.each(np.where(first == member, count, 0), _read_name)
    size = (cursor.at - start)[first]
    fits = np.flatnonzero(cursor.fine & cursor.fine[first] & (start + size <= cursor.at + cursor.left))
    code = np.full(start.size, -1)
    code[fits] = data.slices(Span(start[fits], size[fits])).dictionary_encode().indices
    same_as = np.where((code >= 0) & (code == code[first]), member - first, 0)
    cursor.skip(np.where(same_as > 0, size - _INT32, 0))
    more = cursor.each(np.where((same_as > 0) | (first == member), 0, count), _read_name)
    return names.merged(more), same_as


def _read_assignment(cursor: Cursor) -> Assigned:
    cursor.need(cursor.int16() >= 0)
    start = cursor.at.copy()
    topics = _read_partitions(cursor)
    span = Span(start, cursor.at - start)
    cursor.blob()
    return Assigned(span, topics)


def _read_sticky(cursor: Cursor, first: IntArray, is_cooperative: BoolArray) -> Sticky:
    """What stands in user data in Java's layouts or kafka-python's.

    Args:
        cursor: In user data.
        first: The first four bytes of each.
        is_cooperative: Whether a generation can stand alone.
    """
    size = cursor.left
    is_alone = is_cooperative & ((size == _INT32) | (size == 2 * _INT32) & (first != 0))
    has_version = ~is_alone & (first >> 16 == _KAFKA_PYTHON) & (size < _LIKE_JAVA)
    cursor.skip(np.where(has_version, 2, 0))
    topics = _read_partitions(cursor, ~is_alone)
    left = cursor.left
    cursor.need((left == _INT32) | ~has_version & ((left == 0) | (left == 2 * _INT32)))
    return Sticky(topics, cursor.int32(when=left > 0, otherwise=NO_GENERATION))
