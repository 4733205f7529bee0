"""The tables `rebalances` and `groups`, for each way of measuring."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kafka_assignors.history._archive_format import tables_beside
from kafka_assignors.history._schemas import GROUPS, REBALANCES
from kafka_assignors.history._store.writing import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.history._store.log import DataFile
    from kafka_assignors.history._store.places import Place
    from kafka_assignors.history._store.sets import TableSet

MANIFEST: Final = "metrics.json"
SCHEMAS: Final = {"rebalances": REBALANCES, "groups": GROUPS}


def tables_at(where: Place) -> TableSet:
    """The tables of a place, to be replaced; see `tables_beside`."""
    return tables_beside(where, MANIFEST, SCHEMAS)


@contextmanager
def replacing(where: Place) -> Iterator[dict[str, list[DataFile]]]:
    """Replace the tables of a place.

    Yields:
        To be filled with the new files of each table. If anything fails meanwhile, they are removed.

    Raises:
        WrongPlaceError: The place is an archive, or there is something else where they are to be.
        TablesBusyError: Somebody else has replaced them meanwhile.
        StoreError: The store does not let them be written.
    """
    tables = tables_at(where)
    files: dict[str, list[DataFile]] = {}
    try:
        yield files
    except BaseException:
        where.remove([file.path for some in files.values() for file in some])
        raise
    tables.replace(files, {name: rows_of(some) for name, some in files.items()})
    tables.clean_up()
