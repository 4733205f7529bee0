"""Tasks that write the files of tables themselves, with Arrow, and say what they wrote.

Each task reads its part of the archive once and writes the files of all tables. Through Spark's own writer,
which takes rows one by one, the assignments of 1,000,000 records alone took 75 s of CPU. A data source of
PySpark's would do as well; it starts three more Python processes for each write, which cost more than many an
archive.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from kafka_assignors.history._schemas import GENERATIONS, MOVES, TABLES
from kafka_assignors.history._tables import fast, one_by_one
from kafka_assignors.history._tables.decoded import kept
from kafka_assignors.history._tables.files import TableFiles, abort, commit, units
from kafka_assignors.history._tables.sources import in_schema
from kafka_assignors.history._tables.tracker import RUNS, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from kafka_assignors.history._tables.sources import Read, Source

EACH_GENERATION: Final = "each_generation"
"""Where the rows of generations go first: one for each record."""
RUNS_OF_GROUPS: Final = "runs"
"""Where the ends of runs go; see `tracker`."""
REPEATED: Final = "repeated"
"""Where the groups go of whose generations there may be more than one row."""
ALL_MOVES: Final = "all_moves"
"""Where moves go that take the place of those that tasks found."""

UNIT: Final = 8 * 2**20
"""Bytes of the archive that are decoded at once; what comes of them is a row group of each large table.
Memory for units twice as large comes fresh from the system each time, which costs as much again as reading
them; of units a quarter as large, each step of numpy takes in too few records."""

_WIDE: Final = frozenset({"members", "assignments", "claims"})
"""Tables with many rows for each record."""
GROUP: Final = pa.schema([pa.field("group", pa.string(), nullable=False)])
_SCHEMAS: Final = {**TABLES, ALL_MOVES: MOVES}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written.

    Attributes:
        read: How many records or rows were read for it.
        rows: How many rows were written, by table.
    """

    read: int
    rows: Mapping[str, int]


def write_decoded(source: Source, folder: str, *, decoder: str, names: Mapping[str, str]) -> Written:
    """Decode an archive, and write what can be told record by record.

    Args:
        source: Its records.
        folder: The folder of the tables, as a path or URI. Beside those of `TABLES`, less generations, there
            are then `EACH_GENERATION`, `RUNS_OF_GROUPS` and `REPEATED` in it.
        decoder: "fast" or "plain".
        names: The names of topics by id.
    """
    decode = partial(_decode, read=source.read, decoder=decoder, names=names)
    return write_files(source.rows, folder, decode)


def write_table(rows: DataFrame, folder: str, table: str) -> int:
    """Write the rows of one table to its folder.

    Returns:
        How many there were.
    """
    return write_files(rows, folder, partial(_copy, table=table)).read


def write_files(rows: DataFrame, folder: str, write: Callable[[TableFiles, Iterator[Any]], int]) -> Written:
    """Have tasks write the files of tables, and put those of the tasks that count in place.

    Args:
        rows: What the tasks get.
        folder: The folder of the tables.
        write: What a task does; it returns how many rows it read.
    """
    try:
        tasks = rows.mapInArrow(partial(_task, folder=folder, write=write), _TOLD).collect()
    except BaseException:
        abort(folder)
        raise
    read, count = 0, Counter[str]()
    moved = []
    for name, of_task, told in tasks:
        by_table = json.loads(told)
        moved += [(table, name) for table in by_table]
        read += of_task
        count.update(by_table)
    commit(folder, moved)
    return Written(read=read, rows=count)


_TOLD: Final = "name string, read bigint, rows string"


def _task(
    batches: Iterator[Any], *, folder: str, write: Callable[[TableFiles, Iterator[Any]], int]
) -> Iterator[Any]:
    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    # Attempts of one task can run at the same time.
    name = f"part-{number:05d}-{uuid4().hex}"
    with TableFiles(folder, name, wide=_WIDE) as files:
        read = write(files, batches)
    yield pa.RecordBatch.from_pydict({"name": [name], "read": [read], "rows": [json.dumps(files.rows)]})


def _decode(
    files: TableFiles, batches: Iterator[Any], *, read: Read, decoder: str, names: Mapping[str, str]
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
    groups = generations.filter(pc.equal(generations["protocol_type"], one_by_one.KIP848))["group"]
    return pa.RecordBatch.from_arrays([groups.cast(pa.string()).unique()], schema=GROUP)


def _copy(files: TableFiles, batches: Iterator[Any], *, table: str) -> int:
    read = 0
    for batch in batches:
        files.write(table, _SCHEMAS[table], in_schema(batch, _SCHEMAS[table]))
        read += batch.num_rows
    return read
