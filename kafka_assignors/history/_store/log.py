"""A Delta table's log: which files are the table at a version, and commits of others.

With the protocol's lowest features (no deletion vectors, no column mapping) the list of files is the table.
Files are committed by name, with their statistics: delta-rs's own writer takes all rows in one process, and a
batch of a cluster's records has more than fit there. Tasks write them (`writing`).
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, timedelta
from typing import Any, Final, NamedTuple, Self
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors.history._arrow import rows_of
from kafka_assignors.history._store.location import Location, StoreError, WrongPlaceError, asking

# Opening a table, and looking up each of its transactions, reads one checkpoint and the commits after it.
_CONFIGURATION: Final = {
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 30 days",
}
_REMOVED_NAMED: Final = "delta.deletedFileRetentionDuration"  # by checkpoints; for 7 days by default
_INTERVAL: Final = re.compile(r"(\d+)'? *(week|day|hour|minute|second|millisecond|microsecond)s?\b")

_READER: Final = 1
"""The newest version of Delta's protocol that is read: to later ones a file's rows need not all count."""
_FOLDER: Final = "_delta_log"
_NAME: Final = re.compile(r"[^/:\\\0]+")
"""Names of folders and files, and what folders are named by. Delta lets a log name files elsewhere, too."""
_LARGEST: Final = 5 * 2**40  # bytes of a file: no object of S3 has more
_COMMIT: Final = "kafka_assignors.commit"  # what distinguishes a commit from all others


class ConflictError(KafkaAssignorsError, RuntimeError):
    """Somebody else committed what this would have; nothing of this was."""


class NoTableError(KafkaAssignorsError, LookupError):
    """There is no Delta table at a place."""


class DataFile(NamedTuple):
    """A Parquet file of a table; its path is relative to the table, its size in bytes."""

    path: str
    size: int
    rows: int | None = None  # None if that is not known
    values: Mapping[str, str] = {}  # of the columns that the table is partitioned by: not in the file
    least: Mapping[str, Any] = {}  # by column, if that is known, no value in the file is less
    greatest: Mapping[str, Any] = {}

    def may_have(self, column: str, first: Any, last: Any = None) -> bool:
        """Whether a row may have a value, or one from the first to the last, by what is known of the file."""
        until = first if last is None else last
        return bool(self.least.get(column, until) <= until and first <= self.greatest.get(column, first))


class Log:
    """The log of a table, read up to a version: the newest by default. Later commits are not seen."""

    def __init__(self, where: Location, version: int | None = None) -> None:
        self.where = where
        try:
            with asking(f"read the log of {where}"):
                self._table = DeltaTable(where.escaped, version, storage_options=dict(where.options))
        except TableNotFoundError as error:
            raise NoTableError(f"there is no table at {where}") from error
        self._look()

    def _look(self) -> None:
        needed = self._table.protocol()
        if needed.min_reader_version > _READER:
            features = ", ".join(sorted(needed.reader_features or ())) or "column mapping"
            raise WrongPlaceError(
                f"{self.where} cannot be read: another program has given the table features ({features}) that"
                " this package does not know. Drop them there (ALTER TABLE ... DROP FEATURE)"
            )
        self._files: list[DataFile] | None = None
        self._transactions: dict[str, int | None] = {}
        self._looked_at = self.version

    @classmethod
    def create(
        cls, where: Location, schema: pa.Schema, *, partition_by: Sequence[str] = (), description: str
    ) -> Self:
        """Make a table without rows, unless there is one (ConflictError)."""
        try:
            with asking(f"make a table at {where}"):
                if where.local is not None:
                    where.local.mkdir(parents=True, exist_ok=True)
                DeltaTable.create(
                    where.escaped,
                    Schema.from_arrow(schema),
                    partition_by=list(partition_by),
                    description=description,
                    configuration=_CONFIGURATION,
                    storage_options=dict(where.options),
                    raise_if_key_not_exists=False,
                )
        except (CommitFailedError, StoreError) as error:
            if not DeltaTable.is_deltatable(where.escaped, dict(where.options)):
                raise
            raise ConflictError(f"another process has just created a table at {where}") from error
        return cls(where)

    @classmethod
    def owned(cls, where: Location, description: str, left: str = "") -> Self | None:
        """A table of this package at a place; None if none is there, and nothing of others.

        A clean-up deletes all files of a table's folder that the table does without. Files that match `left`
        are of runs that were ended before they made the table.
        """
        try:
            log = cls(where)
        except NoTableError:
            _check_free(where, left)
            return None
        described = log._table.metadata().description
        if described != description:
            raise WrongPlaceError(
                f"{where} is a table already, and another one ({described or 'without a description'}):"
                " name another folder"
            )
        return log

    @property
    def version(self) -> int:
        """The version that is seen."""
        return int(self._table.version())

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's own, beside those of Delta."""
        return dict(self._table.metadata().configuration)

    def transaction(self, name: str) -> int | None:
        """The number that the last commit gave to a name; None if none did."""
        if name not in self._transactions:
            with asking(f"read the log of {self.where}"):
                self._transactions[name] = self._table.transaction_version(name)
        return self._transactions[name]

    def files(self) -> list[DataFile]:
        """All files of the version."""
        if self._files is None:
            with asking(f"read the log of {self.where}"):
                listed = pa.RecordBatchReader.from_stream(self._table.get_add_actions(flatten=True))
                self._files = [*map(_listed, rows_of(listed.read_all()))]
        return self._files

    def refresh(self) -> None:
        """See the newest version."""
        with asking(f"read the log of {self.where}"):
            self._table.update_incremental()
        if self.version != self._looked_at:
            self._look()

    def commit(
        self,
        *,
        add: Iterable[DataFile] = (),
        remove: Iterable[DataFile] = (),
        transactions: Mapping[str, int] | None = None,
        is_new: bool = True,
    ) -> None:
        """Add files and remove others, all or nothing; then see the version that has them.

        If others have meanwhile given a number to a name that this does, too, nothing is committed
        (ConflictError), and the files to add are deleted. After a StoreError they must stay: it may be done,
        if only the answer was lost. Rows are not new if they are only in other files.
        """
        commit = uuid4().hex
        now = int(time.time() * 1000)
        added = [*add]
        known, before = self._transactions, self.version
        try:
            with asking(f"commit to {self.where}"):
                self._table.create_write_transaction(
                    [
                        *(RemoveAction(one.path, is_new, now, one.size, dict(one.values)) for one in remove),
                        *(_added(one, now, is_new=is_new) for one in added),
                    ],
                    "append",
                    self._table.schema(),
                    partition_by=self._table.metadata().partition_columns,
                    commit_properties=CommitProperties(
                        custom_metadata={_COMMIT: commit},
                        app_transactions=[Transaction(*one) for one in (transactions or {}).items()],
                        max_commit_retries=100,
                    ),
                )
        except CommitFailedError as error:
            if not self._was_done(commit):
                self.where.remove([file.path for file in added])
                raise ConflictError(f"somebody else has committed to {self.where} meanwhile") from error
        self.refresh()
        if self.version == before + 1:  # nobody else has given numbers to names meanwhile
            self._transactions = {**known, **(transactions or {})}

    def _was_done(self, commit: str) -> bool:
        """Whether a commit is there: if an answer was lost, a client tries again, and finds its own."""
        newest = Log(self.where)
        with asking(f"read the log of {self.where}"):
            since = newest._table.history(newest.version - self.version)
        return any(one.get(_COMMIT) == commit for one in since)

    def change_properties(self, changed: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
        """Set properties to what comes of those that are there, until nothing does, whatever others set."""
        while new := changed(self.properties):
            with suppress(CommitFailedError), asking(f"change the properties of {self.where}"):
                self._table.alter.set_table_properties(dict(new), raise_if_not_exists=False)
            self.refresh()

    def keep_removed(self, hours: int) -> None:
        """Have checkpoints name files for so long after they were removed: else clean-ups delete them."""

        def longer(known: Mapping[str, str]) -> Mapping[str, str]:
            is_long = _named_for(known.get(_REMOVED_NAMED, "interval 7 days")) >= timedelta(hours=hours)
            return {} if is_long else {_REMOVED_NAMED: f"interval {hours} hours"}

        self.change_properties(longer)

    def vacuum(self, hours: int, *, dry_run: bool) -> list[str]:
        """Delete files that no version of the last hours has, or that were never committed; their paths."""
        self.refresh()  # else a file of a newer version would count as never committed
        with asking(f"clean up {self.where}"):
            return self._table.vacuum(hours, dry_run=dry_run, enforce_retention_duration=False, full=True)

    def checkpoint(self) -> None:
        """Write what the log comes to, and remove commits older than its retention."""
        with asking(f"write a checkpoint of {self.where}"):
            self._table.create_checkpoint()
            self._table.cleanup_metadata()


def _check_free(where: Location, left: str) -> None:
    """Make sure that a table can be made at a place: no files of others are there, nor a table around it."""
    ours = re.compile(f"{_FOLDER}|{left}")
    others = [name for name in where.names() if not ours.fullmatch(name)]
    if others:
        raise WrongPlaceError(
            f"{where} has files of others, such as {others[0]}, which clean-ups of a table there"
            " would delete: name another folder, or move these files elsewhere"
        )
    for folder in where.around:
        with suppress(StoreError):  # who may write here need not be allowed to look there
            if (folder / _FOLDER).names():
                raise WrongPlaceError(
                    f"{where} is in the folder of the table {folder}, whose clean-ups would delete"
                    " what is there: name another folder"
                )


def _named_for(interval: str) -> timedelta:
    """For how long checkpoints name removed files; forever if it is not known."""
    try:
        found = _INTERVAL.findall(interval.lower())
        parts = [timedelta(**{f"{unit}s": int(number)}) for number, unit in found]
        return sum(parts, timedelta()) if parts else timedelta.max
    except OverflowError:
        return timedelta.max


def _added(file: DataFile, now: int, *, is_new: bool) -> AddAction:
    stats = {"numRecords": file.rows, "minValues": file.least, "maxValues": file.greatest, "nullCount": {}}
    return AddAction(
        path=file.path,
        size=file.size,
        partition_values=dict(file.values),
        modification_time=now,
        data_change=is_new,
        stats=json.dumps(
            {} if file.rows is None else stats,
            default=lambda time: f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
        ),
    )


def _listed(row: Mapping[str, Any]) -> DataFile:
    parts: dict[str, dict[str, Any]] = {"partition": {}, "min": {}, "max": {}}
    for name, value in row.items():
        kind, _, column = name.partition(".")
        if column and kind in parts and value is not None:
            parts[kind][column] = value
    path, size = row["path"], row["size_bytes"]
    names, values = path.split("/"), {column: str(value) for column, value in parts["partition"].items()}
    if ".." in names or not all(map(_NAME.fullmatch, [*names, *values.values()])):
        raise ValueError(f"it names a file {path!r} of {values}, which is not in the table's folder")
    if not 0 <= size <= _LARGEST:
        raise ValueError(f"it names a file {path!r} of {size:,} bytes")
    return DataFile(path, size, row["num_records"], values, parts["min"], parts["max"])
