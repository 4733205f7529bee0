"""The archive: records of `__consumer_offsets` that outlive its compaction, in Delta tables.

    archive.json                                 what this is, for versions that know another format
    records/_delta_log/                          which files are the records
    records/source=S/day=YYYY-MM-DD/*.parquet    schema ARCHIVE; S is topic, or dump-... of a dump
    topics/                                      the same of schema TOPICS

Each batch is one commit, which also says how far the topic was read, or which dump was imported: what is
ended in its midst is not there, and what is there is not written again. An archive is seen at the version
that was the newest when it was opened, whatever others commit, compact or remove meanwhile.
"""

from __future__ import annotations

import fnmatch
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - its common name

from kafka_assignors._groups.topics import SeenTopic
from kafka_assignors.history._archive_format import (
    DESCRIPTION,
    OLD_FORMAT,
    OURS,
    RECORDS,
    TOPICS_NOTED,
    Description,
    WrongArchiveError,
    check_format,
    describe,
    format_of,
    log_of,
    make_empty,
)
from kafka_assignors.history._counts import NO_TYPE, Counts, counts_of, tally
from kafka_assignors.history._log import LogTopic
from kafka_assignors.history._schemas import ARCHIVE, ARCHIVED, KIP848_TYPES, TOPICS
from kafka_assignors.history._store.log import ConflictError, Log, NoTableError
from kafka_assignors.history._store.places import place
from kafka_assignors.history._store.reading import (
    Source,
    frame_of_files,
    read_parts,
    source_of_files,
    source_of_rows,
    whole,
)
from kafka_assignors.history._store.writing import TaskFiles, units, write_files
from kafka_assignors.history._takeover import take_over

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from kafka_assignors.history._store.log import DataFile
    from kafka_assignors.history._store.places import Place
    from kafka_assignors.history._store.reading import Read

TOPIC_SOURCE: Final = "topic"
"""The source of what was captured from the cluster."""

KEPT: Final = f"(key IS NOT NULL OR type = {NO_TYPE})"
"""What is true of rows of ARCHIVE that are records, and not only their number; in SQL."""

_DAYS_AT_ONCE: Final = 4  # tasks that write rows of Spark's; each day of them is one file
_ROW_GROUP: Final = 8 * 2**20
"""Bytes of a row group before compression, which leaves a tenth or so. A file is shared out among tasks by
its row groups: were they larger, a day of one restless group would be one task's."""

_APPENDS: Final = "appends"
"""The transaction that each batch gives its number: of two at the same time, one must look again whether its
records are there already."""
_CHANGES: Final = "changes"


