"""From an archive to its tables: a folder with a Delta table each, and tables.json (`replaced`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from os import PathLike
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_assignors._common.uuids import uuid_text
from kafka_assignors._groups.moved import find_owner_moves
from kafka_assignors._groups.rebalances import Span, SpanFinder
from kafka_assignors._groups.snapshots import KIP848, ArchivedRecord
from kafka_assignors._wire.offsets_topic import ConsumerGroupPartitionMetadata, RecordError, decode_record
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._arrow import batch_of, decode, number
from kafka_assignors.history._decoded import read_batch
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._records import Selection, begun
from kafka_assignors.history._schemas import TABLES, TIME
from kafka_assignors.history._snapshots import SnapshotReader, follow
from kafka_assignors.history._store.location import locate
from kafka_assignors.history._store.log import Log
from kafka_assignors.history._store.reading import Part, read_parts
from kafka_assignors.history._store.writing import TaskFiles, units
from kafka_assignors.history._tables import fast
from kafka_assignors.history._tables.replaced import read_versions, replacing

MANIFEST: Final = "tables.json"
GENERATIONS: Final = TABLES["generations"]
MOVES: Final = TABLES["moves"]
_UNIT: Final = 8 * 2**20
"""Bytes of the archive that are decoded at once: a row group of each large table. Memory for twice as much
comes fresh from the system each time; with a quarter, each step of numpy takes in too few records.
"""
_PARTITION_METADATA: Final = 4  # the type of the records by which brokers up to 4.0 name a group's topics
_MOVES: Final = 50_000  # that are held until they are written


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCounts:
    """What came of an archive.

    Attributes:
        read: How many records were read, without those that the archive only counts.
        decoded: How many of them were decoded.
        rejected: How many of them were not what their keys say.
        rows: How many rows there are, by table.
    """

    read: int
    decoded: int
    rejected: int
    rows: Mapping[str, int]


def make_tables(
    archive: Archive | str | PathLike[str],
    out: str | PathLike[str],
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    groups: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    engine: Engine | None = None,
) -> TableCounts:
    """Decode an archive into the tables of `schemas.TABLES`; what is in the folder already is replaced whole.

    Arguments are those of `metrics`. There are only records from `since` on, and without patterns of groups
    those without a group, too. The archive can be its path or URI, which then has the same options.

    Raises:
        WrongPlaceError: Tables cannot be there: it is no place, an archive, or has files of others.
        TablesBusyError: Somebody else has replaced them meanwhile.
        StoreError: The store does not let them be written.
        SparkError: Spark failed.
    """
    where = locate(out, options)
    engine = engine or Engine.fitting()
    selection = Selection(since=since, until=until, groups=groups, every_record=True)
    with replacing(where, MANIFEST, TABLES) as new:
        records = Archive(archive, options) if isinstance(archive, (str, PathLike)) else archive
        write = partial(_write, names=_topic_names(records, engine), since_us=selection.since_us)
        new.update(engine.map_sorted(records, selection, write, where=where).files)
        rows = {name: sum(file.rows or 0 for file in new.get(name, ())) for name in TABLES}
        decoded, rejected = rows["records"], rows["rejected"]
        return TableCounts(read=decoded + rejected, decoded=decoded, rejected=rejected, rows=rows)


def read_table(
    out: str | PathLike[str], name: str, options: Mapping[str, str] | None = None
) -> pa.RecordBatchReader:
    """One of the tables in a folder, as it is now, batch by batch: what is made later is not seen.

    Raises:
        NoTablesError: There are none in the folder.
        ValueError: There is no table of that name.
        StoreError: The store does not let it be read.
    """
    if name not in TABLES:
        raise ValueError(f"there is no table {name!r}, only {', '.join(TABLES)}")
    where = locate(out, options)
    log = Log(where / name, read_versions(where, MANIFEST)[name])
    batches = read_parts(log.where, map(Part, log.files()), TABLES[name])
    return pa.RecordBatchReader.from_batches(TABLES[name], batches)


def _write(
    batches: Iterator[Any], files: TaskFiles | None, *, names: Mapping[str, str], since_us: int | None
) -> Iterable[Any]:
    """Write the rows of sorted records. Those before `since_us` are only what moves begin with."""
    assert files is not None  # noqa: S101 - a place is given
    moves = moves_of(_decoded(batches, files, names, since_us), names, since_us)
    while some := [*islice(moves, _MOVES)]:
        files.write("moves", MOVES, batch_of(some, MOVES))
    return ()


def _decoded(
    batches: Iterator[Any], files: TaskFiles, names: Mapping[str, str], since_us: int | None
) -> Iterator[tuple[str | None, ArchivedRecord]]:
    """Records with their groups; on the way what is in them is written to the other tables."""
    generations = _Generations()
    for every in units(batches, _UNIT):
        batch = every
        if since_us is not None:
            batch = every.filter(pc.greater_equal(every["timestamp"], number(since_us, TIME)))
        columns = decode(batch["key"], batch["value"])
        parts = fast.decode(batch, names, columns)
        found = [one.pop("generations") for one in parts]
        files.write("generations", GENERATIONS, generations.add(found, every["group"][-1].as_py()))
        for part in parts:
            for table, rows in part.items():
                files.write(table, TABLES[table], rows)
        read = read_batch(every, columns if every is batch else None)
        yield from zip(every["group"].to_pylist(), read, strict=True)
    files.write("generations", GENERATIONS, generations.end())


class _Generations:
    """One row of each generation out of one for each record: the last, and when the first was written."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str | None, int | None], list[Any]] = {}

    def add(self, parts: Sequence[Any], last: str | None) -> Any:
        """Take the rows of the next records, of which a group is the last; gives those of all others."""
        rows = pa.Table.from_batches([part.cast(GENERATIONS) for part in parts])
        if len(parts) > 1:
            rows = rows.sort_by([(name, "ascending") for name in ("group", "partition", "offset")])
        plain = (column.cast(pa.int64()) if column.type == TIME else column for column in rows.columns)
        done: list[list[Any]] = []
        for row in map(list, zip(*(column.to_pylist() for column in plain), strict=True)):
            of = row[_GROUP], row[_GENERATION]
            last_of = next(reversed(self._rows), of)
            if row[_PROTOCOL_TYPE] != KIP848 and last_of[0] == of[0] and of[1] < last_of[1]:
                done += self._rows.values()  # the group was deleted, and begins anew
                self._rows.clear()
            before = self._rows.pop(of, None)
            if before is not None:
                row[_RECORDS] += before[_RECORDS]
                row[_FIRST_TIME] = min(row[_FIRST_TIME], before[_FIRST_TIME])
            self._rows[of] = row
        done += [self._rows.pop(of) for of in [*self._rows] if of[0] != last]
        return batch_of([*map(tuple, done)], GENERATIONS)

    def end(self) -> Any:
        """The rows of the last group."""
        return batch_of([*map(tuple, self._rows.values())], GENERATIONS)


