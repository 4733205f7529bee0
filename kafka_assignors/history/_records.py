"""Which records of an archive are meant, and what is done with them: the same in every engine.

    archive -> records that are selected -> sorted by group, partition and offset -> a task -> rows, and files

The rows of a task come back as they are. What is large goes into files, which the task writes itself.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.garbage import no_garbage_collection
from kafka_assignors._common.times import micros
from kafka_assignors._groups.finding import is_meant
from kafka_assignors._groups.snapshots import ArchivedRecord
from kafka_assignors._wire.offsets_topic.wire import RecordReader
from kafka_assignors._wire.reader import UnreadableError
from kafka_assignors.history._arrow import as_numpy, integers, number, only, strings
from kafka_assignors.history._counts import is_kept
from kafka_assignors.history._decoded import read_batches
from kafka_assignors.history._schemas import ARCHIVE, COMMIT_KEY, KEPT_TYPES, TIME
from kafka_assignors.history._store.writing import TaskFiles, combined, units

GroupTask = Callable[[str, Iterator[ArchivedRecord], TaskFiles | None], Iterable[Any]]
"""Gives rows of a group and its records by partition and offset, some of them twice; and writes files."""

UNIT: Final = 4 * 2**20  # bytes of rows that are filtered, or sorted, at once
_GROUP_METADATA: Final = b"\0\2"  # what the key of a classic group's record begins with
COLUMNS: Final = ("type", "key", "value", "partition", "offset", "timestamp", "leader_epoch")
SELECTED: Final = pa.schema([*map(ARCHIVE.field, COLUMNS), pa.field("group", pa.string())])
OF_GROUPS: Final = integers(KEPT_TYPES).cast(pa.int16())
_COMMIT: Final = number(int.from_bytes(COMMIT_KEY), pa.int16())


class Order(NamedTuple):
    """In which order tasks get rows: those equal in `together` are one task's, or all, in the log's order."""

    schema: pa.Schema
    together: tuple[str, ...]
    a_core: int = 0  # tasks; if 0, as many as the rows' bytes make

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that rows are sorted by."""
        return (*self.together, "partition", "offset")


GROUPED: Final = Order(SELECTED, ("group",), a_core=4)  # by bytes there were fewer than there is work for


class SparkError(KafkaAssignorsError, RuntimeError):
    """Spark failed."""

    def __str__(self) -> str:
        return f"{self.args[0]} (in Spark)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which records of an archive are meant: those before `until` of groups that match a pattern.

    Groups begin with their state at `since`, or are `cut`; `every_record` has those without a group, too, and
    `commits` the commits that were kept.
    """

    since: datetime | None = None
    until: datetime | None = None
    groups: Sequence[str] = ()
    every_record: bool = False
    cut: bool = False
    commits: bool = False

    @property
    def since_us(self) -> int | None:
        """When groups begin, in microseconds since 1970; None if with their first record."""
        return None if self.since is None or self.cut else micros(self.since)

    def of(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Of rows of ARCHIVE, or some of its columns, the records that are meant; with their group."""
        named = self._named(batches)
        return named if self.since_us is None else _with_newest(named, number(self.since_us, TIME))

    def _named(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Those that are kept, of this time and of groups that are meant."""
        for unit in units(batches, UNIT):
            kept = is_kept(unit)
            if not self.commits:
                kept = pc.and_(kept, pc.not_equal(unit["type"], _COMMIT))
            if self.since is not None and self.cut:
                kept = pc.and_(kept, pc.greater_equal(unit["timestamp"], number(micros(self.since), TIME)))
            if self.until is not None:
                kept = pc.and_(kept, pc.less(unit["timestamp"], number(micros(self.until), TIME)))
            rows = only(unit, kept)
            keys = rows["key"].dictionary_encode(null_encoding="encode")
            named = map(group_of, keys.dictionary.to_pylist())
            names = strings(
                [name if name is not None and is_meant(name, self.groups) else None for name in named]
            )
            selected = rows.append_column("group", names.take(keys.indices))
            if self.groups or not self.every_record:
                selected = only(selected, pc.is_valid(selected["group"]))
            yield selected


def _with_newest(batches: Iterable[Any], since: Any) -> Iterator[Any]:
    """The records from a time on, and of each group's keys the newest older one: no long archive is held."""
    newest: list[Any] = []
    for rows in batches:
        is_older = pc.less(rows["timestamp"], since)
        yield rows.filter(pc.invert(is_older))
        newest = newest_rows([*newest, rows.filter(pc.and_(is_older, pc.is_valid(rows["group"])))])
    yield from newest


def newest_rows(batches: Iterable[Any]) -> list[Any]:
    """The last row of each key by partition and offset, in one batch; none if there are no rows."""
    some = [*filter(len, batches)]
    if not some:
        return []
    rows = combined(some)
    keys = as_numpy(rows["key"].dictionary_encode(null_encoding="encode").indices)
    order = np.lexsort((as_numpy(rows["offset"]), as_numpy(rows["partition"]), keys))
    is_last = np.diff(keys[order], append=-1) != 0
    return [rows.take(integers(order[is_last].tolist()))]


def group_of(key: bytes | None) -> str | None:
    """The group that a record's key names, behind its type, which takes two bytes; None if it names none."""
    try:
        return RecordReader((key or b"")[2:]).string("the group")
    except UnreadableError:
        return None


def begun(records: Iterable[ArchivedRecord], since_us: int | None) -> Iterator[ArchivedRecord]:
    """A group's records from a moment on, after what it was like then; without a moment, all of them.

    Of older ones the newest of each key are as if written at that moment. The tombstone of a classic group is
    a state, too. A group without later records has none, or commits alone, which come before its state.
    """
    if since_us is None:
        yield from records
        return
    older: dict[bytes, ArchivedRecord] | None = {}
    for record in records:
        if record.time_us < since_us:
            if older is None:  # a clock was set back
                yield record.at(since_us)
            else:  # a classic group has one key, which what was decoded at once is without
                older[b"" if record.key.startswith(_GROUP_METADATA) else record.key] = record
            continue
        if older is not None and record.key.startswith(COMMIT_KEY):
            if (before := older.pop(record.key, None)) is not None and before.value is not None:
                yield before.at(since_us)
        elif older is not None:
            kept = [one for key, one in older.items() if not key or one.value is not None]
            older = None
            yield from (one.at(since_us) for one in sorted(kept, key=attrgetter("partition", "offset")))
        yield record


def each_group(task: GroupTask, since_us: int | None) -> Callable[..., Iterator[Any]]:
    """Calls a function with the records of each group from a moment on, see `begun`; gives its rows."""

    def rows_of_all(batches: Iterator[Any], files: TaskFiles | None) -> Iterator[Any]:
        named = chain.from_iterable(
            zip(part["group"].to_pylist(), records, strict=True) for part, records in read_batches(batches)
        )
        for group, rows in groupby(named, itemgetter(0)):
            records = begun(map(itemgetter(1), rows), since_us)
            first = next(records, None)
            if first is not None:
                with no_garbage_collection():
                    found = [*task(group, chain([first], records), files)]
                yield from found

    return rows_of_all
