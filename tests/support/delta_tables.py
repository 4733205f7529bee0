"""Delta tables as other engines find them: by the log alone, and plain Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable


def files_of(table: Path | str, version: int | None = None) -> list[Path]:
    """The files of a version; of the newest by default."""
    return [Path(path) for path in DeltaTable(str(table), version).file_uris()]


def versions_of(table: Path | str) -> list[list[Path]]:
    """The files of each version."""
    return [files_of(table, version) for version in range(DeltaTable(str(table)).version() + 1)]


def rows_of(table: Path | str, schema: pa.Schema) -> list[dict[str, Any]]:
    """The rows of the newest version, whose log and files all have the columns of a schema."""
    assert [field.name for field in DeltaTable(str(table)).schema().fields] == schema.names
    rows = []
    for path in files_of(table):
        with pq.ParquetFile(path) as file:
            assert file.schema_arrow.names == schema.names
            rows += file.read().cast(schema).to_pylist()
    return rows
