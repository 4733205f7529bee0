"""Replacing the tables of a place together."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from kafka_assignors.history._archive_format import DESCRIPTION
from kafka_assignors.history._store.location import WrongPlaceError
from kafka_assignors.history._store.sets import TableSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from kafka_assignors.history._store.location import Location


@contextmanager
def replacing(where: Location, manifest: str, schemas: Mapping[str, pa.Schema]) -> Iterator[TableSet]:
    """Replace the tables of a place, which are never in an archive.

    Yields:
        To be given the new files. If anything fails meanwhile, they are removed.
    """
    if where.read_text(DESCRIPTION) is not None:
        raise WrongPlaceError(f"{where} is an archive, and its tables go elsewhere: name another folder")
    tables = TableSet(where, manifest, schemas)
    try:
        yield tables
        tables.replace()
    except BaseException:
        tables.remove_files()
        raise
    tables.clean_up()
