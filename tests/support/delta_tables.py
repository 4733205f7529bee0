"""Delta tables: as other engines find them, by the log alone and plain Parquet, and as this package does."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from kafka_assignors.history._archive import Archive
from kafka_assignors.history._metrics import MANIFEST, SCHEMAS
from kafka_assignors.history._schemas import TABLES
from kafka_assignors.history._store.location import locate
from kafka_assignors.history._store.log import Log
from kafka_assignors.history._store.reading import Part, read_parts
from kafka_assignors.history._tables.job import read_table
from kafka_assignors.history._tables.replaced import read_versions


def files_of(table: Path | str, version: int | None = None) -> list[Path]:
    """The files of a version; of the newest by default."""
    return [Path(path) for path in DeltaTable(str(table), version).file_uris()]


def versions_of(table: Path | str) -> list[list[Path]]:
    return [files_of(table, version) for version in range(DeltaTable(str(table)).version() + 1)]


def rows_of(
    table: Path | str, schema: pa.Schema, options: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """The rows of the newest version, whose log and files all have the columns of a schema."""
    delta = DeltaTable(str(table), storage_options=dict(options or {}))
    assert [field.name for field in delta.schema().fields] == schema.names
    files = locate(table, options).files()
    rows = []
    for path in pa.table(delta.get_add_actions())["path"].to_pylist():
        with files.open_input_file(path) as opened, pq.ParquetFile(opened) as file:
            assert file.schema_arrow.names == schema.names
            rows += file.read().cast(schema).to_pylist()
    return rows


HISTORY = [
    "archive/records",
    *(f"tables/{name}" for name in TABLES),
    *(f"metrics/{name}" for name in SCHEMAS),
]
"""The tables of a place with an archive, its tables and its metrics."""


def read_by_us(where: str, name: str, options: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """The rows of a table of `HISTORY`, as this package reads them."""
    kind, _, table = name.partition("/")
    if kind == "archive":
        archive = Archive(f"{where}/archive", options)
        batches = archive.split(archive.files())(1).batches()
    elif kind == "tables":
        batches = read_table(f"{where}/tables", table, options)
    else:
        versions = read_versions(locate(f"{where}/metrics", options), MANIFEST)
        log = Log(locate(f"{where}/metrics/{table}", options), versions[table])
        batches = read_parts(log.where, map(Part, log.files()), SCHEMAS[table])
    return [row for batch in batches for row in batch.to_pylist()]


def in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=repr)


def rounded(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """In one order; and floats, whose sums depend on the order, in whole microseconds."""
    return in_order(
        {name: round(cell, 6) if isinstance(cell, float) else cell for name, cell in row.items()}
        for row in rows
    )
