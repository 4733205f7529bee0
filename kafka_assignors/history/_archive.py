"""The archive: records of `__consumer_offsets` that outlive its compaction, as plain Parquet in a folder.

    archive.json                                        what this is, and of which cluster
    records/source=S/batch=B/day=YYYY-MM-DD/*.parquet   schema ARCHIVE; S is topic, or dump-... of a dump
    topics/*.parquet                                    schema TOPICS
    staging/, checkpoint/, lock                         of captures
    exchange.json                                       while batches are merged: see `exchange`

A batch is written under `staging` and gets its place by a rename: what is under `records` is whole, and a
batch that is written again after a crash is there once.
"""

from __future__ import annotations

import fcntl
import fnmatch
import json
import shutil
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - its common name

from kafka_assignors._groups.topics import SeenTopic
from kafka_assignors._wire.offsets_topic.record import RECORD_TYPES
from kafka_assignors.coordinator._finding import GROUPS_TOPIC
from kafka_assignors.history import _exchange as exchange
from kafka_assignors.history._log import Topic
from kafka_assignors.history._schemas import ARCHIVE, KIP848_TYPES, TOPICS
from kafka_assignors.history._spark_schema import spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession


FORMAT: Final = 1
"""The format of archives that is written here; newer ones are refused."""

TOPIC_SOURCE: Final = "topic"
"""The source of what was captured from the cluster."""

KEPT: Final = "(key IS NOT NULL OR type = -1)"
"""What is true of rows of ARCHIVE that are records, and not only their number; in SQL."""

_ROW_GROUP: Final = 2 * 2**20
"""Bytes of a row group, compressed (to a tenth or so); a file is shared out among tasks by its row groups. As
Parquet has it by default, a day of one restless group would be one task's."""
_DAYS_AT_ONCE: Final = 4  # tasks that write a batch; each day of it is one file


class WrongArchiveError(ValueError):
    """A folder is no archive, or not the one that is meant; the message says what it is."""


class ArchiveBusyError(RuntimeError):
    """Another process is writing into the archive."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """What archive.json says.

    Attributes:
        cluster_id: The cluster; None as long as there are only dumps.
        topic: The topic.
        partitions: How many partitions it had; None as long as there are only dumps.
        format: The archive's format.
    """

    cluster_id: str | None = None
    topic: str = GROUPS_TOPIC
    partitions: int | None = None
    format: int = FORMAT


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many records there are, by name of their type; see `RECORD_TYPES`.

    Attributes:
        kept: Those that are in the archive.
        counted: Those of which only the number is.
    """

    kept: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Counts) -> Counts:
        return Counts(kept=self.kept + other.kept, counted=self.counted + other.counted)

    @property
    def read(self) -> int:
        """All of them."""
        return self.kept.total() + self.counted.total()


