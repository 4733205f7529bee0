"""Records of an archive's batch as snapshots, all at once: what every command reads.

The compiled codec turns the records of consumers' classic groups into columns; here these become snapshots.
What it leaves, and everything where it was not compiled, `decode_record` reads, one record at a time. Each
record of a batch is decoded once, by the one or the other.
"""

from __future__ import annotations

from itertools import pairwise, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_assignors._common.garbage import no_garbage_collection
from kafka_assignors._groups.snapshots import ArchivedRecord, Partitions, Snapshot, make_member
from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._wire.reader import GENERATION_SINCE
from kafka_assignors.history._native import decode, is_compiled, numbers, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kafka_assignors._groups.snapshots import SnapshotMember
    from kafka_assignors.history._native import Columns

ROWS: Final = 256
"""How many records are decoded at once: of 20 members each, about 2 MB of Python's objects."""

COLUMNS: Final = ("key", "value", "partition", "offset", "time_us", "leader_epoch")
"""The columns that are read of a batch."""

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


def read_batch(batch: Any, columns: Columns | None = None) -> list[ArchivedRecord]:
    """What is in a batch; see `read_batches`.

    Args:
        batch: The batch.
        columns: What `native.decode` makes of it, if that was called already.
    """
    key, value = (batch.column(name).cast(pa.binary()) for name in COLUMNS[:2])
    places: list[_Place] = list(zip(*(batch.column(name).to_pylist() for name in COLUMNS[2:]), strict=True))
    if columns is None and is_compiled():
        columns = decode(key, value)
    with no_garbage_collection():
        decoded = {} if columns is None else _decode(columns, places)
    return [
        ArchivedRecord(b"", None, *place, snapshot)
        if (snapshot := decoded.get(number)) is not None
        else ArchivedRecord(key[number].as_py(), value[number].as_py(), *place)
        for number, place in enumerate(places)
    ]


def _decode(decoded: Columns, places: Sequence[_Place]) -> dict[int, Snapshot]:
    """The snapshots of those records that the compiled decoder takes, by number in the batch."""
    columns, dictionaries = decoded
    of = {name: _texts(dictionary) for name, dictionary in dictionaries.items()}

    def strings(column: str, dictionary: str) -> list[Any]:
        # By way of numpy, in a quarter of the time.
        known = np.array(of[dictionary], dtype=object)
        return known[numbers(columns[column])].tolist()  # type: ignore[no-any-return]

    of_record, topics = numbers(columns["member_record"]), of["topics"]
    count = len(of_record)
    strategies = strings("protocol", "protocols")
    bounds = np.searchsorted(of_record, np.arange(len(strategies) + 1))
    said = _SaidColumns(
        _Lists(columns, "claimed", topics),
        strategy=np.repeat(np.array(strategies, dtype=object), np.diff(bounds)),
        version=numbers(columns["subscription_version"]),
        data_size=numbers(columns["user_data_size"]),
        source=numbers(columns["claim_source"]),
        generation=numbers(columns["claim_generation"]),
    )
    rows = zip(
        strings("member_id", "members"),
        strings("instance_id", "instances"),
        strings("client_id", "clients"),
        strings("host", "hosts"),
        strings("rack", "racks"),
        _topic_sets(columns["topics_bounds"], columns["topics"], topics),
        said.claims(),
        said.generations.tolist(),
        _assignments(_Lists(columns, "assigned", topics), count),
        _numbers(columns["session_timeout_ms"]),
        _numbers(columns["rebalance_timeout_ms"]),
        strict=True,
    )
    each = list(map(make_member, rows))
    odd = np.bincount(of_record, weights=said.odd, minlength=len(strategies)).tolist()
    bounds = bounds.tolist()
    state_times = np.frombuffer(columns["state_time"], dtype=np.int64).tolist()
    order = _order if any(of["instances"]) else itemgetter(0)  # no member is static: by member id
    found = {}
    for place, (number, generation, group, strategy, leader, state_ms) in enumerate(
        zip(
            _numbers(columns["record"]),
            _numbers(columns["generation"]),
            strings("group", "groups"),
            strategies,
            strings("leader", "members"),
            state_times,
            strict=True,
        )
    ):
        if odd[place]:
            continue
        partition, offset, time_us, leader_epoch = places[number]
        found[number] = Snapshot(
            group=group,
            generation=generation,
            time_us=time_us,
            state_time_us=state_ms * 1000 if state_ms >= 0 else None,
            partition=partition,
            offset=offset,
            leader_epoch=leader_epoch,
            protocol_type="consumer",
            strategy=strategy,
            leader=leader,
            members=tuple(sorted(each[bounds[place] : bounds[place + 1]], key=order)),
        )
    return found


