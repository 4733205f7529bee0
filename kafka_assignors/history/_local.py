"""Small archives without Spark: the records that are meant, read and sorted in this process.

    archive -> filtered as it is read -> sorted by group -> decoded -> one group's records at a time -> rows

What is chosen is what `Archive.read` and `Archive.read_groups` choose, and each group's records come to the
same function that Spark's tasks run (see `_chain`): that is all that the two ways differ in.
"""

from __future__ import annotations

import fnmatch
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from kafka_assignors._common.times import micros
from kafka_assignors.history._arrow import number
from kafka_assignors.history._counts import is_kept
from kafka_assignors.history._schemas import TIME
from kafka_assignors.history._store.writing import units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from kafka_assignors.history._archive import Archive

SMALL: Final = 64 * 2**20
"""Bytes of files, compressed, that are read without Spark; see docs/history.md for what they take."""

_UNIT: Final = 4 * 2**20
"""Bytes of rows that are filtered at once."""
_HEAD: Final = 4
"""Bytes of a key before the group's name: its type, and the name's length."""
_LONGEST_NAME: Final = 0x7FFF


def spark_is_there() -> bool:
    """Whether Spark is running already, or this was started by spark-submit: then nothing is saved."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return True
    sql: Any = sys.modules.get("pyspark.sql")
    return sql is not None and sql.SparkSession.getActiveSession() is not None


def is_small(archive: Archive, since: datetime | None = None, until: datetime | None = None) -> bool:
    """Whether what is to be read of an archive is little enough for this process."""
    files = archive.files(since=since, until=until)
    if since is not None:
        files += archive.files_before(since, until)
    return sum({file.path: file.size for file in files}.values()) <= SMALL


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
    """Tells of the group that a key names, if any, whether it is meant; see `Archive.read`."""
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
