"""The Spark job that measures groups: from an archive's records to the tables REBALANCES and GROUPS.

A task holds one group's state and one piece of what it found. Long histories of classic groups are cut into
windows, which go to several tasks: see `pieces`. Those of KIP-848 are not, as each of their records holds
only a part of the group.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import from_arrow_schema

from kafka_assignors.history._chain import of_each_group
from kafka_assignors.history._metrics_tables import SCHEMAS, replacing, tables_at
from kafka_assignors.history._pieces import PIECES, add_up, measure_window
from kafka_assignors.history._schemas import GROUPS
from kafka_assignors.history._store.places import place
from kafka_assignors.history._store.writing import TaskFiles, copy_rows, write_files

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from kafka_assignors._groups.topics import SeenTopic

WINDOW: Final = 2_000
"""How many records a window of a long history has."""

_ROWS: Final = 256  # that are made of Arrow's columns at once


def write_metrics(
    records: DataFrame,
    topics: Sequence[SeenTopic],
    out: str | os.PathLike[str],
    options: Mapping[str, str] | None = None,
) -> None:
    """Measure all groups, and write the tables `rebalances` and `groups`.

    Args:
        records: See `measure`.
        topics: See `measure`.
        out: The folder of the tables, or their URI in an object store; those that are there are replaced.
        options: Of the store; see `Archive`.

    Raises:
        WrongPlaceError: No store is of the scheme of the URI; the folder is an archive, or has files of
            others where the tables are to be.
        TablesBusyError: Somebody else has replaced them meanwhile.
        StoreError: The store does not let them be written.
    """
    tables_at(place(out, options))  # a wrong one is refused before anything is read
    pieces = measure(records, topics).persist(StorageLevel.DISK_ONLY)
    try:
        write_pieces(pieces, out, options)
    finally:
        pieces.unpersist()


def write_pieces(
    pieces: DataFrame, out: str | os.PathLike[str], options: Mapping[str, str] | None = None
) -> None:
    """Write what was measured as the tables `rebalances` and `groups`; see `write_metrics`."""
    where = place(out, options)
    with replacing(where) as files:
        for name, rows in (("rebalances", rebalances_of(pieces)), ("groups", groups_of(pieces))):
            copy = partial(copy_rows, table=name, schema=SCHEMAS[name])
            files.update(write_files(rows, partial(TaskFiles, where), copy).files)


def measure(records: DataFrame, topics: Sequence[SeenTopic] = (), *, window: int = WINDOW) -> DataFrame:
    """Measure all groups.

    How many records each group has is looked up at once, the rest when the result is used.

    Args:
        records: Records in schema ARCHIVE with a column `group`. Those without a key or a group are left out.
            A record that is there twice counts once.
        topics: The cluster's topics, as `Archive.topics` gives them.
        window: How many records of a classic group are measured in one go.

    Returns:
        Pieces, in schema PIECES; see `rebalances_of` and `groups_of`. It is worth persisting.
    """
    return of_each_group(records, measure_window(topics), PIECES, window=window)


def rebalances_of(pieces: DataFrame) -> DataFrame:
    """The table REBALANCES."""
    return pieces.select(F.explode("rebalances").alias("one")).select("one.*")


def groups_of(pieces: DataFrame) -> DataFrame:
    """The table GROUPS."""

    def groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in add_up(_rows(batches)):
            yield pa.RecordBatch.from_pylist([row], schema=GROUPS)

    small = pieces.drop("rebalances").withColumns({name: F.unix_micros(name) for name in ("since", "until")})
    ordered = small.repartition("group").sortWithinPartitions("group", "window", "number")
    return ordered.mapInArrow(groups, from_arrow_schema(GROUPS))


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for begin in range(0, batch.num_rows, _ROWS):
            yield from batch.slice(begin, _ROWS).to_pylist()
