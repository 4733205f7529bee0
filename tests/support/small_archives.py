"""Small archives that are written by Spark."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history._archive import TOPIC_SOURCE, Archive
from kafka_assignors.history._archive_format import log_of
from kafka_assignors.history._counts import Counts
from kafka_assignors.history._records import Selection, SparkError
from kafka_assignors.history._schemas import ARCHIVE
from kafka_assignors.history._spark import frame as spark_frame, reason, run_frame, spark_schema
from kafka_assignors.history._store.log import Log
from kafka_assignors.history._store.reading import source_of_files, through
from tests.support.archives import group, member, row
from tests.support.dumps import write_dump
from tests.support.kip848_log import Log as GroupLog, two_share

DAY = 86_400
"""An offset for each second."""


def add(spark: SparkSession, archive: Archive, rows: Sequence[Mapping[str, Any]]) -> Counts:
    """Append as a capture does: up to the last row's offset of partition 0 is read then."""
    frame = spark.createDataFrame(pa.Table.from_pylist([*rows], schema=ARCHIVE), spark_schema(ARCHIVE))
    in_days = partial(run_frame, frame.coalesce(1).sortWithinPartitions("partition", "offset"), ARCHIVE)
    return archive.append(in_days, TOPIC_SOURCE, {log_of(0): rows[-1]["offset"] + 1})


def read(
    spark: SparkSession,
    archive: Archive,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    groups: Sequence[str] = (),
) -> DataFrame:
    """The records that an archive keeps, in the schema ARCHIVE, as Spark's tasks read them."""
    selection = Selection(since=since, until=until, groups=groups, every_record=True, cut=True)
    with_group = pa.schema([*ARCHIVE, pa.field("group", pa.string())])
    split = archive.split(archive.files_of(selection), ARCHIVE.names)
    return spark_frame(spark, through(split, selection.of), with_group).drop("group")


def table_of(spark: SparkSession, log: Log, schema: pa.Schema) -> DataFrame:
    split = partial(source_of_files, where=log.where, files=log.files(), schema=schema)
    return spark_frame(spark, split, schema)


def opened(archive: Archive, options: Mapping[str, str] | None = None, *, skip_bad: bool = False) -> Archive:
    """As whoever opens it now sees it, with further options of its store."""
    return Archive(archive.where.uri, {**archive.where.options, **(options or {})}, skip_bad=skip_bad)


def offsets(rows: DataFrame) -> list[int]:
    return sorted(one["offset"] for one in rows.select("offset").collect())


def seen(spark: SparkSession, archive: Archive) -> tuple[list[int], dict[int, int]]:
    """Of an archive as it is now: its records' offsets, and up to where each partition was read."""
    now = opened(archive)
    return offsets(read(spark, now)), now.frontier()


def said_by(failing: Callable[[], object]) -> str:
    """What a job of Spark that fails ends with, in words."""
    with pytest.raises((PySparkException, SparkError)) as failed:
        failing()
    return reason(str(failed.value.args[0] if isinstance(failed.value, SparkError) else failed.value))


def generation(number: int, offset: int, *names: str) -> dict[str, Any]:
    """A record of the group orders, whose members share the six partitions of t in turn."""
    share = {name: {"t": [*range(at, 6, len(names))]} for at, name in enumerate(names)}
    value = group(number, *(member(name, assigned) for name, assigned in share.items()))
    return row(group_metadata_key("orders"), value, offset=offset)


def kip848_dump(path: Path) -> Path:
    """Twelve records of g, a group of KIP-848: a second member gets two partitions, nobody's for 2 s."""
    log = GroupLog()
    log.named("t")
    two_share(log, later=2)
    return write_dump(path, [one._replace(partition=7) for one in log.records])
