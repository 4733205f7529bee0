"""Keeping an archive small and quick: a day's many files made few, old days removed, old files deleted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import accumulate, chain, groupby
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_assignors.history import _limits as limits
from kafka_assignors.history._archive import may_have_groups, write_batch
from kafka_assignors.history._archive_format import ArchiveBusyError
from kafka_assignors.history._engine import Engine, in_order, size_of
from kafka_assignors.history._records import OF_GROUPS, Order, newest_rows
from kafka_assignors.history._schemas import ARCHIVED
from kafka_assignors.history._store.log import ConflictError
from kafka_assignors.history._store.reading import find_damaged, through
from kafka_assignors.history._store.writing import units

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kafka_assignors.history._archive import Archive, Run
    from kafka_assignors.history._store.log import DataFile
    from kafka_assignors.history._store.writing import MakeFiles, Outcome, Task, TaskFiles

_BY_DAY: Final = Order(ARCHIVED, ("source", "day"))
_BY_ONE_TASK: Final = Order(ARCHIVED, ())  # few are left, in a file for each day
_LEFT: Final = "left"  # what names of files begin with that are left of days which are not kept
_MAINTENANCE: Final = "maintenance"  # numbers each commit here: of two at the same time, one ends


@dataclass(frozen=True, kw_only=True)
class Maintenance:
    """What is to be done, or was.

    Attributes:
        compacted: By source and day, the files that become one or few.
        removed: The files of days that are not kept.
        deleted: The files that no version needs that is retained, as of before the rest.
        retention: For how long they are.
    """

    compacted: list[list[DataFile]] = field(default_factory=list)
    removed: list[DataFile] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    retention: timedelta = limits.RETENTION

    @property
    def keeps(self) -> bool:
        """Whether some records of removed days stay, which groups begin with."""
        return any(map(may_have_groups, self.removed))

    def to_json(self) -> dict[str, Any]:
        """For machines: files by their paths."""
        return {
            "compacted": [[file.path for file in day] for day in self.compacted],
            "removed": [file.path for file in self.removed],
            "deleted": self.deleted,
        }


def plan_maintenance(
    archive: Archive,
    *,
    keep: int | None = None,
    retention: timedelta = limits.RETENTION,
    today: date | None = None,
) -> Maintenance:
    """Work out from the log what there is to do; nothing is changed.

    Args:
        archive: The archive.
        keep: How many days are kept, today's and whole ones; all by default.
        retention: How long files stay that were replaced, or never committed.
        today: The day, in UTC.

    Raises:
        ValueError: The retention is too short to be safe.
        StoreError: The store does not let it be listed.
    """
    if retention < limits.LEAST_RETENTION:
        raise ValueError(
            f"a retention of {retention} is too short: files of a batch that is being written could be"
            f" deleted; the least is {limits.LEAST_RETENTION}"
        )
    last = (today or datetime.now(UTC).date()).toordinal()
    first = (date.min if keep is None else date.fromordinal(max(1, last - keep + 1))).isoformat()
    files = archive.files()
    old = [file for file in files if file.values["day"] < first]
    return Maintenance(
        compacted=_small([file for file in files if file.values["day"] >= first]),
        removed=[] if all(f"/{_LEFT}" in file.path for file in old) else old,
        deleted=[
            f"{log.where}/{path}"
            for log in archive.logs
            for path in log.vacuum(_hours(retention), dry_run=True)
        ],
        retention=retention,
    )


def maintain(archive: Archive, plan: Maintenance, *, engine: Engine | None = None) -> list[DataFile]:
    """Do it. Even if it is killed, each step of it is done or not, and the archive is whole.

    Args:
        archive: The archive.
        plan: What to do.
        engine: What does the work; `Engine.fitting` by default.

    Returns:
        The files that are damaged or gone, if the archive passes over them; else they are an error. They stay
        as they are, or are removed with their day.

    Raises:
        ArchiveBusyError: Somebody else is maintaining the archive.
        StoreError: The store does not let it be done.
        SparkError: Spark failed.
    """
    engine = engine or Engine.fitting()
    for log in archive.logs:  # before a commit that has a checkpoint made
        log.keep_removed(_hours(plan.retention))
    old = [file for file in plan.removed if may_have_groups(file)]
    bad: list[DataFile] = []
    compacted = plan.compacted
    if archive.skip_bad:
        # Before anything is replaced: of a file that is damaged in its midst, rows must not be there twice.
        bad = find_damaged(archive.logs[0].where, chain(old, *compacted), ARCHIVED)
        old = [file for file in old if file not in bad]
        compacted = _small([file for day in compacted for file in day if file not in bad])
    if plan.removed:
        kept = None
        if old:
            rows = through(archive.split(old, strict=True), _of_groups)
            kept = partial(_newest, partial(engine.run, rows, order=_BY_ONE_TASK, size=size_of(old)))
        _replace(archive, plan.removed, kept, name=_LEFT, is_new=True)
    for files in _chunks(compacted):
        rows = archive.split(files, strict=True)
        run = partial(engine.run, rows, order=_BY_DAY, size=size_of(files))
        _replace(archive, files, run, is_new=False)
    for log in archive.logs:
        log.vacuum(_hours(plan.retention), dry_run=False)
        log.checkpoint()
    return bad


def _of_groups(batches: Iterator[Any]) -> Iterator[Any]:
    return (batch.filter(pc.is_in(batch["type"], value_set=OF_GROUPS)) for batch in batches)


def _newest(run: Run, task: Task, files: MakeFiles) -> Outcome:
    """Have a task write what compaction leaves in the end: of each key the newest row, if it has a value."""

    def write(batches: Iterator[Any], opened: TaskFiles | None) -> Iterable[Any]:
        newest: list[Any] = []
        for batch in units(batches, limits.NEWEST_AT_ONCE):
            # They come by offset: nothing older of a key that is deleted comes later.
            newest = [rows.filter(pc.is_valid(rows["value"])) for rows in newest_rows([*newest, batch])]
        return task(in_order(pa.Table.from_batches(newest, ARCHIVED), _BY_DAY), opened)

    return run(write, files)


def _replace(
    archive: Archive, old: Sequence[DataFile], run: Run | None, *, name: str = "", is_new: bool
) -> None:
    """Have the rows that a task gets stand where files did; others are gone."""
    records, _ = archive.logs
    added: list[DataFile] = []
    if run is not None:
        added, _ = write_batch(records, run, name=name)
    number = (records.transaction(_MAINTENANCE) or 0) + 1
    busy = ArchiveBusyError(
        f"somebody else is maintaining {archive.where}: what was done before stays, the rest can be done"
        " again"
    )
    records.refresh()
    # Another engine may have compacted the table, which gives our transaction no number.
    if not {file.path for file in records.files()}.issuperset(file.path for file in old):
        records.where.remove([file.path for file in added])
        raise busy
    try:
        records.commit(add=added, remove=old, transactions={_MAINTENANCE: number}, is_new=is_new)
    except ConflictError as error:
        raise busy from error


def _hours(retention: timedelta) -> int:
    return math.ceil(retention / timedelta(hours=1))


def _small(files: Sequence[DataFile]) -> list[list[DataFile]]:
    """By source and day, the files that are worth being made one."""
    small = sorted((file for file in files if file.size < limits.LARGE_FILE), key=_part)
    return [some for _, group in groupby(small, _part) if len(some := list(group)) > 1]


def _chunks(days: Sequence[list[DataFile]]) -> Iterator[list[DataFile]]:
    """Files of days that are done together."""
    ends = accumulate(sum(file.size for file in day) for day in days)
    for _, some in groupby(zip(ends, days, strict=True), lambda one: one[0] // limits.COMPACTED_AT_ONCE):
        yield [file for _, day in some for file in day]


def _part(file: DataFile) -> tuple[str, str]:
    return file.values["source"], file.values["day"]
