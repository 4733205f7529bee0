"""Small archives without Spark: the records that are meant, read and sorted in this process.

    archive -> filtered as it is read -> sorted by group -> decoded -> one group's records at a time -> rows

What is chosen is what `Archive.read` and `Archive.read_groups` choose, and each group's records come to the
same function that Spark's tasks run (see `_chain`). The two ways differ in nothing else.
"""

from __future__ import annotations

import fnmatch
import os
import re
import sys
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.times import micros
from kafka_assignors.history._arrow import integers, number, strings
from kafka_assignors.history._counts import is_kept
from kafka_assignors.history._decoded import ROWS, read_batch
from kafka_assignors.history._pieces import HistoryPart
from kafka_assignors.history._schemas import ARCHIVE, KIP848_TYPES, TIME
from kafka_assignors.history._store.writing import units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from kafka_assignors._groups.snapshots import ArchivedRecord
    from kafka_assignors.history._archive import Archive
    from kafka_assignors.history._pieces import Tell
    from kafka_assignors.history._store.log import DataFile

SMALL: Final = 64 * 2**20
"""Bytes of files, compressed, that are read without Spark; see docs/history.md for what they take."""
SMALL_TO_REPLAY: Final = 8 * 2**20
"""The same if groups are replayed, too: of more, Spark on several cores soon makes up for its start."""

_ROOM: Final = 2**30
"""Bytes of records that are held at most: files of records that are much alike are small, too."""
_UNIT: Final = 4 * 2**20
"""Bytes of rows that are filtered at once."""
_HEAD: Final = 4
"""Bytes of a key before the group's name: its type, and the name's length."""
_LONGEST_NAME: Final = 0x7FFF

_COLUMNS: Final = ("type", "key", "value", "partition", "offset", "timestamp", "leader_epoch")
_SCHEMA: Final = pa.schema(
    [*(ARCHIVE.field(name).remove_metadata() for name in _COLUMNS), pa.field("group", pa.string())]
)
_KIP848: Final = integers(sorted(KIP848_TYPES)).cast(pa.int16())


def spark_is_there() -> bool:
    """Whether Spark is running already, or this was started by spark-submit: then nothing is saved."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return True
    sql: Any = sys.modules.get("pyspark.sql")
    return sql is not None and sql.SparkSession.getActiveSession() is not None


class TooLargeError(KafkaAssignorsError, RuntimeError):
    """Records take more room than was to be expected of their files: they are Spark's to read."""


def is_small(
    archive: Archive,
    since: datetime | None = None,
    until: datetime | None = None,
    *,
    replayed: bool = False,
) -> bool:
    """Whether what is to be read of an archive is little enough for this process.

    Args:
        archive: The archive.
        since: See `Archive.read_groups`.
        until: See `Archive.read_groups`.
        replayed: Whether groups are to be replayed, too.
    """
    files = archive.files(since=since, until=until)
    if since is not None:
        files += archive.files_before(since, until)
    return sum({file.path: file.size for file in files}.values()) <= (SMALL_TO_REPLAY if replayed else SMALL)


def chosen(batches: Iterable[Any], since: datetime | None, until: datetime | None) -> Iterator[Any]:
    """Of rows of ARCHIVE, or some of its columns, the records of a time that are kept.

    Args:
        batches: The rows.
        since: See `Archive.read`.
        until: See `Archive.read`.
    """
    for unit in units(batches, _UNIT):
        meant = is_kept(unit)
        if since is not None:
            meant = pc.and_(meant, pc.greater_equal(unit["timestamp"], _time(since)))
        if until is not None:
            meant = pc.and_(meant, pc.less(unit["timestamp"], _time(until)))
        yield unit.filter(meant)


def _time(when: datetime) -> Any:
    return number(micros(when), TIME)


def meant(patterns: Sequence[str]) -> Callable[[str | None], bool]:
    """Says of the group that a key names, if any, whether it is meant; see `Archive.read`."""
    if not patterns:
        return lambda _: True
    matches = re.compile("|".join(map(fnmatch.translate, patterns))).match
    return lambda group: group is not None and matches(group) is not None


