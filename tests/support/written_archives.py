"""Archives in folders, of rows made by hand: without Spark, by what its tasks do."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kafka_assignors._common.times import micros
from kafka_assignors._groups.snapshots import ArchivedRecord
from kafka_assignors.history._archive import TOPIC_SOURCE, Archive, write_days
from kafka_assignors.history._archive_format import log_of
from kafka_assignors.history._counts import Counts
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._records import Selection
from kafka_assignors.history._store.log import DataFile
from kafka_assignors.history._store.writing import TaskFiles, run_task
from tests.support.archives import NOON, batch_of


def write_archive(folder: Path, parts: Iterable[Sequence[Mapping[str, Any]]]) -> str:
    """An archive with a batch of each part."""
    archive = Archive.create(folder)
    for part in parts:
        add_batch(archive, batch_of(part))
    return str(folder)


def add_batch(archive: Archive, *units: Any) -> None:
    """Commit a batch as one task of a capture writes it: a file for each day."""
    records, _ = archive.logs
    records.commit(add=write_batch(archive, *units))


def write_batch(archive: Archive, *units: Any) -> list[DataFile]:
    """Write the files of a batch, and commit nothing; see `add_batch`."""
    records, _ = archive.logs
    with TaskFiles(records.where, f"{records.version + 1:08d}-part") as files:
        deque(write_days(iter(units), files, source=TOPIC_SOURCE), maxlen=0)
    return [*files.written.values()]


def append(archive: Archive, rows: Sequence[Mapping[str, Any]], source: str = TOPIC_SOURCE) -> Counts:
    """Add a batch as a capture does, which says how far it has read, or as an import."""
    ends: dict[int, int] = {}
    for row in rows:
        ends[row["partition"]] = max(row["offset"] + 1, ends.get(row["partition"], 0))
    noted = {log_of(one): end for one, end in ends.items()} if source == TOPIC_SOURCE else {source: 1}
    return archive.append(partial(run_task, iter([batch_of(rows)])), source, noted)


def selected_by(engine: Engine, archive: Archive, **what: Any) -> list[tuple[str, int, str, float]]:
    """The records that groups are read with, each once: group, offset, value, and hours since `NOON`."""
    return sorted({*engine.map_groups(archive, Selection(**what), _each).rows})


def _each(group: str, records: Iterator[ArchivedRecord], _: object) -> Iterator[tuple[str, int, str, float]]:
    for one in records:
        yield group, one.offset, (one.value or b"").decode(), (one.time_us - micros(NOON)) / 3.6e9


def offsets_in(archive: Archive) -> list[tuple[int, int]]:
    """Partition and offset of each row that the newest version has, those that only count among them."""
    there = Archive(archive.where.uri, archive.where.options, skip_bad=archive.skip_bad)
    rows = there.split(there.files(), ("partition", "offset"))(1).batches()
    return sorted((one["partition"], one["offset"]) for batch in rows for one in batch.to_pylist())
