"""What is between the runs of a group, which tasks saw apart from each other; see `tracker`.

Runs that lie one after the other need no more than their ends. Where one lies inside of another, as with
records that were archived twice, the group's records are put in order and followed from the beginning.
Where generations only ever rise, each has one record, and its row is what was made of that.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafka_assignors.history._schemas import MOVES
from kafka_assignors.history._store.writing import units
from kafka_assignors.history._tables import fast, one_by_one
from kafka_assignors.history._tables.decoded import CLASSIC
from kafka_assignors.history._tables.owners import as_bytes
from kafka_assignors.history._tables.sink import GROUP, MIXED, REPEATED, UNIT
from kafka_assignors.history._tables.tracker import Tracker, moves_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from kafka_assignors.history._store.reading import Read, Source
    from kafka_assignors.history._store.writing import TaskFiles
    from kafka_assignors.history._tables.sink import Made

_GROUP_METADATA: Final = 2
_LEAST: Final = -(2**31) - 1
"""Less than any generation."""
_OWNERS_DDL = "`group` string, partition int, offset bigint, time timestamp, generation int, owners binary"
_MOVES_DDL = (
    "`group` string, partition int, offset bigint, time timestamp, generation int, topic string, "
    "moved_partition int, source string, target string, before int"
)


def write_between(runs: DataFrame, made: Made) -> None:
    """Write the moves from the last record of each run to the first of the next to the table of moves.

    Args:
        runs: Rows in schema RUNS.
        made: Gets also `MIXED`, the groups with runs inside of each other, whose moves do not count. And
            `REPEATED`, those that may have a generation twice.
    """
    ordered = runs.repartition("group").sortWithinPartitions(
        "group", "partition", "offset", "last_partition", "last_offset"
    )
    made.write(ordered, _join)


class _RunRow(NamedTuple):
    """What of a row of RUNS is needed here, in its order."""

    partition: int
    offset: int
    owners: bytes | None
    last_partition: int
    last_offset: int
    last_generation: int | None
    last_owners: bytes | None
    lowest: int | None
    highest: int | None
    rises: bool

    @property
    def begin(self) -> tuple[int, int]:
        return self.partition, self.offset

    @property
    def end(self) -> tuple[int, int]:
        return self.last_partition, self.last_offset

    @property
    def owners_at_end(self) -> bytes | None:
        return self.owners if self.begin == self.end else self.last_owners


class _Group:
    """A group after those of its runs that were seen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.last: _RunRow | None = None
        self.is_mixed = False
        self.is_repeated = False
        self._end = (-1, -1)
        self._highest = _LEAST

    def add(self, run: _RunRow) -> None:
        """Follow the group through its next run."""
        self.is_mixed |= run.begin <= self._end
        self.is_repeated |= self.is_mixed or not run.rises
        self._end = max(self._end, run.end)
        if run.lowest is not None and run.highest is not None:
            self.is_repeated |= run.lowest <= self._highest
            self._highest = max(self._highest, run.highest)
        self.last = run


def _join(files: TaskFiles, batches: Iterator[Any]) -> int:
    """Runs come group by group, and in order."""
    read = 0
    group = None
    for batch in batches:
        read += batch.num_rows
        pairs: list[tuple[int, int]] = []
        before: list[bytes] = []
        after: list[bytes] = []
        seen: list[_Group] = []
        names, *cells = (batch[column].to_pylist() for column in ("group", *_RunRow._fields))
        for number, (name, run) in enumerate(zip(names, map(_RunRow, *cells), strict=True)):
            if group is None or group.name != name:
                group = _Group(name)
            if not seen or seen[-1] is not group:
                seen.append(group)
            last = group.last
            if last is not None and last.last_generation is not None:
                had, has = last.owners_at_end, run.owners
                if had is not None and has is not None:
                    pairs.append((number, last.last_generation))
                    before.append(had)
                    after.append(has)
            group.add(run)
        files.write("moves", MOVES, moves_of(batch, pairs, before, after))
        files.write(MIXED, GROUP, rows_of(GROUP, [(one.name,) for one in seen if one.is_mixed]))
        files.write(REPEATED, GROUP, rows_of(GROUP, [(one.name,) for one in seen if one.is_repeated]))
    return read


def moves_in_order(source: Source, groups: DataFrame, decoder: str) -> DataFrame:
    """The moves of whole groups, from the archive.

    Args:
        source: Its records.
        groups: The groups, in column `group`.
        decoder: "fast" or "plain".
    """
    owners = source.rows.mapInArrow(partial(_owners, read=source.read, decoder=decoder), _OWNERS_DDL)
    ordered = (
        owners.join(groups, "group", "left_semi")
        .dropDuplicates(["partition", "offset"])
        .repartition("group")
        .sortWithinPartitions("group", "partition", "offset")
    )
    return ordered.mapInArrow(_in_order, _MOVES_DDL)


def _owners(batches: Iterator[Any], *, read: Read, decoder: str) -> Iterator[Any]:
    decode = fast.decode if decoder == "fast" else one_by_one.decode
    for unit in units(read(batches), UNIT):
        unit = unit.filter(pc.equal(unit["type"], _GROUP_METADATA))  # noqa: PLW2901 - the rest of it
        decoded, owners = decode(unit, {})
        records = decoded["classic"].cast(CLASSIC)
        told = pa.array([None if one is None else as_bytes(one) for one in owners], pa.binary())
        yield records.append_column("owners", told)


def _in_order(batches: Iterator[Any]) -> Iterator[Any]:
    tracker = Tracker()
    for batch in batches:
        yield tracker.add(batch, batch["owners"].to_pylist())
        tracker.ended()  # a group's records are all here, and there is nothing to put together
