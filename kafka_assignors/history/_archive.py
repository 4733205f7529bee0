"""The archive: records of `__consumer_offsets` that outlive its compaction, in Delta tables.

docs/history_archive.md says what is where. Each batch is one commit, which also says how far the topic was
read, or which dump was imported. What others commit or remove after an archive was opened is not seen.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from itertools import chain
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_assignors._common.times import in_utc
from kafka_assignors._groups.topics import SeenTopic
from kafka_assignors._model.arrays import IntArray
from kafka_assignors.history import _limits as limits
from kafka_assignors.history._archive_format import (
    DESCRIPTION,
    OWN_TABLES,
    RECORDS,
    TOPICS_NOTED,
    Description,
    WrongArchiveError,
    check_format,
    describe,
    log_of,
)
from kafka_assignors.history._arrow import as_numpy, rows_of
from kafka_assignors.history._counts import Counts, is_kept, tally
from kafka_assignors.history._records import Selection
from kafka_assignors.history._schemas import ARCHIVE, ARCHIVED, KEPT_TYPES, TOPICS
from kafka_assignors.history._store.location import StoreError, asking, locate
from kafka_assignors.history._store.log import ConflictError, DataFile, Log, NoTableError
from kafka_assignors.history._store.reading import Part, Split, read_parts, source_of_files
from kafka_assignors.history._store.writing import MakeFiles, Outcome, Task, TaskFiles, units

Run = Callable[[Task, MakeFiles], Outcome]

TOPIC_SOURCE: Final = "topic"
"""The source of what was captured from the cluster."""

_APPENDS: Final = "appends"
"""The transaction that numbers batches: of two at once, one must look again whether its records are there."""
_CHANGES: Final = "changes"


class Archive:
    """An archive that is there, as it was when it was opened; what is written through it is seen, too.

    Args:
        path: Its folder, or its URI in an object store: s3://, gs://, abfss://.
        options: Of the store, in the spelling of its environment variables; see docs/history_archive.md.
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
        self.where = locate(path, options)
        self.skip_bad = skip_bad
        check_format(self.where)
        try:  # topics after the records, so that they know theirs
            self.logs = Log(self.where / RECORDS), Log(self.where / TOPICS_NOTED)
        except NoTableError as error:
            raise WrongArchiveError(f"{self.where} is an archive without its tables: {error}") from error
        self._records, self._topics = self.logs

    @classmethod
    def create(cls, path: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> "Archive":
        """An archive that is there, or a new one in a folder that is empty or not there.

        Raises:
            WrongPlaceError: No store is of that scheme, or a folder of the archive's has files of others.
            WrongArchiveError: The folder has something else in it.
            StoreError: The store does not let it be written.
        """
        where = locate(path, options)
        if where.read_text(DESCRIPTION) is not None:
            check_format(where)
        else:
            others = [name for name in where.names() if name not in OWN_TABLES and not name.startswith(".")]
            if others:
                raise WrongArchiveError(
                    f"{where} is no archive of groups' history, and not empty: it has {others[0]}; name"
                    " another folder"
                )
            for name, (_, _, text) in OWN_TABLES.items():
                Log.owned(where / name, text)
            for name, (schema, columns, text) in OWN_TABLES.items():
                with suppress(ConflictError):  # somebody else has just made it
                    Log.create(where / name, schema, partition_by=columns, description=text)
        # Written each time: whoever may not write here learns it before anything is read.
        describe(where)
        return cls(path, options)

    @property
    def description(self) -> Description:
        """What it is of."""
        return Description.of(self._records.where, self._records.properties)

    @property
    def version(self) -> int:
        """The version of its records."""
        return self._records.version

    def belongs_to(self, cluster_id: str, partitions: int, topic_id: str = "") -> None:
        """Say of which cluster and topic it is; WrongArchiveError if it is of others. An id may be empty."""

        def described(properties: Mapping[str, str]) -> Mapping[str, str]:
            known = Description.of(self._records.where, properties)
            known.check(self.where, cluster_id, partitions, topic_id)
            there = topic_id or known.topic_id
            new = replace(known, cluster_id=cluster_id, partitions=partitions, topic_id=there)
            return {} if new == known else new.properties()

        self._records.change_properties(described)

    def refresh(self) -> None:
        """See the newest version."""
        self._records.refresh()
        self._topics.refresh()

    # What is in it

    def files(self, *, since: datetime | None = None, until: datetime | None = None) -> list[DataFile]:
        """The files that may have records of a time."""
        return [file for file in self._records.files() if _may_have(file, since, until)]

    def files_of(self, selection: Selection) -> list[DataFile]:
        """The files that may have the records that are meant."""
        begins = selection.since_us is not None  # with what is in older ones
        return [
            file
            for file in self.files(until=selection.until)
            if _may_have(file, selection.since, None) or (begins and may_have_groups(file))
        ]

    def split(
        self, files: Sequence[DataFile], columns: Sequence[str] = ARCHIVED.names, *, strict: bool = False
    ) -> Split:
        """Rows of files for tasks: columns of ARCHIVED. No bad file is passed over if that is strict."""
        return partial(
            source_of_files,
            where=self._records.where,
            files=files,
            schema=pa.schema([ARCHIVED.field(name) for name in columns]),
            skip_bad=self.skip_bad and not strict,
        )

    def offsets_of(self, files: Sequence[DataFile]) -> dict[int, IntArray]:
        """By partition, the offsets of the records that files have."""
        found: defaultdict[int, list[IntArray]] = defaultdict(list)
        for rows in self.split(files, ("type", "key", "partition", "offset"), strict=True)(1).batches():
            kept = rows.filter(is_kept(rows))
            partitions, offsets = as_numpy(kept["partition"]), as_numpy(kept["offset"])
            for number in {*partitions.tolist()}:
                found[number].append(offsets[partitions == number])
        return {number: np.concatenate(some) for number, some in found.items()}

    def frontier(self) -> dict[int, int]:
        """By partition, the offset up to which the topic was read."""
        logs = range(self.description.partitions or 0)
        found = {number: self._records.transaction(log_of(number)) for number in logs}
        return {number: end for number, end in found.items() if end is not None}

    def has(self, dump: str) -> bool:
        """Whether a dump was imported."""
        return self._records.transaction(dump) is not None

    def topics(self) -> list[SeenTopic]:
        """The cluster's topics, in the order in which they were seen; see `SeenTopic`."""
        files = map(Part, self._topics.files())
        batches = read_parts(self._topics.where, files, TOPICS, skip_bad=self.skip_bad)
        rows = chain.from_iterable(map(rows_of, batches))
        return sorted((SeenTopic(**row) for row in rows), key=lambda topic: (topic.seen, topic.topic))

    # What is added

    def append(self, run: Run, source: str, transactions: Mapping[str, int]) -> Counts:
        """Add a batch, as one commit; what is in it.

        `run` calls a task with rows in schema ARCHIVE (`Engine.run`). Transactions say how far the topic was
        read (`log_of`), or name a dump. If somebody else has added a batch since this version, nothing of
        this is there (ConflictError).
        """
        number = (self._records.transaction(_APPENDS) or 0) + 1
        added, counts = write_batch(self._records, run, source)
        self._records.commit(add=added, transactions={**transactions, _APPENDS: number})
        return counts

    def add_topics(self, topics: Iterable[SeenTopic]) -> int:
        """Note all of the cluster's topics as they are now; how many are new, changed or gone."""
        listed = {topic.topic: topic for topic in topics}
        while True:
            known = {one.topic: one for one in self.topics()}
            changed = [one for one in listed.values() if known.get(one.topic, ())[:3] != one[:3]]
            gone = (one for one in known.values() if one.partitions and one.topic not in listed)
            changed += [one._replace(partitions=0) for one in gone]
            if not changed:
                return 0
            # After all before, though a clock was set back: else it would be no news the next time.
            later = (one.seen + timedelta(microseconds=1) for one in known.values())
            seen = max([datetime.now(UTC), *later])
            rows = [one._replace(seen=seen)._asdict() for one in changed]
            number = (self._topics.transaction(_CHANGES) or 0) + 1
            with TaskFiles(self._topics.where, f"{seen:%Y%m%dT%H%M%S}-{uuid4().hex}") as files:
                files.write_group("", pa.RecordBatch.from_pylist(rows, schema=TOPICS))
            try:
                self._topics.commit(add=files.written.values(), transactions={_CHANGES: number})
            except ConflictError:
                self._topics.refresh()
            else:
                return len(changed)


def may_have_groups(file: DataFile) -> bool:
    """Whether a file may have records of groups, by what its log says of it."""
    return any(file.may_have("type", kind) for kind in KEPT_TYPES)


def _may_have(file: DataFile, since: datetime | None, until: datetime | None) -> bool:
    """Whether a file may have records of a time, by what its log says of it, or else by its day."""
    day = date.fromisoformat(file.values["day"])
    first = file.least.get("timestamp", datetime.combine(day, time.min, UTC))
    last = file.greatest.get("timestamp", datetime.combine(day, time.max, UTC))
    return (since is None or last >= in_utc(since)) and (until is None or first < in_utc(until))


def write_batch(
    log: Log, run: Run, source: str | None = None, name: str = ""
) -> tuple[list[DataFile], Counts]:
    """Have tasks write files to be committed, in the order of their names; how many records are in them."""
    files = partial(TaskFiles, log.where, prefix=f"{name}{log.version + 1:08d}-")
    done = run(partial(write_days, source=source), files)
    added = [file for some in done.files.values() for file in some]
    with asking(f"look for files of {log.where}"):
        found = log.where.files().get_file_info([file.path for file in added])
    # Until their commit they are nobody's to a clean-up.
    if gone := [info.path for info in found if not info.is_file]:
        raise StoreError(
            f"{log.where / gone[0]} was deleted before it could be committed: a clean-up took it for a file"
            " of a killed command. Nothing was committed: run this again, and give history maintain a"
            " --retention that is longer than this takes"
        )
    return added, sum(done.rows, Counts())


def write_days(
    batches: Iterator[Any], files: TaskFiles | None, *, source: str | None = None
) -> Iterator[Counts]:
    """A task that writes each day's rows, of ARCHIVE or with their source, to a file; how many records."""
    assert files is not None  # noqa: S101 - they are given
    for unit in units(batches, limits.ROW_GROUP):
        yield tally(unit)
        days = pc.cast(unit["timestamp"], pa.date32())
        sources = pa.repeat(source, unit.num_rows) if source is not None else unit["source"]
        for name, day in sorted({*zip(sources.to_pylist(), days.to_pylist(), strict=True)}):
            here = pc.and_(pc.equal(days, pa.scalar(day)), pc.equal(sources, name))
            files.write_group(f"source={name}/day={day}", unit.select(ARCHIVE.names).filter(here))
