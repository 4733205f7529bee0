"""From an archive to its tables, on Spark.

    <out>/tables.json                    which versions of the tables belong together, and what is in them
    <out>/<table>/_delta_log/            one Delta table each
    <out>/<table>/part-*.parquet
    <out>/_work-<time>-<id>/             what a run needs until it is done

Readers that go by tables.json see the tables of one run, whole, even if others are made meanwhile.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from kafka_assignors.history._archive import Archive
from kafka_assignors.history._archive_format import tables_beside
from kafka_assignors.history._schemas import ARCHIVE, GENERATIONS, TABLES, TOPICS
from kafka_assignors.history._spark_schema import spark_schema
from kafka_assignors.history._store.log import Log
from kafka_assignors.history._store.places import place
from kafka_assignors.history._store.reading import frame_of_files, source_of_rows
from kafka_assignors.history._store.sets import KEPT_HOURS, read_set
from kafka_assignors.history._tables.between import moves_in_order, write_between
from kafka_assignors.history._tables.sink import (
    ALL_MOVES,
    EACH_GENERATION,
    MIXED,
    REPEATED,
    RUNS_OF_GROUPS,
    Made,
    choose,
)
from kafka_assignors.history._tables.topic_names import PARTITION_METADATA, topic_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from kafka_assignors.history._store.places import Place
    from kafka_assignors.history._store.reading import Source
    from kafka_assignors.history._store.sets import TableSet

    Watch = Callable[[str], AbstractContextManager[Any]]

MANIFEST: Final = "tables.json"
_WORK: Final = "_work-"
_WORK_OF_RUN: Final = re.compile(rf"{_WORK}\d{{8}}T\d{{6}}-[0-9a-f]{{32}}")
_BATCH_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_BYTES: Final = "2m"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCounts:
    """What came of an archive.

    Attributes:
        read: How many records were read, without those that the archive only counts.
        decoded: How many of them were decoded.
        rejected: How many were not what their keys say.
        rows: How many rows there are, by table.
    """

    read: int
    decoded: int
    rejected: int
    rows: Mapping[str, int]


def make_tables(
    spark: SparkSession,
    archive: Archive | DataFrame | str | PathLike[str],
    out: str | PathLike[str],
    *,
    decoder: str = "auto",
    topics: DataFrame | None = None,
    options: Mapping[str, str] | None = None,
    watch: Watch | None = None,
) -> TableCounts:
    """Decode an archive into the tables of `schemas.TABLES`; what is in the folder already is replaced whole.

    Args:
        spark: The session.
        archive: An archive, or where it is; or rows in schema ARCHIVE, which takes more time.
        out: The folder of the tables: a path, or a URI in an object store.
        decoder: "fast"; "plain", which takes longer and needs no compiler; "auto", the first that is there.
        topics: Topics in schema TOPICS, for the records of KIP-848, which name topics by id. Those of the
            archive are known without.
        options: Of the store of `out`, and of an archive that is named; see `Archive`.
        watch: Called with what is to be done next, and entered while it is done.

    Returns:
        How many records and rows there were: `decoded` and `rejected` make up `read`.

    Raises:
        ValueError: There is no such decoder.
        WrongPlaceError: No store is of the scheme of a URI; the folder is an archive, or has files of others
            where the tables are to be.
        WrongArchiveError: It is no archive.
        StoreError: A store does not let it be read, or the tables be written.
        TablesBusyError: See there; the folder has the other's tables.
    """
    decoder = choose(decoder)
    watched = watch or (lambda _: nullcontext())
    where = place(out, options)
    tables = tables_at(where)
    records = _opened(archive, options)
    others = _left_over(where)
    made = Made(where, f"{_begun(datetime.now(UTC))}-{uuid4().hex}")
    with _undone(made):
        with watched("looking up the names of topics"):
            names = _topic_names(spark, records, topics)
        source = _source(spark, records)
        with watched("decoding records"), _small_batches(spark):
            read = made.write_decoded(source, decoder=decoder, names=names)
        with watched("joining what tasks saw apart"):
            if made.rows(RUNS_OF_GROUPS):
                write_between(made.read(spark, RUNS_OF_GROUPS), made)
        with watched("putting generations together"):
            _put_generations_together(spark, made)
        with watched("putting moves in order"):
            if made.rows(MIXED):
                _put_moves_in_order(spark, source, made, decoder)
    counts = TableCounts(
        read=read,
        decoded=made.rows("records"),
        rejected=made.rows("rejected"),
        rows={name: made.rows(name) for name in TABLES},
    )
    made.discard(RUNS_OF_GROUPS, REPEATED, MIXED)
    where.remove_folders([made.work])
    tables.replace({name: made.files.get(name, []) for name in TABLES}, asdict(counts))
    where.remove_folders(others)
    tables.clean_up()
    return counts


def tables_at(where: Place) -> TableSet:
    """The tables of a place, to be replaced; see `tables_beside`."""
    return tables_beside(where, MANIFEST, TABLES)


def read_table(
    spark: SparkSession,
    out: str | PathLike[str],
    name: str,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """One of the tables in a folder, as it is now: what is made later is not seen.

    Raises:
        NoTablesError: There are none in the folder.
        ValueError: There is no table of that name.
        StoreError: The store does not let it be read.
    """
    if name not in TABLES:
        raise ValueError(f"there is no table {name!r}, only {', '.join(TABLES)}")
    where = place(out, options)
    versions, _ = read_set(where, MANIFEST)
    log = Log(where / name, versions[name])
    return frame_of_files(spark, log.where, log.files(), TABLES[name])


def read_counts(out: str | PathLike[str], options: Mapping[str, str] | None = None) -> TableCounts:
    """What `make_tables` returned when it made the tables in a folder.

    Raises:
        NoTablesError: There are none.
    """
    return TableCounts(**read_set(place(out, options), MANIFEST)[1])


def _opened(
    archive: Archive | DataFrame | str | PathLike[str], options: Mapping[str, str] | None
) -> Archive | DataFrame:
    return Archive(archive, options) if isinstance(archive, (str, PathLike)) else archive


def _source(spark: SparkSession, records: Archive | DataFrame) -> Source:
    return records.source(spark) if isinstance(records, Archive) else source_of_rows(records, ARCHIVE)


def _topic_names(
    spark: SparkSession, records: Archive | DataFrame, topics: DataFrame | None
) -> dict[str, str]:
    if not isinstance(records, Archive):
        return topic_names(records, [topics])
    seen = spark.createDataFrame(records.topics(), spark_schema(TOPICS))
    rows = records.rows(spark) if records.may_have(PARTITION_METADATA) else None
    return topic_names(rows, [topics, seen])


@contextmanager
def _undone(made: Made) -> Iterator[None]:
    """If it fails, what was written is removed."""
    try:
        yield
    except BaseException:
        made.discard(*made.files)
        made.where.remove_folders([made.work])
        raise


def _begun(moment: datetime) -> str:
    """What the names of folders begin with of runs that began at a moment; in their order."""
    return f"{_WORK}{moment:%Y%m%dT%H%M%S}"


def _left_over(where: Place) -> list[str]:
    """The folders of runs that began so long ago that they have been ended."""
    long_ago = _begun(datetime.now(UTC) - timedelta(hours=KEPT_HOURS))
    return [name for name in where.names() if _WORK_OF_RUN.fullmatch(name) and name < long_ago]


@contextmanager
def _small_batches(spark: SparkSession) -> Iterator[None]:
    """Records go to the workers in batches that fit into caches: Spark's 64 MB take twice the CPU."""
    before = spark.conf.get(_BATCH_BYTES)
    assert before is not None  # noqa: S101 - it has a default
    spark.conf.set(_BATCH_BYTES, _BYTES)
    try:
        yield
    finally:
        spark.conf.set(_BATCH_BYTES, before)


