"""Records of an archive's batch as snapshots, all at once: what every command but the tables reads.

The compiled decoder (`_tables/_decode.c`) turns the records of consumers' classic groups into columns; here
these become snapshots. What it leaves, and everything where it was not compiled, `decode_record` reads, one
record at a time. Each record of a batch is decoded once, by the one or the other.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_assignors._groups.snapshots import ArchivedRecord, Partitions, Snapshot, SnapshotMember
from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors.history._tables.garbage import no_garbage_collection
from kafka_assignors.history._tables.native import compiled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROWS: Final = 256
"""How many records are decoded at once: of 20 members each, about 2 MB of Python's objects."""

COLUMNS: Final = ("key", "value", "partition", "offset", "time_us", "leader_epoch")
"""The columns that are read of a batch."""

_GENERATION_SINCE: Final = 2
"""The version of subscriptions from which on they tell a generation."""

_GENERATION_ALONE: Final = 4
"""The size of user data that is a generation."""

_Place = tuple[int, int, int, int | None]
"""Partition, offset, time and leader epoch."""


def read_batches(batches: Iterable[Any]) -> Iterator[tuple[Any, list[ArchivedRecord]]]:
    """Parts of batches, and what is in them.

    Args:
        batches: With `COLUMNS`, in any order; `time_us` is in microseconds since 1970.
    """
    for batch in batches:
        for begin in range(0, batch.num_rows, ROWS):
            part = batch.slice(begin, ROWS)
            yield part, read_batch(part)


def read_batch(batch: Any) -> list[ArchivedRecord]:
    """What is in a batch; see `read_batches`."""
    key, value = (batch.column(name).cast(pa.binary()) for name in COLUMNS[:2])
    places: list[_Place] = list(zip(*(batch.column(name).to_pylist() for name in COLUMNS[2:]), strict=True))
    with no_garbage_collection():
        decoded = {} if compiled() is None else _decode(key, value, places)
    return [
        ArchivedRecord(b"", None, *place, snapshot)
        if (snapshot := decoded.get(number)) is not None
        else ArchivedRecord(key[number].as_py(), value[number].as_py(), *place)
        for number, place in enumerate(places)
    ]


def _decode(key: Any, value: Any, places: Sequence[_Place]) -> dict[int, Snapshot]:
    """The snapshots of those records that the compiled decoder takes, by number in the batch."""
    raw, dictionaries = compiled().decode(
        len(key), (key.offset, *key.buffers()), (value.offset, *value.buffers())
    )
    groups, protocols, member_ids, instances, clients, hosts, racks, topics = map(_texts, dictionaries)
    (record, generation, _version, group, protocol, leader, _count, state_time, _bounds, _owners) = raw[:10]
    (of_record, member, instance, client, host, rack, session, rebalance) = raw[10:18]
    version, topics_bounds, topics_of, _data_bounds, _data, data_size = raw[18:24]
    assigned, claimed, source, claimed_generation = raw[24:28], raw[28:32], raw[32], raw[33]

    members = _numbers(member)
    strategies = np.array(protocols, dtype=object)[_array(protocol)]
    bounds = np.searchsorted(_array(of_record), np.arange(len(strategies) + 1))
    said = _Said(
        _Lists(claimed, topics),
        strategy=np.repeat(strategies, np.diff(bounds)),
        version=_array(version),
        data_size=_array(data_size),
        source=_array(source),
        generation=_array(claimed_generation),
    )
    rows = zip(
        [member_ids[one] for one in members],
        [instances[one] for one in _numbers(instance)],
        [clients[one] for one in _numbers(client)],
        [hosts[one] for one in _numbers(host)],
        [racks[one] for one in _numbers(rack)],
        _topic_sets(topics_bounds, topics_of, topics),
        said.claims(),
        said.generations.tolist(),
        _assignments(assigned, len(members), topics),
        _numbers(session),
        _numbers(rebalance),
        strict=True,
    )
    each = [SnapshotMember._make(row) for row in rows]
    numbers = _numbers(record)
    odd = np.bincount(_array(of_record), weights=said.odd, minlength=len(numbers)).tolist()
    bounds = bounds.tolist()
    state_times = np.frombuffer(state_time, dtype=np.int64).tolist()
    found = {}
    for place, (number, its_generation, its_group, its_protocol, its_leader, state_ms) in enumerate(
        zip(
            numbers,
            _numbers(generation),
            _numbers(group),
            _numbers(protocol),
            _numbers(leader),
            state_times,
            strict=True,
        )
    ):
        if odd[place]:
            continue
        partition, offset, time_us, leader_epoch = places[number]
        found[number] = Snapshot(
            group=groups[its_group],
            generation=its_generation,
            time_us=time_us,
            state_time_us=state_ms * 1000 if state_ms >= 0 else None,
            partition=partition,
            offset=offset,
            leader_epoch=leader_epoch,
            protocol_type="consumer",
            strategy=protocols[its_protocol],
            leader=member_ids[its_leader],
            members=tuple(sorted(each[bounds[place] : bounds[place + 1]], key=_order)),
        )
    return found


def _order(member: SnapshotMember) -> tuple[str, str]:
    return member.instance_id or member.member_id, member.member_id


def _array(raw: bytes) -> Any:
    return np.frombuffer(raw, dtype=np.int32)


def _numbers(raw: bytes) -> list[int]:
    return _array(raw).tolist()  # type: ignore[no-any-return]


def _texts(dictionary: tuple[bytes, bytes]) -> list[Any]:
    """The strings of a dictionary, and None behind them: the number -1 stands for null."""
    bounds, texts = dictionary
    array = pa.Array.from_buffers(
        pa.string(), len(bounds) // 4 - 1, [None, pa.py_buffer(bounds), pa.py_buffer(texts)]
    )
    return [*array.to_pylist(), None]


