"""Archives in folders, of rows made by hand: without Spark, by what its tasks do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_assignors.history._archive import TOPIC_SOURCE, Archive, write_days
from kafka_assignors.history._store.writing import TaskFiles
from tests.support.archives import batch_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from kafka_assignors.history._store.log import DataFile


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
    with TaskFiles(records.where, f"{records.version + 1:08d}-part", compression="zstd") as files:
        write_days(iter(units), files, source=TOPIC_SOURCE)
    return [*files.written.values()]