_GROUP, _GENERATION, _RECORDS, _FIRST_TIME, _PROTOCOL_TYPE = map(
    GENERATIONS.names.index, ("group", "generation", "records", "first_time", "protocol_type")
)


def moves_of(
    named: Iterable[tuple[str | None, ArchivedRecord]], names: Mapping[str, str], since_us: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """Rows of `moves`: the moves of each rebalance of sorted records, with the record that ended it."""
    for _, its in groupby(named, itemgetter(0)):
        records = begun(map(itemgetter(1), its), since_us)
        for span in _spans(records, SnapshotReader(names)):
            before, end = span.before, span.end
            place = end.group, end.partition, end.offset, end.time_us, end.generation
            yield from ((*place, *move, before.generation) for move in find_owner_moves(before, end))


def _spans(records: Iterable[ArchivedRecord], reader: SnapshotReader) -> Iterator[Span]:
    finder = SpanFinder(reasons=False)
    for found in follow(records, reader, lambda snapshot: [*finder.add(snapshot)]):
        yield from found
    yield from finder.finish()


def _topic_names(archive: Archive, engine: Engine) -> dict[str, str]:
    """The names of an archive's topics by id, as Java prints it."""
    names: dict[str, str] = {}
    if any(file.may_have("type", _PARTITION_METADATA) for file in archive.files()):
        for found in engine.map_rows(archive, ("type", "key", "value"), _named).rows:
            names |= found
    return names | {topic.topic_id: topic.topic for topic in archive.topics()}


def _named(batches: Iterator[Any], _: object) -> Iterator[dict[str, str]]:
    names: dict[str, str] = {}
    for batch in batches:
        naming = batch.filter(pc.equal(batch["type"], _PARTITION_METADATA))
        for key, value in zip(naming["key"].to_pylist(), naming["value"].to_pylist(), strict=True):
            with suppress(RecordError):
                record = decode_record(key, value)
                if isinstance(record, ConsumerGroupPartitionMetadata) and record.value is not None:
                    names |= {uuid_text(topic.topic_id): topic.topic_name for topic in record.value.topics}
    yield names
