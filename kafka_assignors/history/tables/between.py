"""Moves between the runs of a group, which tasks saw apart from each other; see `tracker`.

Runs that lie one after the other need no more than their ends. Where one lies inside of another, as with
records that were archived twice, the group's records are put in order and followed from the beginning.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from kafka_assignors.history.tables import fast, plain
from kafka_assignors.history.tables.decoded import CLASSIC
from kafka_assignors.history.tables.files import units
from kafka_assignors.history.tables.owners import as_bytes
from kafka_assignors.history.tables.sink import UNITS, as_archived
from kafka_assignors.history.tables.tracker import Tracker, moves_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

_GROUP_METADATA = 2
_OWNERS_DDL = "`group` string, partition int, offset bigint, time timestamp, generation int, owners binary"
_MOVES_DDL = (
    "`group` string, partition int, offset bigint, time timestamp, generation int, topic string, "
    "moved_partition int, source string, target string, before int"
)


def mixed_groups(runs: DataFrame) -> DataFrame:
    """The groups with runs inside of each other, in column `group`."""
    earlier = (
        Window.partitionBy("group")
        .orderBy("partition", "offset", "last_partition", "last_offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    until = F.max(F.struct("last_partition", "last_offset")).over(earlier)
    narrow = runs.select(
        "group", "partition", "offset", "last_partition", "last_offset", until.alias("until")
    )
    begins = F.struct(F.col("partition").alias("last_partition"), F.col("offset").alias("last_offset"))
    return narrow.where(F.col("until") >= begins).select("group").distinct()


def moves_between(runs: DataFrame) -> DataFrame:
    """The moves from the last record of each run to the first of the next, of groups that are not mixed."""
    before = Window.partitionBy("group").orderBy("partition", "offset")
    is_single = F.expr("last_partition = partition AND last_offset = offset")
    last_owners = F.when(is_single, F.col("owners")).otherwise(F.col("last_owners"))
    pairs = runs.select(
        "group",
        "partition",
        "offset",
        "time",
        "generation",
        "owners",
        F.lag("last_generation").over(before).alias("before_generation"),
        F.lag(last_owners).over(before).alias("before_owners"),
    ).where("owners IS NOT NULL AND before_owners IS NOT NULL")
    return pairs.mapInArrow(_between, _MOVES_DDL)


def moves_in_order(records: DataFrame, groups: DataFrame, decoder: str) -> DataFrame:
    """The moves of whole groups, from the archive.

    Args:
        records: Rows in schema ARCHIVE.
        groups: The groups, in column `group`.
        decoder: "fast" or "plain".
    """
    owners = records.where(F.col("type") == _GROUP_METADATA).mapInArrow(
        partial(_owners, decoder=decoder), _OWNERS_DDL
    )
    ordered = (
        owners.join(groups, "group", "left_semi")
        .dropDuplicates(["partition", "offset"])
        .repartition("group")
        .sortWithinPartitions("group", "partition", "offset")
    )
    return ordered.mapInArrow(_in_order, _MOVES_DDL)


def _between(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        generations = batch["before_generation"].to_pylist()
        before, after = batch["before_owners"].to_pylist(), batch["owners"].to_pylist()
        pairs = [*enumerate(generations)]
        yield moves_of(batch, pairs, before, after, fast=fast.is_compiled())


def _owners(batches: Iterator[Any], *, decoder: str) -> Iterator[Any]:
    decode = fast.decode if decoder == "fast" else plain.decode
    for unit in units(map(as_archived, batches), UNITS[decoder]):
        decoded, owners = decode(unit, {})
        records = decoded["classic"].cast(CLASSIC)
        told = pa.array([None if one is None else as_bytes(one) for one in owners], pa.binary())
        yield records.append_column("owners", told)


def _in_order(batches: Iterator[Any]) -> Iterator[Any]:
    tracker = Tracker()
    for batch in batches:
        yield tracker.add(batch, batch["owners"].to_pylist())