class Archive:
    """An archive that is there, as it was when it was opened; what is written through it is seen, too.

    Args:
        path: Its folder, or its URI in an object store: s3://, gs://, abfss://.
        options: Of the store, in the spelling of its environment variables; see `place`.
        skip_bad: Whether files that are damaged or gone are passed over, and not an error.

    Raises:
        WrongPlaceError: No store is of that scheme.
        WrongArchiveError: It is no archive, or one of another format.
        StoreError: The store does not let it be read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        options: Mapping[str, str] | None = None,
        *,
        skip_bad: bool = False,
    ) -> None:
        self.where = place(path, options)
        self.skip_bad = skip_bad
        check_format(self.where)
        try:
            self._records = Log(self.where / RECORDS)
            self._topics = Log(self.where / TOPICS_NOTED)  # after the records, so that it knows theirs
        except NoTableError as error:
            raise WrongArchiveError(f"{self.where} is an archive without its tables: {error}") from error

    @classmethod
    def create(cls, path: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Archive:
        """An archive that is there, or a new one in a folder that is empty or not there.

        One of format 1 is taken over, without a byte of its records being written again.

        Raises:
            WrongPlaceError: No store is of that scheme.
            WrongArchiveError: The folder has something else in it.
            ArchiveBusyError: A capture of an older version is writing into it.
            StoreError: The store does not let it be written.
        """
        where = place(path, options)
        found = where.read_text(DESCRIPTION)
        if found is None:
            others = [name for name in where.names() if name not in OURS and not name.startswith(".")]
            if others:
                raise WrongArchiveError(
                    f"{where} is no archive of groups' history, and not empty: it has {others[0]}; name"
                    " another folder"
                )
            make_empty(where, Description())
        elif format_of(where, found) == OLD_FORMAT:
            take_over(where, found)
        # Written each time: whoever may not write here learns it before anything is read.
        describe(where)
        return cls(path, options)

    @property
    def description(self) -> Description:
        """What it is of."""
        return Description.of(self._records.properties)

    @property
    def version(self) -> int:
        """The version of its records."""
        return self._records.version

    def belongs_to(self, cluster_id: str, partitions: int) -> None:
        """Say of which cluster it is, or make sure that it is of this one.

        Raises:
            WrongArchiveError: It is of another, or the topic has fewer partitions than before.
            StoreError: It cannot be said.
        """
        while not self._belongs_to(cluster_id, partitions):
            self._records.refresh()  # somebody else has just said it, or something else

    def _belongs_to(self, cluster_id: str, partitions: int) -> bool:
        known = self.description
        if known.cluster_id not in {None, cluster_id}:
            raise WrongArchiveError(
                f"{self.where} is an archive of cluster {known.cluster_id}, not of {cluster_id}: name another"
                " folder for this cluster"
            )
        if partitions < (known.partitions or 0):
            raise WrongArchiveError(
                f"{self.where} is of a {known.topic} with {known.partitions} partitions, which now has"
                f" {partitions}: it was made anew; name another folder"
            )
        described = replace(known, cluster_id=cluster_id, partitions=partitions)
        if described != known:
            try:
                self._records.set_properties(described.properties())
            except ConflictError:
                return False
        return True

    def refresh(self) -> None:
        """See the newest version."""
        self._records.refresh()
        self._topics.refresh()

    # What is in it

    def files(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        sources: Sequence[str] | None = None,
    ) -> list[DataFile]:
        """The files that may have records of a time, and of some sources if any are named."""
        return [
            file
            for file in self._records.files()
            if (sources is None or file.values["source"] in sources) and _may_have(file, since, until)
        ]

    def source(self, spark: SparkSession, columns: Sequence[str] = ARCHIVE.names) -> Source:
        """All rows, for tasks: the columns of ARCHIVE, or some of these and source and day."""
        where, files = self._records.where, self._records.files()
        return source_of_files(spark, where, files, _columns(columns), skip_bad=self.skip_bad)

    def rows(
        self, spark: SparkSession, files: Sequence[DataFile] | None = None, columns: Sequence[str] = ()
    ) -> DataFrame:
        """What is there: the columns of ARCHIVE, and source and day.

        Args:
            spark: The session.
            files: Some of `files`; all by default.
            columns: Which columns; all by default.
        """
        schema = _columns(columns or ARCHIVED.names)
        chosen = self._records.files() if files is None else files
        return frame_of_files(spark, self._records.where, chosen, schema, skip_bad=self.skip_bad)

    def places(self, spark: SparkSession, sources: Sequence[str] | None = None) -> DataFrame:
        """Partition and offset of each record that is kept; of these sources, if any are named."""
        rows = self.rows(spark, self.files(sources=sources), ("type", "key", "partition", "offset"))
        return rows.where(KEPT).select("partition", "offset")

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
        return self._read(spark, self.files(since=since, until=until), since, until, groups)

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
        old = [file for file in self.files(until=since) if may_be_modern(file)]
        new = [file for file in self.files(since=since, until=until) if may_be_modern(file)]
        if not old or not new:
            return rows
        modern = F.col("type").isin(*KIP848_TYPES)
        before = _with_group(self._read(spark, old, None, since, groups)).where(modern)
        after = _with_group(self._read(spark, new, since, until, groups)).where(modern)
        told = before.join(after.select("group").distinct(), "group", "left_semi")
        then = newest(told).withColumn("timestamp", F.lit(_utc(since)))
        return rows.unionByName(then)

    def _read(
        self,
        spark: SparkSession,
        files: Sequence[DataFile],
        since: datetime | None,
        until: datetime | None,
        groups: Sequence[str],
    ) -> DataFrame:
        """As `read`, of some files."""
        rows = self.rows(spark, files, ARCHIVE.names).where(KEPT)
        if since is not None:
            rows = rows.where(F.col("timestamp") >= F.lit(_utc(since)))
        if until is not None:
            rows = rows.where(F.col("timestamp") < F.lit(_utc(until)))
        if groups:
            rows = rows.where(group_of(F.col("key")).rlike(_expression(groups)))
        return rows

    def counts(self, spark: SparkSession) -> dict[str, Counts]:
        """How many records there are, by source.

        A record that a dump and the topic both had is kept once, but counted in both if it is not kept.
        """
        source = self.source(spark, ("source", "type", "count", "key"))
        count = partial(_count, read=source.read)
        told = source.rows.mapInArrow(count, "source string, type int, kept boolean, count bigint").collect()
        return {
            name: counts_of(tuple(row[1:]) for row in told if row[0] == name)
            for name in sorted({row[0] for row in told})
        }

    def may_have(self, kind: int) -> bool:
        """Whether there may be records of a type: no file says that there are none."""
        return any(file.may_have("type", kind) for file in self._records.files())

    def frontier(self) -> dict[int, int]:
        """By partition, the offset up to which the topic was read."""
        found = {
            number: self._records.transaction(log_of(number))
            for number in range(self.description.partitions or 0)
        }
        return {number: offset for number, offset in found.items() if offset is not None}

    def dumps(self) -> list[str]:
        """The sources that are dumps."""
        sources = {file.values["source"] for file in self._records.files()}
        return sorted(source for source in sources if source != TOPIC_SOURCE)

    def has(self, dump: str) -> bool:
        """Whether a dump was imported."""
        return self._records.transaction(dump) is not None

    def topics(self) -> list[SeenTopic]:
        """The cluster's topics, in the order in which they were seen; see `SeenTopic`."""
        batches = read_parts(
            self._topics.where, [whole(file) for file in self._topics.files()], TOPICS, skip_bad=self.skip_bad
        )
        rows = chain.from_iterable(batch.to_pylist() for batch in batches)
        return sorted((SeenTopic(**row) for row in rows), key=lambda topic: (topic.seen, topic.topic))

    # What is added

    def append(self, rows: DataFrame | Source, source: str, told: Mapping[str, int]) -> Counts:
        """Add a batch, as one commit.

        Args:
            rows: In the schema ARCHIVE.
            source: Where it is from.
            told: What the commit says beside; see `read_to` and `imported`.

        Returns:
            What is in it.

        Raises:
            ConflictError: Somebody else has added one since this version; nothing of this is there.
            StoreError: The store does not let it be written.
        """
        if not isinstance(rows, Source):
            days = rows.withColumn("day", day_of(F.col("timestamp"))).repartition(_DAYS_AT_ONCE, "day")
            rows = source_of_rows(days.sortWithinPartitions("day", "partition", "offset"), ARCHIVE)
        number = (self._records.transaction(_APPENDS) or 0) + 1
        files = files_of_batch(self._records.where, self._records.version + 1)
        written = write_files(rows.rows, files, partial(write_days, source=source, read=rows.read))
        added = placed(written.files)
        try:
            self._records.commit(add=added, transactions={**told, _APPENDS: number})
        except ConflictError:  # of others nobody knows whether it was done
            self._records.where.remove([file.path for file in added])
            raise
        return counts_of(tuple(one) for some in written.told for one in some)

    @staticmethod
    def read_to(ends: Mapping[int, int]) -> dict[str, int]:
        """What `append` says of a batch of the topic: by partition, the offset before which it ends."""
        return {log_of(number): end for number, end in ends.items()}

    @staticmethod
    def imported(dump: str) -> dict[str, int]:
        """What `append` says of a dump."""
        return {dump: 1}

    def add_topics(self, topics: Iterable[LogTopic]) -> int:
        """Note the cluster's topics as they are now; those that stayed as they were are not told again.

        Args:
            topics: All of them: those that are not among them are gone.

        Returns:
            How many are new, changed or gone.
        """
        listed = {topic.topic: topic for topic in topics}
        while True:
            changed = _changed(listed, {one.topic: one[1:3] for one in self.topics()})
            if not changed:
                return 0
            seen = datetime.now(UTC)
            rows = [{**topic._asdict(), "seen": seen} for topic in changed]
            number = (self._topics.transaction(_CHANGES) or 0) + 1
            with TaskFiles(self._topics.where, f"{seen:%Y%m%dT%H%M%S}-{uuid4().hex}") as files:
                files.write_group("", pa.RecordBatch.from_pylist(rows, schema=TOPICS))
            try:
                self._topics.commit(add=files.written.values(), transactions={_CHANGES: number})
            except ConflictError:
                self._topics.refresh()
            else:
                return len(changed)

    @property
    def logs(self) -> tuple[Log, Log]:
        """The logs of its records and topics."""
        return self._records, self._topics