def _put_generations_together(spark: SparkSession, made: Made) -> None:
    """One row of each generation out of one for each record."""
    if not made.rows(REPEATED):
        made.rename(EACH_GENERATION, "generations")
        return
    each, repeated = made.read(spark, EACH_GENERATION), made.read(spark, REPEATED).distinct()
    once = each.join(repeated, "group", "left_anti").select(GENERATIONS.names)
    merged = _merged(each.join(repeated, "group", "left_semi"))
    made.write_table(once.unionByName(merged), "generations")
    made.discard(EACH_GENERATION)


def _merged(each: DataFrame) -> DataFrame:
    """The last row of each generation, with how many there are, and the time of the first."""
    first = ("partition", "offset")
    rest = [name for name in GENERATIONS.names if name not in {*first, "group", "generation"}]
    last = each.groupBy("group", "generation").agg(
        F.max(F.struct(*first, *rest)).alias("last"),
        F.sum("records").cast("int").alias("count"),
        F.min("first_time").alias("began"),
    )
    columns = {"group": F.col("group"), "generation": F.col("generation")}
    columns |= {name: F.col(f"last.{name}") for name in (*first, *rest)}
    columns |= {"records": F.col("count"), "first_time": F.col("began")}
    return last.select([columns[name].alias(name) for name in GENERATIONS.names])


def _put_moves_in_order(spark: SparkSession, source: Source, made: Made, decoder: str) -> None:
    """Of groups whose runs lie inside of each other nothing counts that was found so far."""
    mixed = made.read(spark, MIXED).distinct()
    moves = moves_in_order(source, mixed, decoder)
    if made.rows("moves"):
        moves = moves.unionByName(made.read(spark, "moves").join(mixed, "group", "left_anti"))
    made.write_table(moves, ALL_MOVES)
    made.discard("moves")
    made.rename(ALL_MOVES, "moves")
