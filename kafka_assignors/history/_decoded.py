"""Records of an archive's batch as snapshots, all at once: what every command reads.

The compiled codec turns the records of consumers' classic groups into columns; here these become snapshots.
What it leaves, and everything where it was not compiled, `decode_record` reads later, one record at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise, repeat
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_assignors._common.garbage import no_garbage_collection
from kafka_assignors._groups.snapshots import (
    ArchivedRecord,
    Partitions,
    Snapshot,
    SnapshotMember,
    make_member,
)
from kafka_assignors._model.arrays import NOBODY
from kafka_assignors._model.claims import ClaimTable
from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._model.topic_sets import TopicSets
from kafka_assignors._wire.claims_of import claims_of
from kafka_assignors._wire.codec import NOT_STATED, Subscriptions
from kafka_assignors._wire.reader import GENERATION_SINCE
from kafka_assignors.history._arrow import Columns, as_numpy, decode, numbers, texts

ROWS: Final = 256
"""How many records are decoded at once: of 20 members each, about 2 MB of Python's objects."""

COLUMNS: Final = ("key", "value", "partition", "offset", "timestamp", "leader_epoch")
"""The columns that are read of a batch."""
_NO_TOPICS: Final = TopicSets.of([()])  # of no concern to who asks for claims
_Place = tuple[int, int, int, int | None]  # partition, offset, time and leader epoch


def read_batches(batches: Iterable[Any]) -> Iterator[tuple[Any, list[ArchivedRecord]]]:
    """Parts of batches with `COLUMNS`, and what is in them."""
    for batch in batches:
        for begin in range(0, batch.num_rows, ROWS):
            part = batch.slice(begin, ROWS)
            yield part, read_batch(part)


def read_batch(batch: Any, columns: Columns | None = None) -> list[ArchivedRecord]:
    """What is in a batch with `COLUMNS`; `columns` is what `_arrow.decode` made of it, if it was called."""
    key, value = (batch.column(name).cast(pa.binary()) for name in COLUMNS[:2])
    of_records = (batch.column(name).cast(pa.int64()).to_pylist() for name in COLUMNS[2:])
    places: list[_Place] = list(zip(*of_records, strict=True))
    columns = columns or decode(key, value)
    with no_garbage_collection():
        decoded = _decode(columns, places) if columns else {}
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

    strategies = strings("protocol", "protocols")
    bounds = np.searchsorted(numbers(columns["member_record"]), np.arange(len(strategies) + 1))
    strategy_of = np.repeat(numbers(columns["protocol"]), np.diff(bounds))
    each = _members(columns, of, strings, strategy_of)
    bounds = bounds.tolist()
    order = _order if any(of["instances"]) else itemgetter(0)  # no member is static: by member id
    found = {}
    rows = zip(
        _numbers(columns["record"]),
        _numbers(columns["generation"]),
        strings("group", "groups"),
        strategies,
        np.frombuffer(columns["state_time"], dtype=np.int64).tolist(),
        strict=True,
    )
    for place, (number, generation, group, strategy, state_ms) in enumerate(rows):
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
            members=tuple(sorted(each[bounds[place] : bounds[place + 1]], key=order)),
        )
    return found


def _members(
    columns: Mapping[str, bytes],
    of: Mapping[str, list[Any]],
    strings: Callable[[str, str], list[Any]],
    strategy_of: Any,
) -> list[SnapshotMember]:
    """All members of a batch's records; `strategy_of` as in `_claims`."""

    def topic_set(part: bytes) -> frozenset[str]:
        return frozenset([of["topics"][one] for one in _numbers(part)])

    names = strings("member_id", "members"), strings("instance_id", "instances")
    given = _assignments(_table(columns, "assigned", of["topics"], len(names[0])))
    claims = cache(partial(_claims, columns, of["topics"], of["protocols"], strategy_of))
    rows = zip(
        *names,
        strings("client_id", "clients"),
        strings("host", "hosts"),
        strings("rack", "racks"),
        _one_of_each(4 * numbers(columns["topics_bounds"]).astype(np.int64), columns["topics"], topic_set),
        map(_Claims, repeat(claims), range(len(given))),
        given,
        _numbers(columns["session_timeout_ms"]),
        _numbers(columns["rebalance_timeout_ms"]),
        strict=True,
    )
    return list(map(make_member, rows))


def _order(member: SnapshotMember) -> tuple[str, str]:
    return member.instance_id or member.member_id, member.member_id


def _numbers(raw: bytes) -> list[int]:
    return numbers(raw).tolist()  # type: ignore[no-any-return]


def _texts(dictionary: tuple[bytes, bytes]) -> list[Any]:
    """The strings of a dictionary, and None behind them: the number -1 stands for null."""
    return [*texts(dictionary).to_pylist(), None]