def _columns(names: Sequence[str]) -> pa.Schema:
    return pa.schema([ARCHIVED.field(name) for name in names])


def may_be_modern(file: DataFile) -> bool:
    """Whether a file may have records of KIP-848, by what its log tells of it."""
    return any(file.may_have("type", kind) for kind in KIP848_TYPES)


def _may_have(file: DataFile, since: datetime | None, until: datetime | None) -> bool:
    """Whether a file may have records of a time, by its day and by what its log tells of it."""
    day = date.fromisoformat(file.values["day"])
    first, last = file.least.get("timestamp"), file.greatest.get("timestamp")
    return not (
        (since is not None and (day < _utc(since).date() or (last is not None and last < _utc(since))))
        or (until is not None and (day > _utc(until).date() or (first is not None and first >= _utc(until))))
    )


def files_of_batch(where: Place, number: int, name: str = "") -> Callable[[str], TaskFiles]:
    """Makes the files of tasks; by their names, batches come one after another as they were added."""
    return partial(_files_of_task, where=where, prefix=f"{name}{number:08d}")


def _files_of_task(name: str, *, where: Place, prefix: str) -> TaskFiles:
    return TaskFiles(where, f"{prefix}-{name}", compression="zstd")


def write_days(
    files: TaskFiles, batches: Iterator[Any], *, read: Read, source: str | None = None
) -> list[Any]:
    """Write each day's rows to a file of its own; a task's work.

    Args:
        files: Where to.
        batches: What the task gets.
        read: Makes rows of it in schema ARCHIVE, or ARCHIVED if there is no `source`.
        source: Where they are from.

    Returns:
        What they are; see `counts_of`.
    """
    found: list[Any] = []

    def tallied() -> Iterator[Any]:
        for batch in read(batches):
            found.extend(tally(batch))
            yield batch

    for unit in units(tallied(), _ROW_GROUP):
        days = pc.cast(unit["timestamp"], pa.date32())
        sources = pa.repeat(source, unit.num_rows) if source is not None else unit["source"]
        for name, day in sorted({*zip(sources.to_pylist(), days.to_pylist(), strict=True)}):
            here = pc.and_(pc.equal(days, pa.scalar(day)), pc.equal(sources, name))
            files.write_group(f"source={name}/day={day}", unit.select(ARCHIVE.names).filter(here))
    return found


