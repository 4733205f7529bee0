"""Dumps of the offsets topic into an archive: files of Parquet, or of JSON objects, one a line.

Both have the columns key, value, partition, offset and timestamp, and may have leader_epoch. A timestamp is
milliseconds since 1970, as Kafka has it, or a time: of Parquet's own type, or ISO 8601 in JSON. Keys and
values are bytes in Parquet, and in JSON base64; null where the record has none.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - its common name
from pyspark.sql.types import BinaryType, IntegralType, StringType, TimestampNTZType, TimestampType

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.times import FIRST_MS, LAST_MS
from kafka_assignors.history import _limits as limits
from kafka_assignors.history._counts import NO_TYPE, Counts
from kafka_assignors.history._schemas import ARCHIVE, KEPT_TYPES
from kafka_assignors.history._spark import frame, run_frame
from kafka_assignors.history._store.location import locate
from kafka_assignors.history._store.log import ConflictError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

    from kafka_assignors.history._archive import Archive

_COLUMNS: Final = ("key", "value", "partition", "offset", "timestamp")
_PARQUET: Final = ".parquet"
_JSON: Final = (".jsonl", ".json", ".ndjson")
_DELTA: Final = "_delta_log"  # JSON of a table's own, which is no record
_GLOB: Final = re.compile(r"[\[\]{}*?\\]")  # what Spark takes for a pattern in the names of files
_CHUNK: Final = 1 << 20
_SHOWN: Final = 200  # letters of a line that is wrong


class WrongDumpError(KafkaAssignorsError, ValueError):
    """A dump cannot be read; the message says what is wrong in it."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What an import did.

    Attributes:
        source: What the dump's records are called in the archive: by its content.
        counts: How many records it added, by type.
        known: How many of the kept records the archive had already.
    """

    source: str
    counts: Counts
    known: int

    def to_json(self) -> dict[str, Any]:
        """For machines: the counts beside the others."""
        return {"source": self.source, "known": self.known, **self.counts.to_json()}


def import_dump(spark: SparkSession, path: Path | str, archive: Archive) -> Imported:
    """Add a dump's records to an archive, but for those that it has (by partition and offset).

    The same dump may be imported again; it adds nothing.

    Args:
        spark: The session.
        path: A file, or a folder of files, of Parquet (.parquet) or JSON (.jsonl, .json, .ndjson; also .gz).
            On a cluster all workers must see it under this path.
        archive: The archive.

    Raises:
        WrongDumpError: It is not there, lacks a column, or has lines that are no records.
        StoreError: The archive cannot be written.
    """
    dump = locate(path).local
    if dump is None:
        raise WrongDumpError(f"{path} is no folder of this machine: dumps are read from there")
    files = dump_files(dump)
    source = f"dump-{_digest(files)}"
    records = _records(spark, dump, files)
    if not archive.has(source):
        _check(records, dump, files)
    records = records.drop("raw").dropDuplicates(["partition", "offset"])
    is_kept = F.col("type").isin(NO_TYPE, *KEPT_TYPES)
    kept, others = records.where(is_kept).withColumn("count", F.lit(1)), _counted(records.where(~is_kept))
    while not archive.has(source):
        new = kept.join(_places(spark, archive), ["partition", "offset"], "left_anti")
        run = partial(run_frame, in_days(new.unionByName(others)), ARCHIVE)
        try:
            counts = archive.append(run, source, archive.imported(source))
        except ConflictError:
            archive.refresh()  # a capture has added some of these, perhaps
        else:
            return Imported(source=source, counts=counts, known=kept.count() - counts.kept.total())
    return Imported(source=source, counts=Counts(), known=kept.count())


def _places(spark: SparkSession, archive: Archive) -> DataFrame:
    """Partition and offset of each record that an archive has."""
    columns = ("type", "key", "partition", "offset")
    rows = frame(spark, archive.split(archive.files(), columns), pa.schema(map(ARCHIVE.field, columns)))
    return rows.where(f"key IS NOT NULL OR type = {NO_TYPE}").select("partition", "offset")


def in_days(rows: DataFrame) -> DataFrame:
    """Rows of ARCHIVE, those of a day in one task and in order."""
    days = rows.withColumn("day", _day_of(F.col("timestamp"))).repartition(limits.DAYS_AT_ONCE, "day")
    return days.sortWithinPartitions("day", "partition", "offset")


def _day_of(timestamp: Column) -> Column:
    """The day of a moment in UTC, in any time zone of the session."""
    return F.date_from_unix_date(F.floor(F.unix_micros(timestamp) / 86_400_000_000).cast("int"))


def _records(spark: SparkSession, dump: Path, files: list[Path]) -> DataFrame:
    """With a column raw, which is null where the record is whole."""
    parquet = files[0].suffix == _PARQUET
    # Without a scheme, a cluster's own default file system would be meant. URIs' own letters are not escaped.
    names = ["file://" + _GLOB.sub(r"\\\g<0>", str(file)) for file in files]
    if parquet:
        for file in files:
            try:
                pq.read_schema(file)
            except (OSError, pa.ArrowInvalid) as error:
                raise WrongDumpError(f"cannot read {file}: {error}") from error
        rows = spark.read.parquet(*names)
    else:
        schema = ", ".join(f"{name} string" for name in (*_COLUMNS, "leader_epoch", "line"))
        reader = spark.read.schema(schema).option("columnNameOfCorruptRecord", "line")
        rows = reader.json(names)
    if missing := [name for name in _COLUMNS if name not in rows.columns]:
        raise WrongDumpError(f"{dump} has no column {', '.join(missing)}: it has {', '.join(rows.columns)}")
    key, value, time = _bytes(rows, "key", dump), _bytes(rows, "value", dump), _time(rows, dump)
    epoch = F.col("leader_epoch") if "leader_epoch" in rows.columns else F.lit(None)
    partition, offset = F.expr("try_cast(partition AS int)"), F.expr("try_cast(offset AS bigint)")
    whole = (
        partition.isNotNull()
        & offset.isNotNull()
        & time.isNotNull()
        & (F.col("key").isNull() | key.isNotNull())
        & (F.col("value").isNull() | value.isNotNull())
    )
    shown = F.to_json(F.struct("partition", "offset", "timestamp"))
    if not parquet:
        whole = whole & F.col("line").isNull()
        shown = F.coalesce(F.col("line"), shown)
    columns = {
        "type": _type(key).cast("smallint"),
        "key": key,
        "value": value,
        "partition": partition,
        "offset": offset,
        "timestamp": time,
        "leader_epoch": epoch.cast("int"),
        "raw": F.when(~whole, shown),
    }
    return rows.select(*(column.alias(name) for name, column in columns.items()))


def _bytes(rows: DataFrame, name: str, dump: Path) -> Column:
    kind = rows.schema[name].dataType
    if isinstance(kind, BinaryType):
        return F.col(name)
    if isinstance(kind, StringType):
        return F.try_to_binary(F.col(name), F.lit("base64"))
    raise WrongDumpError(f"{dump}: {name} is {kind.simpleString()}, neither bytes nor base64")


def _time(rows: DataFrame, dump: Path) -> Column:
    """When a record was written; null if there is no such time, as of microseconds taken for milliseconds."""
    kind = rows.schema["timestamp"].dataType
    time = F.col("timestamp")
    if isinstance(kind, TimestampNTZType):
        time = F.to_utc_timestamp(time.cast("timestamp"), F.current_timezone())
    elif isinstance(kind, IntegralType):
        time = _of_millis(time.cast("bigint"))
    elif isinstance(kind, StringType):
        millis, text = F.expr("try_cast(timestamp AS bigint)"), F.expr("try_cast(timestamp AS timestamp)")
        time = F.coalesce(_of_millis(millis), text)
    elif not isinstance(kind, TimestampType):
        raise WrongDumpError(f"{dump}: timestamp is {kind.simpleString()}, neither a time nor milliseconds")
    return F.when(F.unix_millis(time).between(FIRST_MS, LAST_MS), time)


def _of_millis(millis: Column) -> Column:
    return F.when(millis.between(FIRST_MS, LAST_MS), F.timestamp_millis(millis))


def _type(key: Column) -> Column:
    number = F.conv(F.hex(F.substring(key, 1, 2)), 16, 10).cast("int")
    return F.when((F.length(key) >= 2) & (number <= 0x7FFF), number).otherwise(-1)  # noqa: PLR2004 - an int16


def _counted(others: DataFrame) -> DataFrame:
    """One row for each type, partition and day."""
    counted = others.groupBy("type", "partition", _day_of(F.col("timestamp")).alias("day")).agg(
        F.count("*").cast("int").alias("count"),
        F.max("offset").alias("offset"),
        F.max_by("timestamp", "offset").alias("timestamp"),
    )
    nothing = {name: F.lit(None) for name in ("key", "value", "leader_epoch")}
    return counted.drop("day").withColumns(nothing)


def _check(records: DataFrame, dump: Path, files: list[Path]) -> None:
    told = F.count("*").alias("rows"), F.count("raw").alias("wrong"), F.first("raw", True).alias("raw")
    found = records.agg(*told).first()
    assert found is not None  # noqa: S101 - it is no group's
    if not found["rows"] and any(map(_has_something, files)):
        # An empty batch would say that the dump is imported, and it could not be imported again.
        raise WrongDumpError(f"no record was read from {dump}: it has none, or Spark does not read its files")
    if found["wrong"]:
        raise WrongDumpError(
            f"{dump} has {found['wrong']} lines that are no records, such as {found['raw'][:_SHOWN]!r}: each"
            f" needs {', '.join(_COLUMNS)} (milliseconds, or a time); in JSON, key and value in base64"
        )


def _has_something(file: Path) -> bool:
    if file.suffix == _PARQUET:
        return bool(pq.read_metadata(file).num_rows)
    return bool(file.stat().st_size)


def dump_files(dump: Path) -> list[Path]:
    """The files of a dump, all of Parquet or all of JSON, and none that would be left out."""
    files = [dump] if dump.is_file() else _files_below(dump)
    if hidden := [file for file in files if file.name.startswith((".", "_"))]:
        raise WrongDumpError(
            f"Spark does not read {hidden[0]}, as its name begins with {hidden[0].name[0]}: rename it"
        )
    return files


def _files_below(folder: Path) -> list[Path]:
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and _DELTA not in path.relative_to(folder).parts
    ]
    parquet, lines = (
        [path for path in files if path.name.removesuffix(".gz").endswith(kind)] for kind in (_PARQUET, _JSON)
    )
    if parquet and lines:
        raise WrongDumpError(
            f"{folder} has files of Parquet and of JSON, such as {parquet[0]} and {lines[0]}: import them"
            " from a folder for each kind"
        )
    if not parquet and not lines:
        raise WrongDumpError(
            f"{folder} is neither a file nor a folder with files of .parquet, .jsonl, .json or .ndjson"
        )
    return parquet or lines


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()[:12]