def _order(member: SnapshotMember) -> tuple[str, str]:
    return member.instance_id or member.member_id, member.member_id


def _numbers(raw: bytes) -> list[int]:
    return numbers(raw).tolist()  # type: ignore[no-any-return]


def _texts(dictionary: tuple[bytes, bytes]) -> list[Any]:
    """The strings of a dictionary, and None behind them: the number -1 stands for null."""
    return [*texts(dictionary).to_pylist(), None]


# What a member had in one record it has, most often, in the next: the same bytes of the columns are the same
# object, which costs a fifth of making it anew, and makes comparing two snapshots a matter of `is`.


def _topic_sets(bounds: bytes, of_members: bytes, topics: Sequence[str]) -> list[frozenset[str]]:
    """What each member subscribes to."""
    made: dict[bytes, frozenset[str]] = {}
    found = []
    ends = (4 * numbers(bounds)).tolist()
    for begin, end in pairwise(ends):
        said = of_members[begin:end]
        known = made.get(said)
        if known is None:
            known = made[said] = frozenset(topics[number] for number in _numbers(said))
        found.append(known)
    return found


class _Lists:
    """Partition lists of members, by columns: whose, topic, where its partitions end, partitions.

    Args:
        columns: These and others, by name.
        prefix: What their names begin with.
        topics: The names of the topics; -1 is none.

    Attributes:
        whose: The member of each row.
        has_topic: Whether each row has a topic.
    """

    def __init__(self, columns: Mapping[str, bytes], prefix: str, topics: Sequence[str | None]) -> None:
        self.whose, topic, bounds, ids = (
            columns[f"{prefix}_{name}"] for name in ("member", "topic", "bounds", "ids")
        )
        self._topics = topics
        self.has_topic = numbers(topic) >= 0
        # Of each row its topic, the number of its partitions, and these; so that rows in a row are one slice.
        self._begins = numbers(bounds) + 2 * np.arange(len(bounds) // 4)
        heads = self._begins[:-1]
        flat = np.empty(self._begins[-1], dtype=np.int32)
        is_partition = np.ones(flat.size, dtype=np.bool_)
        is_partition[heads] = is_partition[heads + 1] = False
        flat[heads], flat[heads + 1] = numbers(topic), np.diff(numbers(bounds))
        flat[is_partition] = numbers(ids)
        self._flat = flat.tobytes()

    def rows_of(self, members: int) -> Any:
        """(members + 1,) where the rows of each member begin, and those of the last end."""
        return np.searchsorted(numbers(self.whose), np.arange(members + 1))

    def keys(self, begins: Any, ends: Any) -> list[bytes]:
        """What is in stretches of rows, to compare.

        Args:
            begins: (K,) the first row of each.
            ends: (K,) the row after its last.
        """
        flat = self._flat
        places = (4 * self._begins[begins]).tolist(), (4 * self._begins[ends]).tolist()
        return [flat[begin:end] for begin, end in zip(*places, strict=True)]

    def read(self, key: bytes) -> list[tuple[str, tuple[int, ...]]]:
        """The same as topics and partition ids."""
        entries, found, begin = _numbers(key), [], 0
        while begin < len(entries):
            topic, end = self._topics[entries[begin]], begin + 2 + entries[begin + 1]
            if topic is not None:
                found.append((topic, tuple(entries[begin + 2 : end])))
            begin = end
        return found


def _assignments(lists: _Lists, members: int) -> list[Partitions]:
    """What each member was given."""
    rows = lists.rows_of(members)
    keys = lists.keys(rows[:-1], rows[1:])
    one_of = dict[tuple[str, int], tuple[str, int]]().setdefault  # sets of the same tuples compare by `is`
    made = {}
    for key in set(keys):
        partitions = (one for topic, ids in lists.read(key) for one in zip(repeat(topic), ids))
        made[key] = frozenset([one_of(one, one) for one in partitions])
    return [made[key] for key in keys]


class _SaidColumns:
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
        before_generations = cooperative & has_data & (version < GENERATION_SINCE)
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