def placed(files: Mapping[str, Iterable[DataFile]]) -> list[DataFile]:
    """Files that tasks wrote, with what the names of their folders say."""
    return [
        file._replace(values=dict(part.split("=", 1) for part in folder.split("/")))
        for folder, some in files.items()
        for file in some
    ]


def _count(batches: Iterator[Any], *, read: Any) -> Iterator[Any]:
    for batch in read(batches):
        if batch.num_rows:
            told = tally(batch)
            columns = [[batch["source"][0].as_py()] * len(told), *map(list, zip(*told, strict=True))]
            kinds = [pa.string(), pa.int32(), pa.bool_(), pa.int64()]
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)],
                names=["source", "type", "kept", "count"],
            )


def _changed(listed: Mapping[str, LogTopic], known: Mapping[str, tuple[str, int]]) -> list[LogTopic]:
    changed = [topic for topic in listed.values() if known.get(topic.topic) != topic[1:3]]
    return changed + [
        LogTopic(topic=name, topic_id=topic_id, partitions=0)
        for name, (topic_id, partitions) in known.items()
        if name not in listed and partitions
    ]


def _with_group(rows: DataFrame) -> DataFrame:
    return rows.withColumn("group", group_of(F.col("key"))).where(F.col("group").isNotNull())


def newest(rows: DataFrame) -> DataFrame:
    """Of each key the newest record, unless that says that it is gone: what compaction leaves in the end."""
    last = F.max_by(F.struct(*rows.columns), F.struct("partition", "offset"))
    return rows.groupBy("key").agg(last.alias("newest")).select("newest.*").where("value is not null")


def group_of(key: Column) -> Column:
    """The group that a record's key names, worked out without Python; null if the key names none.

    All keys begin with the type, two bytes, and the group: its length in two bytes, and UTF-8.
    """
    size = F.conv(F.hex(F.substring(key, 3, 2)), 16, 10).cast("int")
    name = F.substring(key, F.lit(5), size).cast("string")
    is_whole = (F.length(key) >= 4) & (size <= 0x7FFF) & (F.length(key) >= size + 4)  # noqa: PLR2004 - as above
    return F.when(is_whole, F.try_validate_utf8(name))


def day_of(timestamp: Column) -> Column:
    """The day of a moment in UTC, whatever the session's time zone."""
    return F.date_from_unix_date(F.floor(F.unix_micros(timestamp) / 86_400_000_000).cast("int"))


def _expression(patterns: Sequence[str]) -> str:
    # Java's \Z, unlike Python's, is also before a line's end at the end.
    wholes = (fnmatch.translate(pattern).removesuffix(r"\Z").removesuffix(r"\z") for pattern in patterns)
    return "|".join(rf"\A{each}\z" for each in wholes)


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
