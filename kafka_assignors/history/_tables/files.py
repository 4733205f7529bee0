"""The Parquet files that one task writes, and where they lie until the job is done.

<folder>/_attempts/<name>/<table>.parquet   while the task runs
<folder>/<table>/<name>.parquet             once the job is committed
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_assignors.history._folders import open_folder, remove

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

ATTEMPTS: Final = "_attempts"

_COMPRESSION: Final = "snappy"
"""As Spark does it. zstd takes a third more CPU for the whole writing, and half the room."""
_FIND_BY: Final = ("group", "partition", "offset", "time", "generation")
"""Columns whose least and greatest values are told for each row group, so that readers can pass over it."""
_LEAST_ROWS: Final = 50_000
_MOST_WAITING: Final = 16 * 2**20
"""Bytes of rows that wait for their row group to have enough of them."""


def units(batches: Iterable[Any], size: int) -> Iterator[Any]:
    """Put small batches together and cut large ones up, to some of about so many bytes each."""
    waiting: list[Any] = []
    waits = 0
    for batch in batches:
        rows = max(1, batch.num_rows * size // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, rows):
            part = batch.slice(start, rows)
            waiting.append(part)
            waits += part.nbytes
            if waits >= size:
                yield _combined(waiting)
                waiting, waits = [], 0
    if waiting:
        yield _combined(waiting)


def _combined(batches: list[Any]) -> Any:
    if len(batches) == 1:
        return batches[0]
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch


class TableFiles:
    """Writes one file for each table that has rows, while it is entered.

    Args:
        folder: The folder of the tables, as a path or URI.
        name: What the files are to be called; nobody else's.
        wide: Tables that get a row group of each batch; others' rows are collected first, so that row groups
            are not too small.
    """

    def __init__(self, folder: str, name: str, *, wide: frozenset[str]) -> None:
        self._filesystem, self._folder = open_folder(folder)
        self._name = name
        self._wide = wide
        self._writers: dict[str, Any] = {}
        self._waiting: dict[str, list[Any]] = {}
        self.rows: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            for table in [*self._waiting]:
                self._write_waiting(table)
        for writer in self._writers.values():
            writer.close()
        if kind is not None:
            remove(self._filesystem, posixpath.join(self._folder, ATTEMPTS, self._name))

    def write(self, table: str, schema: Any, batch: Any) -> None:
        """Add rows to a table; strings of the batch can be dictionary-encoded."""
        if batch.num_rows == 0:
            return
        self.rows[table] = self.rows.get(table, 0) + batch.num_rows
        if table in self._wide:
            self._write(table, batch)
            return
        waiting = self._waiting.setdefault(table, [])
        waiting.append(batch.cast(schema))
        if (
            sum(one.num_rows for one in waiting) >= _LEAST_ROWS
            or sum(one.nbytes for one in waiting) >= _MOST_WAITING
        ):
            self._write_waiting(table)

    def _write_waiting(self, table: str) -> None:
        self._write(table, _combined(self._waiting.pop(table)))

    def _write(self, table: str, batch: Any) -> None:
        writer = self._writers.get(table)
        if writer is None:
            folder = posixpath.join(self._folder, ATTEMPTS, self._name)
            self._filesystem.create_dir(folder)
            # Of dictionary-encoded strings no reader needs to know.
            writer = self._writers[table] = pq.ParquetWriter(
                posixpath.join(folder, f"{table}.parquet"),
                batch.schema,
                filesystem=self._filesystem,
                compression=_COMPRESSION,
                # Of numbers a dictionary takes more time than it saves room.
                use_dictionary=[path for field in batch.schema for path in _text_columns(field)],
                write_statistics=[name for name in _FIND_BY if name in batch.schema.names],
                store_schema=False,
            )
        if batch.schema != writer.schema:
            batch = batch.cast(writer.schema)
        writer.write_batch(batch, row_group_size=batch.num_rows)


def _text_columns(field: Any) -> list[str]:
    """The column in Parquet that a field's strings are in, if it has any."""
    is_list = pa.types.is_list(field.type)
    kind = field.type.value_type if is_list else field.type
    if not pa.types.is_string(kind) and not pa.types.is_dictionary(kind):
        return []
    return [f"{field.name}.list.{field.type.value_field.name}" if is_list else field.name]


def commit(folder: str, files: Iterable[tuple[str, str]]) -> None:
    """Move files of tasks to their tables, and remove what other attempts left.

    Args:
        folder: The folder of the tables.
        files: Table and name of each.
    """
    filesystem, path = open_folder(folder)
    for table, name in files:
        filesystem.create_dir(posixpath.join(path, table))
        filesystem.move(
            posixpath.join(path, ATTEMPTS, name, f"{table}.parquet"),
            posixpath.join(path, table, f"{name}.parquet"),
        )
    abort(folder)


def abort(folder: str) -> None:
    """Remove whatever attempts left."""
    filesystem, path = open_folder(folder)
    remove(filesystem, posixpath.join(path, ATTEMPTS))


def write_empty(folder: str, table: str, schema: Any) -> None:
    """Write a table without rows, so that there is something to read."""
    filesystem, path = open_folder(folder)
    filesystem.create_dir(posixpath.join(path, table))
    name = posixpath.join(path, table, "part-empty.parquet")
    pq.write_table(schema.empty_table(), name, filesystem=filesystem, store_schema=False)
