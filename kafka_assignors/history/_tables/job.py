"""From an archive to its tables, on Spark.

    <out>/tables.json            which folder is the whole one, and what is in it
    <out>/run-<id>/<table>/*.parquet

A run writes into a folder of its own, and ends by writing `tables.json`: whoever reads sees the tables of the
run before, or of this one, whole. It then removes what other runs had left when it began; one that had not
ended sees that its file `started` is gone.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from kafka_assignors.history._exchange import passed_over
from kafka_assignors.history._folders import (
    folders,
    move_files,
    read_text,
    remove_file,
    remove_folder,
    write_text,
)
from kafka_assignors.history._schemas import ARCHIVE, GENERATIONS, TABLES, TOPICS
from kafka_assignors.history._spark_schema import spark_schema
from kafka_assignors.history._tables.between import MIXED, moves_in_order, write_between
from kafka_assignors.history._tables.files import write_empty
from kafka_assignors.history._tables.sink import (
    ALL_MOVES,
    EACH_GENERATION,
    REPEATED,
    RUNS_OF_GROUPS,
    choose,
    write_decoded,
    write_table,
)
from kafka_assignors.history._tables.sources import records_of, source_of_archive, source_of_rows
from kafka_assignors.history._tables.topic_names import topic_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from kafka_assignors.history._tables.sources import Source

    Watch = Callable[[str], AbstractContextManager[Any]]

MANIFEST: Final = "tables.json"
_FORMAT: Final = 1
_RUN: Final = re.compile(r"run-[0-9a-f]{32}")
_STARTED: Final = "started"
_BATCH_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_BYTES: Final = "2m"


class TablesBusyError(RuntimeError):
    """Somebody else made tables in the same folder at the same time, and ended first."""


class NoTablesError(LookupError):
    """There are no tables in a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCounts:
    """What came of an archive.

    Attributes:
        read: How many records were read, without those of which the archive tells only how many there were.
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
    archive: DataFrame | str,
    out: str,
    *,
    decoder: str = "auto",
    topics: DataFrame | None = None,
    watch: Watch | None = None,
) -> TableCounts:
    """Decode an archive into the tables of `schemas.TABLES`; what is in the folder already is replaced whole.

    Args:
        spark: The session.
        archive: An archive's folder, as a path or URI that Spark and Arrow both can read; or rows in schema
            ARCHIVE, which takes more time.
        out: The folder of the tables: a path or URI that Spark and Arrow both can write to.
        decoder: "fast"; "plain", which takes longer and needs no compiler; "auto", the first that is there.
        topics: Topics in schema TOPICS, for the records of KIP-848, which name topics by id. Those of the
            archive's folder are known without.
        watch: Called with what is to be done next, and entered while it is done.

    Returns:
        How many records and rows there were: `decoded` and `rejected` make up `read`.

    Raises:
        ValueError: There is no such decoder.
        TablesBusyError: See there; the folder has the other's tables.
    """
    decoder = choose(decoder)
    watched = watch or (lambda _: nullcontext())
    source = source_of_archive(spark, archive) if isinstance(archive, str) else source_of_rows(archive)
    # Listed later, so that nothing is decoded whose topics were not there yet.
    records = _records(spark, archive)
    others = [name for name in folders(out) if _RUN.fullmatch(name)]
    run = f"run-{uuid4().hex}"
    folder = posixpath.join(out, run)
    write_text(folder, _STARTED, "")
    with _undone(out, run):
        with watched("looking up the names of topics"):
            names = topic_names(records, [topics, _topics(spark, archive)])
        with watched("decoding records"), _small_batches(spark):
            written = write_decoded(source, folder, decoder=decoder, names=names)
        rows = Counter(written.rows)
        with watched("joining what tasks saw apart"):
            if rows[RUNS_OF_GROUPS]:
                rows.update(write_between(_read(spark, folder, RUNS_OF_GROUPS), folder))
        with watched("putting generations together"):
            rows["generations"] = _write_generations(spark, folder, rows)
        with watched("putting moves in order"):
            if rows[MIXED]:
                rows["moves"] = _write_moves(spark, source, folder, rows, decoder)
        for name in (EACH_GENERATION, RUNS_OF_GROUPS, REPEATED, MIXED):
            remove_folder(folder, name)
        for name, schema in TABLES.items():
            if not rows[name]:
                write_empty(folder, name, schema)
        counts = TableCounts(
            read=written.read,
            decoded=rows["records"],
            rejected=rows["rejected"],
            rows={name: rows[name] for name in TABLES},
        )
        _check_started(out, run)
        write_text(out, MANIFEST, json.dumps({"format": _FORMAT, "folder": run, "counts": asdict(counts)}))
    remove_file(folder, _STARTED)
    for other in others:
        remove_folder(out, other)
    return counts


def read_table(spark: SparkSession, out: str, name: str) -> DataFrame:
    """One of the tables in a folder.

    Raises:
        NoTablesError: There are none in the folder.
        ValueError: There is no table of that name.
    """
    if name not in TABLES:
        raise ValueError(f"there is no table {name!r}, only {', '.join(TABLES)}")
    return spark.read.parquet(posixpath.join(out, _manifest(out)["folder"], name))


def read_counts(out: str) -> TableCounts:
    """What `make_tables` returned when it made the tables in a folder.

    Raises:
        NoTablesError: There are none.
    """
    return TableCounts(**_manifest(out)["counts"])


@contextmanager
def _undone(out: str, run: str) -> Iterator[None]:
    """If it fails, its folder is removed; which may be why it does."""
    try:
        try:
            yield
        except Exception:
            _check_started(out, run)
            raise
    except BaseException:
        remove_folder(out, run)
        raise


def _check_started(out: str, run: str) -> None:
    if read_text(posixpath.join(out, run), _STARTED) is None:
        raise TablesBusyError(
            f"another run has put its tables into {out} meanwhile, and removed these: run one at a time"
        )


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


def _manifest(out: str) -> dict[str, Any]:
    text = read_text(out, MANIFEST)
    if text is None:
        raise NoTablesError(f"there are no tables in {out}: it has no {MANIFEST}, which make_tables writes")
    manifest: dict[str, Any] = json.loads(text)
    if manifest["format"] != _FORMAT:
        raise NoTablesError(
            f"the tables in {out} are of format {manifest['format']}, and only {_FORMAT} is known: "
            "make them again"
        )
    return manifest


def _records(spark: SparkSession, archive: DataFrame | str) -> DataFrame:
    if isinstance(archive, str):
        old = passed_over(archive)
        archive = spark.read.schema(spark_schema(ARCHIVE)).parquet(records_of(archive))
        if old:
            archive = archive.where(~F.col("batch").cast("string").isin(*old))
    return archive.select(ARCHIVE.names)


def _topics(spark: SparkSession, archive: DataFrame | str) -> DataFrame | None:
    if not isinstance(archive, str) or "topics" not in folders(archive):
        return None
    return spark.read.schema(spark_schema(TOPICS)).parquet(posixpath.join(archive, "topics"))


def _read(spark: SparkSession, folder: str, name: str) -> DataFrame:
    return spark.read.parquet(posixpath.join(folder, name))


def _write_generations(spark: SparkSession, folder: str, rows: Mapping[str, int]) -> int:
    """One row of each generation out of one for each record."""
    if not rows[REPEATED]:
        if rows[EACH_GENERATION]:
            move_files(folder, EACH_GENERATION, "generations")
        return rows[EACH_GENERATION]
    each, repeated = _read(spark, folder, EACH_GENERATION), _read(spark, folder, REPEATED).distinct()
    once = each.join(repeated, "group", "left_anti").select(GENERATIONS.names)
    merged = _merged(each.join(repeated, "group", "left_semi"))
    return write_table(once.unionByName(merged), folder, "generations")


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


def _write_moves(
    spark: SparkSession, source: Source, folder: str, rows: Mapping[str, int], decoder: str
) -> int:
    """Of groups whose runs lie inside of each other nothing counts that was found so far."""
    mixed = _read(spark, folder, MIXED).distinct()
    moves = moves_in_order(source, mixed, decoder)
    if rows["moves"]:
        found = _read(spark, folder, "moves")
        moves = moves.unionByName(found.join(mixed, "group", "left_anti"))
    count = write_table(moves, folder, ALL_MOVES)
    remove_folder(folder, "moves")
    move_files(folder, ALL_MOVES, "moves")
    return count