# What a member had in one record it has, most often, in the next: the same bytes of the columns are the same
# object, which costs a fifth of making it anew, and makes comparing two snapshots a matter of `is`.


def _topic_sets(bounds: bytes, numbers: bytes, topics: Sequence[str]) -> list[frozenset[str]]:
    """What each member subscribes to."""
    made: dict[bytes, frozenset[str]] = {}
    found = []
    ends = (4 * _array(bounds)).tolist()
    for begin, end in pairwise(ends):
        said = numbers[begin:end]
        known = made.get(said)
        if known is None:
            known = made[said] = frozenset(topics[number] for number in _numbers(said))
        found.append(known)
    return found


_Key = tuple[bytes, bytes, bytes]
"""Partition lists as they are in the columns: topics, partitions, how many of each topic."""


class _Lists:
    """Partition lists of members, by columns: whose, topic, where its partitions end, partitions.

    Args:
        columns: These.
        topics: The names of the topics; -1 is none.

    Attributes:
        whose: The member of each row.
        has_topic: Whether each row has a topic.
    """

    def __init__(self, columns: Sequence[bytes], topics: Sequence[str | None]) -> None:
        self.whose, self._topic, bounds, self._ids = columns
        self._topics = topics
        self.has_topic = _array(self._topic) >= 0
        self._bounds = _array(bounds)
        self._sizes = np.diff(self._bounds).tobytes()

    def rows_of(self, members: int) -> Any:
        """(members + 1,) where the rows of each member begin, and those of the last end."""
        return np.searchsorted(_array(self.whose), np.arange(members + 1))

    def keys(self, begins: Any, ends: Any) -> list[_Key]:
        """What is in stretches of rows, to compare.

        Args:
            begins: (K,) the first row of each.
            ends: (K,) the row after its last.
        """
        topic, ids, sizes = self._topic, self._ids, self._sizes
        rows = (4 * begins).tolist(), (4 * ends).tolist()
        places = (4 * self._bounds[begins]).tolist(), (4 * self._bounds[ends]).tolist()
        return [
            (topic[begin:end], ids[first:last], sizes[begin:end])
            for begin, end, first, last in zip(*rows, *places, strict=True)
        ]

    def read(self, key: _Key) -> list[tuple[str, tuple[int, ...]]]:
        """The same as topics and partition ids."""
        numbers, ids, sizes = map(_numbers, key)
        found, begin = [], 0
        for number, size in zip(numbers, sizes, strict=True):
            topic = self._topics[number]
            if topic is not None:
                found.append((topic, tuple(ids[begin : begin + size])))
            begin += size
        return found


def _assignments(columns: Sequence[bytes], members: int, topics: Sequence[str]) -> list[Partitions]:
    """What each member was given."""
    lists = _Lists(columns, topics)
    rows = lists.rows_of(members)
    keys = lists.keys(rows[:-1], rows[1:])
    made = {
        key: frozenset((topic, one) for topic, ids in lists.read(key) for one in ids) for key in set(keys)
    }
    return [made[key] for key in keys]


class _Said:
    """What members said that they had, by the rule of `kafka_assignors._wire.claims_of`, from columns.

    In a column of claims the rows of a member's subscription come before those of its user data. One without
    a topic tells a generation only.

    Args:
        lists: The rows.
        strategy: (M,) the strategy of each member's group.
        version: (M,) the version of its subscription.
        data_size: (M,) the size of its user data; -1 for none.
        source: (K,) of each row 0 if it is of a subscription, 1 if of user data.
        generation: (K,) the generation that each row tells.

    Attributes:
        generations: (M,) the generation of each member's claims.
        odd: (M,) whether the columns do not tell what the member claims: its user data names no partitions,
            and a generation that is not its subscription's.
    """

    def __init__(
        self, lists: _Lists, *, strategy: Any, version: Any, data_size: Any, source: Any, generation: Any
    ) -> None:
        rows = lists.rows_of(len(strategy))
        owned_before = np.append(0, np.cumsum(source == 0))
        middles = rows[:-1] + owned_before[rows[1:]] - owned_before[rows[:-1]]
        topics_before = np.append(0, np.cumsum(lists.has_topic))

        def told(begins: Any, ends: Any) -> Any:
            """The generation that stretches of rows tell: it is the same in all."""
            padded = np.append(generation, NO_GENERATION)
            return np.where(ends > begins, padded[begins], NO_GENERATION)

        owned = told(rows[:-1], middles)
        remembered = told(middles, rows[1:])
        owns = topics_before[middles] > topics_before[rows[:-1]]
        remembers = topics_before[rows[1:]] > topics_before[middles]
        sticky, cooperative = strategy == "sticky", strategy == "cooperative-sticky"
        has_data = data_size > 0
        by_data = (sticky & has_data) | (cooperative & ~owns & remembers)
        before_generations = cooperative & has_data & (version < _GENERATION_SINCE)
        self.generations = np.where(by_data | before_generations, remembered, owned)
        self.odd = (
            cooperative
            & ~(owns | remembers)
            & has_data
            & (data_size != _GENERATION_ALONE)
            & (remembered != owned)
        )
        self._lists = lists
        self._ends = np.where(by_data, middles, rows[:-1]), np.where(by_data, rows[1:], middles)

    def claims(self) -> list[dict[str, tuple[int, ...]]]:
        """What each member claims."""
        keys = self._lists.keys(*self._ends)
        made = {key: dict(self._lists.read(key)) for key in set(keys)}
        return [made[key] for key in keys]
