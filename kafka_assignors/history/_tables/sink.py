"""What the tasks do that make tables: each reads its part of an archive once, and writes files of all tables.

Files that become a table's are written where they stay. Files that only a later step reads go to a folder of
the run's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_assignors._groups.snapshots import KIP848
from kafka_assignors.history._schemas import GENERATIONS, MOVES, TABLES
from kafka_assignors.history._store.reading import frame_of_files
from kafka_assignors.history._store.writing import (
    TaskFiles,
    WrittenFiles,
    copy_rows,
    rows_of,
    units,
    write_files,
)
from kafka_assignors.history._tables import fast, one_by_one
from kafka_assignors.history._tables.decoded import kept
from kafka_assignors.history._tables.tracker import RUNS, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from kafka_assignors.history._store.log import DataFile
    from kafka_assignors.history._store.places import Place
    from kafka_assignors.history._store.reading import Read, Source

EACH_GENERATION: Final = "each_generation"
"""Where the rows of generations go first: one for each record."""
RUNS_OF_GROUPS: Final = "runs"
"""Where the ends of runs go; see `tracker`."""
REPEATED: Final = "repeated"
"""Where the groups go of whose generations there may be more than one row."""
ALL_MOVES: Final = "all_moves"
"""Where moves go that replace the ones that tasks found."""
MIXED: Final = "mixed"
"""Where the groups go that have runs inside of each other."""

UNIT: Final = 8 * 2**20
"""Bytes of the archive that are decoded at once; what comes of them is a row group of each large table.
Memory for units twice as large comes fresh from the system each time, which costs as much again as reading
them. If units are a quarter as large, each step of numpy takes in too few records.
"""

_WIDE: Final = frozenset({"members", "assignments", "claims"})
"""Tables with many rows for each record."""
GROUP: Final = pa.schema([pa.field("group", pa.string(), nullable=False)])
_SCHEMAS: Final = {
    **TABLES,
    ALL_MOVES: MOVES,
    EACH_GENERATION: GENERATIONS,
    RUNS_OF_GROUPS: RUNS,
    REPEATED: GROUP,
    MIXED: GROUP,
}


def choose(decoder: str) -> str:
    """The decoder that is meant.

    Args:
        decoder: "fast", which is compiled; "plain", which is not; or "auto": fast if it was compiled.

    Raises:
        ValueError: There is no such decoder, or it was not compiled.
    """
    if decoder == "auto":
        return "fast" if fast.is_compiled() else "plain"
    if decoder not in ("fast", "plain"):
        raise ValueError(f"there is no decoder {decoder!r}, only 'auto', 'fast' and 'plain'")
    if decoder == "fast" and not fast.is_compiled():
        raise ValueError(
            "the fast decoder was not compiled when kafka-assignors was installed: install it where there is "
            "a C compiler, or use the decoder 'plain'"
        )
    return decoder


@dataclass
class Made:
    """What a run has written so far.

    Attributes:
        where: The place of the tables.
        work: The folder there of what only the run needs.
        files: By table, its files.
    """

    where: Place
    work: str
    files: dict[str, list[DataFile]] = field(default_factory=dict)

    def rows(self, table: str) -> int:
        """How many rows a table has."""
        return rows_of(self.files.get(table, ()))

    def read(self, spark: SparkSession, table: str) -> DataFrame:
        """What was written to a table."""
        return frame_of_files(spark, self.where, self.files.get(table, []), _SCHEMAS[table])

    def write(self, rows: DataFrame, write: Callable[[TaskFiles, Iterator[Any]], int]) -> int:
        """Have tasks write files; see `write_files`.

        Returns:
            How many rows they read.
        """
        folders = {EACH_GENERATION: "generations", ALL_MOVES: "moves"}
        folders |= {table: f"{self.work}/{table}" for table in (RUNS_OF_GROUPS, REPEATED, MIXED)}
        written = write_files(rows, partial(TaskFiles, self.where, wide=_WIDE, folders=folders), write)
        self._add(written)
        return sum(written.told)

    def _add(self, written: WrittenFiles) -> None:
        for table, files in written.files.items():
            self.files.setdefault(table, []).extend(files)

    def write_table(self, rows: DataFrame, table: str) -> None:
        """Write the rows of one table."""
        self.write(rows, partial(copy_rows, table=table, schema=_SCHEMAS[table]))

    def write_decoded(self, source: Source, *, decoder: str, names: Mapping[str, str]) -> int:
        """Decode an archive, and write what each record has by itself.

        Beside `TABLES`, less generations, there are then `EACH_GENERATION`, `RUNS_OF_GROUPS` and `REPEATED`.

        Args:
            source: Its records.
            decoder: "fast" or "plain".
            names: The names of topics by id.

        Returns:
            How many records were read.
        """
        return self.write(source.rows, partial(_decode, read=source.read, decoder=decoder, names=names))

    def discard(self, *tables: str) -> None:
        """Delete what was written to tables that nobody will read."""
        self.where.remove([file.path for table in tables for file in self.files.pop(table, ())])

    def rename(self, table: str, new: str) -> None:
        """Have what was written to one table be another's; the files stay where they are."""
        self.files[new] = self.files.pop(table, [])


def _decode(
    files: TaskFiles, batches: Iterator[Any], *, read: Read, decoder: str, names: Mapping[str, str]
) -> int:
    is_fast = decoder == "fast"
    decode = fast.decode if is_fast else one_by_one.decode
    tracker = Tracker(fast=is_fast)
    count = 0
    for unit in units(read(batches), UNIT):
        decoded, owners = decode(unit, names)
        count += int(kept(unit).size)
        files.write("moves", MOVES, tracker.add(decoded.pop("classic"), owners))
        files.write(RUNS_OF_GROUPS, RUNS, tracker.ended())
        generations = decoded.pop("generations")
        files.write(REPEATED, GROUP, _kip848_groups(generations))
        files.write(EACH_GENERATION, GENERATIONS, generations)
        for table, rows in decoded.items():
            files.write(table, TABLES[table], rows)
    tracker.end()
    files.write(RUNS_OF_GROUPS, RUNS, tracker.ended())
    return count


def _kip848_groups(generations: Any) -> Any:
    """Of these the epoch stands in two records, and each begins a row."""
    groups = generations.filter(pc.equal(generations["protocol_type"], KIP848))["group"]
    return pa.RecordBatch.from_arrays([groups.cast(pa.string()).unique()], schema=GROUP)