class Archive:
    """An archive that is there.

    Args:
        path: Its folder; on a cluster, one that the driver and all workers see under this path.

    Raises:
        WrongArchiveError: It is no archive, or one of a newer format.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).absolute()
        self.description = _read_description(self.path)
        for part in (_RECORDS, _TOPICS):
            (self.path / part).mkdir(exist_ok=True)

    @classmethod
    def create(cls, path: Path | str) -> Archive:
        """An archive that is there, or a new one in a folder that is empty or not there.

        Raises:
            WrongArchiveError: The folder has something else in it, or cannot be made.
        """
        folder = Path(path).absolute()
        if not (folder / _DESCRIPTION).exists():
            try:
                folder.mkdir(parents=True, exist_ok=True)
                if any(not one.name.startswith(".") for one in folder.iterdir()):
                    raise WrongArchiveError(
                        f"{folder} is no archive of groups' history, and not empty: name another folder"
                    )
                _write_description(folder, Description())
            except OSError as error:
                raise WrongArchiveError(f"cannot make an archive in {folder}: {error}") from error
        return cls(folder)

    def belongs_to(self, cluster_id: str, partitions: int) -> None:
        """Say of which cluster it is, or make sure that it is of this one.

        Raises:
            WrongArchiveError: It is of another, or the topic has fewer partitions than before.
        """
        known = self.description
        if known.cluster_id not in {None, cluster_id}:
            raise WrongArchiveError(
                f"{self.path} is an archive of cluster {known.cluster_id}, not of {cluster_id}: name another"
                " folder for this cluster"
            )
        if partitions < (known.partitions or 0):
            raise WrongArchiveError(
                f"{self.path} is of a {known.topic} with {known.partitions} partitions, which now has"
                f" {partitions}: it was made anew; name another folder"
            )
        self.description = replace(known, cluster_id=cluster_id, partitions=partitions)
        if self.description != known:
            _write_description(self.path, self.description)

    @property
    def checkpoint(self) -> Path:
        """Where Spark notes how far the stream is captured."""
        return self.path / "checkpoint"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The right to write, which one process has at a time; it ends with the process at the latest.

        Raises:
            ArchiveBusyError: Another has it.
        """
        with (self.path / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ArchiveBusyError(
                    f"another capture or import is writing into {self.path}: wait for it, or end it"
                ) from error
            shutil.rmtree(self.path / _STAGING, ignore_errors=True)
            for staged in (self.path / _TOPICS).glob(".*.parquet"):
                staged.unlink()
            exchange.finish(str(self.path))
            yield

    def has(self, source: str, batch: str) -> bool:
        """Whether a batch is there."""
        return self._place(source, batch).exists()

    def places(self, spark: SparkSession, sources: Sequence[str] | None = None) -> DataFrame:
        """Partition and offset of each record that is kept; of these sources, if any are named."""
        rows = self.rows(spark).where(KEPT)
        if sources is not None:
            rows = rows.where(F.col("source").isin(list(sources)))
        return rows.select("partition", "offset")

    def write(self, rows: DataFrame, source: str, batch: str) -> Counts:
        """Write a batch, unless it is there; in the state in which it is there, it is whole.

        Args:
            rows: In the schema ARCHIVE.
            source: Where it is from.
            batch: Its name there.

        Returns:
            What is in it.
        """
        place = self._place(source, batch)
        staged = self.path / _STAGING / source / batch
        if not place.exists():
            (
                rows.withColumn("day", day_of(F.col("timestamp")))
                .repartition(_DAYS_AT_ONCE, "day")
                .sortWithinPartitions("day", "partition", "offset")
                .write.mode("overwrite")
                .partitionBy("day")
                .option("compression", "zstd")
                .option("parquet.block.size", _ROW_GROUP)
                .parquet(file_uri(staged))
            )
            place.parent.mkdir(parents=True, exist_ok=True)
            staged.rename(place)
        written = rows.sparkSession.read.schema(spark_schema(ARCHIVE)).parquet(file_uri(place))
        return _count(written.withColumn("source", F.lit(source))).get(source, Counts())

    def rows(self, spark: SparkSession) -> DataFrame:
        """All that is there: the columns of ARCHIVE, and source, batch and day."""
        schema = spark_schema(ARCHIVE).add("source", "string").add("batch", "string").add("day", "date")
        while True:
            passed_over = exchange.passed_over(str(self.path))
            rows = spark.read.schema(schema).parquet(file_uri(self.path / _RECORDS))  # which lists the files
            if exchange.passed_over(str(self.path)) == passed_over:
                return rows.where(~F.col("batch").isin(*passed_over)) if passed_over else rows

    def merge(self, spark: SparkSession) -> int:
        """Make one batch of those that were captured, but for the newest, which may be written again.

        Batches that were merged before stay as they are. What began to read the archive before may then miss
        files, and fails.

        Returns:
            How many batches were merged; 0 if there were fewer than two.

        Raises:
            ArchiveBusyError: Another process is writing into the archive.
        """
        with self.writing():
            old = self._to_be_merged()
            if len(old) < 2:  # noqa: PLR2004 - fewer are merged already
                return 0
            rows = self.rows(spark).where((F.col("source") == TOPIC_SOURCE) & F.col("batch").isin(old))
            new = f"{_MERGED}{uuid4().hex[:8]}"
            source = self._place(TOPIC_SOURCE, new).parent.relative_to(self.path)
            exchange.begin(str(self.path), exchange.Exchange(str(source), new, tuple(old)))
            self.write(rows.select(*ARCHIVE.names), TOPIC_SOURCE, new)
            exchange.finish(str(self.path))
            return len(old)

    def _to_be_merged(self) -> list[str]:
        """The batches that were captured, without the newest of each checkpoint."""
        source = self.path / _RECORDS / f"source={TOPIC_SOURCE}"
        names = sorted(folder.name.removeprefix("batch=") for folder in source.glob("batch=*"))
        captured = [name for name in names if not name.startswith(_MERGED)]
        newest = {name.rpartition("-")[0]: name for name in captured}
        return [name for name in captured if name not in newest.values()]

    def read(
        self,
        spark: SparkSession,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        groups: Sequence[str] = (),
    ) -> DataFrame:
        """The records that are kept, in the schema ARCHIVE.

        Args:
            spark: The session.
            since: The first moment; naive times are UTC.
            until: The moment before which to stop.
            groups: Patterns of groups' names, such as "orders-*"; all groups if there are none. With
                patterns, records whose key names no group are left out.
        """
        rows = self.rows(spark).where(KEPT)
        if since is not None:
            moment = _utc(since)
            rows = rows.where((F.col("day") >= F.lit(moment.date())) & (F.col("timestamp") >= F.lit(moment)))
        if until is not None:
            moment = _utc(until)
            rows = rows.where((F.col("day") <= F.lit(moment.date())) & (F.col("timestamp") < F.lit(moment)))
        if groups:
            rows = rows.where(group_of(F.col("key")).rlike(_expression(groups)))
        return rows.select(*ARCHIVE.names)

    def read_groups(
        self,
        spark: SparkSession,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        groups: Sequence[str] = (),
    ) -> DataFrame:
        """As `read`, with a column `group`, and only records that belong to one.

        A group of KIP-848 begins with what it was like at `since`, as each of its records tells but a part of
        it: with what compaction would have left by then, the newest record of each key, as if written at that
        moment. Of groups that have no such record from then on there is nothing.
        """
        rows = _with_group(self.read(spark, since=since, until=until, groups=groups))
        if since is None:
            return rows
        modern = F.col("type").isin(*KIP848_TYPES)
        before = _with_group(self.read(spark, until=since, groups=groups)).where(modern)
        told = before.join(rows.where(modern).select("group").distinct(), "group", "left_semi")
        newest = F.max_by(F.struct(*rows.columns), F.struct("partition", "offset"))
        left = told.groupBy("key").agg(newest.alias("newest")).select("newest.*")
        then = left.where("value is not null").withColumn("timestamp", F.lit(_utc(since)))
        return rows.unionByName(then)

    def counts(self, spark: SparkSession) -> dict[str, Counts]:
        """How many records there are, by source.

        A record that a dump and the topic both had is kept once, but counted in both if it is not kept.
        """
        return _count(self.rows(spark))

    def frontier(self, spark: SparkSession) -> dict[int, int]:
        """By partition, the offset after the last that was captured from the topic."""
        if not (self.path / _RECORDS / f"source={TOPIC_SOURCE}").exists():
            return {}
        captured = self.rows(spark).where(F.col("source") == TOPIC_SOURCE)
        ends = captured.groupBy("partition").agg((F.max("offset") + 1).alias("end")).collect()
        return {row["partition"]: row["end"] for row in ends}

    def dumps(self) -> list[str]:
        """The sources that are dumps."""
        names = [folder.name.removeprefix("source=") for folder in (self.path / _RECORDS).iterdir()]
        return sorted(name for name in names if name.startswith("dump-"))

    def topics(self) -> list[SeenTopic]:
        """The cluster's topics, in the order in which they were seen; see `SeenTopic`."""
        tables = [
            pq.read_table(path, schema=TOPICS)
            for path in sorted((self.path / _TOPICS).glob("[!.]*.parquet"))  # the others are being written
        ]
        rows = pa.concat_tables(tables).to_pylist() if tables else []
        return sorted((SeenTopic(**row) for row in rows), key=lambda topic: (topic.seen, topic.topic))

    def add_topics(self, topics: Iterable[Topic]) -> int:
        """Note the cluster's topics as they are now; those that stayed as they were are not told again.

        Args:
            topics: All of them: those that are not among them are gone.

        Returns:
            How many are new, changed or gone.
        """
        listed = {topic.topic: topic for topic in topics}
        known = {one.topic: one[1:3] for one in self.topics()}
        changed = [topic for topic in listed.values() if known.get(topic.topic) != topic[1:3]]
        changed += [
            Topic(topic=name, topic_id=topic_id, partitions=0)
            for name, (topic_id, partitions) in known.items()
            if name not in listed and partitions
        ]
        if changed:
            seen = datetime.now(UTC)
            rows = [{**topic._asdict(), "seen": seen} for topic in changed]
            _put(self.path / _TOPICS / f"{seen:%Y%m%dT%H%M%S.%fZ}.parquet", rows)
        return len(changed)

    def _place(self, source: str, batch: str) -> Path:
        return self.path / _RECORDS / f"source={source}" / f"batch={batch}"


def _with_group(rows: DataFrame) -> DataFrame:
    return rows.withColumn("group", group_of(F.col("key"))).where(F.col("group").isNotNull())


def group_of(key: Column) -> Column:
    """The group that a record's key names, worked out without Python; null if the key names none.

    All keys begin with the type, two bytes, and the group: its length in two bytes, and UTF-8.
    """
    size = F.conv(F.hex(F.substring(key, 3, 2)), 16, 10).cast("int")
    name = F.substring(key, F.lit(5), size).cast("string")
    whole = (F.length(key) >= 4) & (size <= 0x7FFF) & (F.length(key) >= size + 4)  # noqa: PLR2004 - as above
    return F.when(whole, F.try_validate_utf8(name))


def day_of(timestamp: Column) -> Column:
    """The day of a moment in UTC, whatever the session's time zone."""
    return F.date_from_unix_date(F.floor(F.unix_micros(timestamp) / 86_400_000_000).cast("int"))


def name_of_type(number: int) -> str:
    """What a type of records is called."""
    return "no type" if number < 0 else RECORD_TYPES.get(number, f"type {number}")


def _count(rows: DataFrame) -> dict[str, Counts]:
    """By source."""
    kept = F.expr(KEPT).alias("kept")
    found: dict[str, Counts] = {}
    for row in rows.groupBy("source", "type", kept).agg(F.sum("count").alias("records")).collect():
        counts = found.setdefault(row["source"], Counts())
        (counts.kept if row["kept"] else counts.counted)[name_of_type(row["type"])] += row["records"]
    return dict(sorted(found.items()))


def _expression(patterns: Sequence[str]) -> str:
    # Java's \Z, unlike Python's, is also before a line's end at the end.
    wholes = (fnmatch.translate(pattern).removesuffix(r"\Z").removesuffix(r"\z") for pattern in patterns)
    return "|".join(rf"\A{whole}\z" for whole in wholes)


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def file_uri(path: Path) -> str:
    """A local path for Spark: without a scheme, a cluster's own default file system would be meant."""
    return f"file://{path.absolute()}"


def _read_description(folder: Path) -> Description:
    path = folder / _DESCRIPTION
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise WrongArchiveError(
            f"{folder} is no archive of groups' history: it has no {_DESCRIPTION}"
            " (kafka-assignors history capture makes one)"
        ) from error
    except (OSError, ValueError) as error:
        raise WrongArchiveError(f"cannot read {path}: {error}") from error
    version = told.get("format") if isinstance(told, dict) else None
    if version != FORMAT:
        raise WrongArchiveError(
            f"{folder} is an archive of format {version}, and this version reads {FORMAT}: update"
            " kafka-assignors, or name another folder"
        )
    try:
        return Description(**told)
    except TypeError as error:
        raise WrongArchiveError(f"cannot read {path}: {error}") from error


def _write_description(folder: Path, description: Description) -> None:
    staged = folder / f".{_DESCRIPTION}.{uuid4().hex}"
    staged.write_text(f"{json.dumps(asdict(description), indent=2)}\n", encoding="utf-8")
    staged.replace(folder / _DESCRIPTION)


def _put(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write a file of topics as a whole or not at all."""
    staged = path.with_name(f".{path.name}")
    pq.write_table(pa.Table.from_pylist([*rows], schema=TOPICS), staged)
    staged.rename(path)


_DESCRIPTION: Final = "archive.json"
_RECORDS: Final = "records"
_STAGING: Final = "staging"
_MERGED: Final = "0-merged-"
"""What the names of merged batches begin with, so that they come before all others."""
_TOPICS: Final = "topics"