def group_of(key: bytes | None) -> str | None:
    """The group that a record's key names; None if it names none. See `_spark_columns.group_of`."""
    if key is None or len(key) < _HEAD:
        return None
    size = int.from_bytes(key[2:_HEAD])
    if size > _LONGEST_NAME or len(key) < _HEAD + size:
        return None
    try:
        return key[_HEAD : _HEAD + size].decode()
    except UnicodeDecodeError:
        return None


def read_groups(
    archive: Archive,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    groups: Sequence[str] = (),
) -> Any:
    """The records that `Archive.read_groups` reads, as a table in no order: `_COLUMNS`, and `group`.

    Raises:
        TooLargeError: See there.
    """
    rows = _read(archive, archive.files(since=since, until=until), since, until, meant(groups))
    if since is None or not (old := archive.files_before(since, until)):
        return rows
    there = {*rows.filter(_is_modern(rows))["group"].unique().to_pylist()}
    before = _read(archive, old, None, since, there.__contains__, modern=True)
    begun = newest(before)
    times = pa.repeat(_time(since), len(begun))
    place = begun.schema.get_field_index("timestamp")
    return pa.concat_tables([rows, begun.set_column(place, begun.schema.field(place), times)])


def _read(
    archive: Archive,
    files: Sequence[DataFile],
    since: datetime | None,
    until: datetime | None,
    is_meant: Callable[[str | None], bool],
    *,
    modern: bool = False,
) -> Any:
    """Records of groups that are meant; of KIP-848 only, if `modern`."""
    parts: list[Any] = []
    size = 0
    for rows in chosen(archive.batches(files, _COLUMNS), since, until):
        some = rows.filter(_is_modern(rows)) if modern else rows
        keys = some["key"].dictionary_encode(null_encoding="encode")
        named = map(group_of, keys.dictionary.to_pylist())
        names = strings([name if name is not None and is_meant(name) else None for name in named])
        grouped = some.append_column("group", names.take(keys.indices))
        parts.append(grouped.filter(pc.is_valid(grouped["group"])))
        size += parts[-1].nbytes
        if size > _ROOM:
            raise TooLargeError(f"the records of {archive.where} take more than {_ROOM:,} bytes")
    return pa.Table.from_batches(parts, _SCHEMA)


def _is_modern(rows: Any) -> Any:
    return pc.is_in(rows["type"], value_set=_KIP848)


def newest(rows: Any) -> Any:
    """Of each key the newest record, unless that says that it is gone; see `_spark_columns.newest`."""
    order = pc.sort_indices(rows, [("partition", "ascending"), ("offset", "ascending")])
    keys = rows["key"].to_pylist()
    last = {keys[number]: number for number in order.to_pylist()}
    found = rows.take(integers(sorted(last.values())))
    return found.filter(pc.is_valid(found["value"]))


def of_each_group(records: Any, tell: Tell) -> Iterator[dict[str, Any]]:
    """What is said of each group, by name: as `of_each_group` of `_chain`, in this process.

    Args:
        records: As `read_groups` gives them.
        tell: Works out rows of a group's records, all of which it gets at once.
    """
    for group, rows in groupby(_sorted(records), itemgetter(0)):
        yield from tell(group, HistoryPart(), (record for _, record in rows))


def _sorted(records: Any) -> Iterator[tuple[str, ArchivedRecord]]:
    """Each record with its group; those of a group by partition and offset."""
    times = records["timestamp"].cast(pa.int64())
    table = records.drop_columns(["timestamp"]).append_column("time_us", times).combine_chunks()
    order = pc.sort_indices(table, [(name, "ascending") for name in ("group", "partition", "offset")])
    for begin in range(0, len(order), ROWS):
        (part,) = table.take(order.slice(begin, ROWS)).combine_chunks().to_batches()
        yield from zip(part["group"].to_pylist(), read_batch(part), strict=True)