class _Claims(Mapping[str, tuple[int, ...]]):
    """What a member claims, of a whole batch read when somebody asks: of eager members hardly anyone does."""

    __slots__ = ("_number", "_read")

    def __init__(self, read: Callable[[], Sequence[Mapping[str, tuple[int, ...]]]], number: int) -> None:
        self._read = read
        self._number = number

    def __getitem__(self, topic: str) -> tuple[int, ...]:
        return self._read()[self._number][topic]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read()[self._number])

    def __len__(self) -> int:
        return len(self._read()[self._number])


# What a member had in one record it has, most often, in the next: the same bytes of the columns are the same
# object, which costs a fifth of making it anew, and makes comparing two snapshots a matter of `is`.


def _one_of_each(bounds: Any, raw: bytes, make: Callable[[bytes], Any]) -> list[Any]:
    """What is made of each of the parts of some bytes between bounds: the same object of the same bytes."""
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(raw)]
    parts = pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers).dictionary_encode()
    made = np.empty(len(parts.dictionary), dtype=object)
    made[:] = [make(part) for part in parts.dictionary.to_pylist()]
    return made[as_numpy(parts.indices)].tolist()  # type: ignore[no-any-return]


def _of_claimants(table: ClaimTable, make: Callable[[dict[str, tuple[int, ...]]], Any]) -> list[Any]:
    """What is made of the partition ids by topic of each claimant of a table."""
    # Of each row its topic, how many ids there are, and these.
    begins = np.cumsum(table.sizes + 2) - table.sizes - 2
    is_id = np.ones(table.ids.size + 2 * begins.size, dtype=np.bool_)
    is_id[begins] = is_id[begins + 1] = False
    joined = np.empty(is_id.size, dtype=np.int32)
    joined[begins], joined[begins + 1], joined[is_id] = table.topic, table.sizes, table.ids
    rows = np.searchsorted(table.claimant, np.arange(table.claimants + 1))
    bounds = 4 * np.append(begins, joined.size)[rows]
    return _one_of_each(bounds, joined.tobytes(), lambda part: make(_by_topic(_numbers(part), table.names)))


def _by_topic(joined: Sequence[int], names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    begin = 0
    while begin < len(joined):
        name, end = names[joined[begin]], begin + 2 + joined[begin + 1]
        found[name] = (*found.get(name, ()), *joined[begin + 2 : end])
        begin = end
    return found


def _table(columns: Mapping[str, bytes], prefix: str, names: Sequence[str], members: int) -> ClaimTable:
    """Partition lists of members in columns whose names begin so."""
    whose, topic, bounds, ids = (
        numbers(columns[f"{prefix}_{name}"]) for name in ("member", "topic", "bounds", "ids")
    )
    return ClaimTable(
        claimants=members, names=names, claimant=whose, topic=topic, sizes=np.diff(bounds), ids=ids
    )


def _assignments(table: ClaimTable) -> list[Partitions]:
    one_of = dict[tuple[str, int], tuple[str, int]]().setdefault  # sets of the same tuples compare by `is`

    def partitions(lists: Mapping[str, tuple[int, ...]]) -> Partitions:
        return frozenset(
            [one_of(one, one) for topic, ids in lists.items() for one in zip(repeat(topic), ids)]
        )

    return _of_claimants(table, partitions)


def _claims(
    columns: Mapping[str, bytes], names: Sequence[str], strategies: Sequence[str | None], strategy_of: Any
) -> list[dict[str, tuple[int, ...]]]:
    """What each of M members claims, by `claims_of`; `strategy_of` is (M,) the number of its strategy."""
    members = len(strategy_of)
    every = _table(columns, "claimed", names, members)
    owned = numbers(columns["claim_source"]) == 0
    generations = np.full(members, NO_GENERATION)
    generations[every.claimant[owned]] = numbers(columns["claim_generation"])[owned]
    generations[numbers(columns["subscription_version"]) < GENERATION_SINCE] = NOT_STATED
    # A row without a topic tells a generation only.
    rows = owned & (every.topic >= 0)
    table = replace(
        every,
        claimant=every.claimant[rows],
        topic=every.topic[rows],
        sizes=every.sizes[rows],
        ids=every.ids[np.repeat(rows, every.sizes)],
    )
    data = columns["user_data"]
    user_data = [data[begin:end] for begin, end in pairwise(_numbers(columns["user_data_bounds"]))]
    claims = np.empty(members, dtype=object)
    for strategy in np.unique(strategy_of).tolist():
        its = np.flatnonzero(strategy_of == strategy)
        place = np.full(members, NOBODY)
        place[its] = np.arange(its.size)
        said = Subscriptions(
            topics=_NO_TOPICS,
            topics_of=its,
            user_data=[user_data[number] for number in its.tolist()],
            owned=table.renumbered(place, its.size),
            generations=generations[its],
            racks=(),
        )
        claimed, _ = claims_of(strategies[strategy], said)
        claims[its] = _of_claimants(claimed.claims, dict)
    return claims.tolist()
