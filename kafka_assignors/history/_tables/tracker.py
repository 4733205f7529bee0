"""Moves between the records of a group, as far as one stream of an archive's batches shows them.

A stream has the records of a partition mostly in order, yet it rarely has all of a group's: others are in
other streams. What it has in order is a *run*; a record that is earlier than the one of its group before
begins a new one. The moves inside of a run are returned at once. Its ends are passed on, to be put together
with those of other streams' runs.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_assignors.history._schemas import MOVES, TIME
from kafka_assignors.history._tables.decoded import CLASSIC
from kafka_assignors.history._tables.moves import find_moves
from kafka_assignors.history._tables.owners import as_bytes, size_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafka_assignors.history._tables.owners import Told

RUNS: Final = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("time", TIME, nullable=False),
        pa.field("generation", pa.int32()),
        pa.field("owners", pa.binary()),
        pa.field("last_partition", pa.int32(), nullable=False),
        pa.field("last_offset", pa.int64(), nullable=False),
        pa.field("last_generation", pa.int32()),
        pa.field("last_owners", pa.binary()),
        pa.field("lowest", pa.int32()),
        pa.field("highest", pa.int32()),
        pa.field("rises", pa.bool_(), nullable=False),
    ]
)
"""The first record of each run, and what is needed of its last; of a single one its owners are there once.
And the lowest and highest generation of the run, and whether each is higher than those before it.
"""

MOST_BYTES: Final = 64 * 2**20
"""Of owners that a stream remembers; groups beyond that, the longest quiet ones, end their runs."""


class _Record(NamedTuple):
    partition: int
    offset: int
    time: int
    generation: int | None
    owners: Told | None


class _Run(NamedTuple):
    first: _Record
    last: _Record
    lowest: int | None
    highest: int | None
    rises: bool

    @classmethod
    def beginning(cls, record: _Record) -> _Run:
        return cls(record, record, record.generation, record.generation, rises=True)

    def with_next(self, record: _Record) -> _Run:
        generation, lowest, highest = record.generation, self.lowest, self.highest
        if generation is None:  # the group was gone, and begins anew
            return self._replace(last=record)
        if lowest is None or highest is None:
            return _Run(self.first, record, generation, generation, self.rises)
        if generation > highest:
            return _Run(self.first, record, lowest, generation, self.rises)
        return _Run(self.first, record, min(lowest, generation), highest, rises=False)

    @property
    def size(self) -> int:
        """Bytes that it takes to remember, about."""
        return 500 + size_of(self.first.owners or b"") + size_of(self.last.owners or b"")


class Tracker:
    """Follows the groups of a stream.

    Args:
        most_bytes: How much it may remember.
        fast: Whether moves are to be found by the compiled part, should it be there.
    """

    def __init__(self, *, most_bytes: int = MOST_BYTES, fast: bool = True) -> None:
        self._most_bytes = most_bytes
        self._fast = fast
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        self._size = 0
        self._ended: list[tuple[str, _Run]] = []

    def add(self, records: Any, owners: Iterable[Told | None]) -> Any:
        """Follow the groups through a batch.

        Args:
            records: The batch, with the columns of `decoded.CLASSIC`.
            owners: Who owned what after each of its records.

        Returns:
            The moves, a batch of MOVES, in the order of the records.
        """
        pairs: list[tuple[int, int]] = []
        before: list[Told] = []
        after: list[Told] = []
        for number, (group, *cells) in enumerate(zip(*_columns(records), owners, strict=True)):
            record = _Record(*cells)
            run = self._runs.pop(group, None)
            if run is not None:
                self._size -= run.size
                last = run.last
                if (record.partition, record.offset) <= (last.partition, last.offset):
                    self._ended.append((group, run))
                    run = None
                elif record.owners is not None and last.owners is not None and last.generation is not None:
                    pairs.append((number, last.generation))
                    before.append(last.owners)
                    after.append(record.owners)
            self._runs[group] = run = _Run.beginning(record) if run is None else run.with_next(record)
            self._size += run.size
            while self._size > self._most_bytes:
                quiet, run = self._runs.popitem(last=False)
                self._size -= run.size
                self._ended.append((quiet, run))
        return moves_of(records, pairs, before, after, fast=self._fast)

    def ended(self) -> Any:
        """The runs that have ended since they were last asked for, a batch of RUNS."""
        ended, self._ended = self._ended, []
        rows = [
            # Most often the last record is the first; its owners need not be told twice.
            (
                group,
                *first[:-1],
                _told(first),
                last.partition,
                last.offset,
                last.generation,
                None if last is first else _told(last),
                *generations,
            )
            for group, (first, last, *generations) in ended
        ]
        return rows_of(RUNS, rows)

    def end(self) -> None:
        """End all runs: no more batches come."""
        self._ended += self._runs.items()
        self._runs.clear()
        self._size = 0


def rows_of(schema: Any, rows: list[tuple[Any, ...]]) -> Any:
    """A batch of rows in the order of a schema."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def moves_of(
    records: Any,
    pairs: list[tuple[int, int]],
    before: Sequence[Told],
    after: Sequence[Told],
    *,
    fast: bool = True,
) -> Any:
    """The moves of pairs of records, a batch of MOVES.

    Args:
        records: A batch with the columns of `decoded.CLASSIC`.
        pairs: For each pair the number of its later record in there, and the generation of the earlier one.
        before: The owners of the earlier.
        after: The owners of the later.
        fast: As in `find_moves`.
    """
    moves = find_moves(before, after, fast=fast)
    numbers = np.array([number for number, _ in pairs], dtype=np.int64)
    generations = np.array([generation for _, generation in pairs], dtype=np.int32)
    indices = pa.array(numbers[moves.pair.to_numpy()])
    columns = {
        "topic": moves.topic,
        "moved_partition": moves.partition,
        "source": moves.source,
        "target": moves.target,
        "before": pa.array(generations[moves.pair.to_numpy()]),
    }
    arrays = [
        columns[field.name] if field.name in columns else records[field.name].take(indices).cast(field.type)
        for field in MOVES
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=MOVES)


def _told(record: _Record) -> bytes | None:
    return None if record.owners is None else as_bytes(record.owners)


def _columns(records: Any) -> list[list[Any]]:
    group, partition, offset, time, generation = (records[field.name] for field in CLASSIC)
    of_python = (group.cast(pa.string()), partition, offset, time.cast(pa.int64()), generation)
    return [column.to_pylist() for column in of_python]
