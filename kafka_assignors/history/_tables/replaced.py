"""Replacing the tables of a place together."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kafka_assignors.history._archive_format import tables_beside
from kafka_assignors.history._store.writing import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from kafka_assignors.history._store.log import DataFile
    from kafka_assignors.history._store.places import Place


class Replacement:
    """What replaces the tables of a place.

    Attributes:
        files: By table, its new files.
        counts: What the manifest is to say of them; how many rows each table has, if None.
    """

    def __init__(self) -> None:
        self.files: dict[str, list[DataFile]] = {}
        self.counts: Any = None

    def rows(self, table: str) -> int:
        """How many rows a table is to have."""
        return rows_of(self.files.get(table, ()))


@contextmanager
def replacing(where: Place, manifest: str, schemas: Mapping[str, pa.Schema]) -> Iterator[Replacement]:
    """Replace the tables of a place.

    Yields:
        To be filled with the new files. If anything fails meanwhile, they are removed.

    Raises:
        WrongPlaceError: The place is an archive, or there is something else where they are to be.
        TablesBusyError: Somebody else has replaced them meanwhile.
        StoreError: The store does not let them be written.
    """
    tables = tables_beside(where, manifest, schemas)
    new = Replacement()
    try:
        yield new
    except BaseException:
        where.remove([file.path for some in new.files.values() for file in some])
        raise
    counts = {name: new.rows(name) for name in schemas} if new.counts is None else new.counts
    tables.replace({name: new.files.get(name, []) for name in schemas}, counts)
    tables.clean_up()
