"""What an archive has, in short."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kafka_assignors._common.times import moment
from kafka_assignors.history._arrow import as_numpy
from kafka_assignors.history._counts import counts_of, tally
from kafka_assignors.history._local import chosen, group_of, meant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from pyspark.sql import SparkSession

    from kafka_assignors.history._archive import Archive
    from kafka_assignors.history._counts import Counts


@dataclass(frozen=True, kw_only=True)
class Info:
    """What an archive has.

    Attributes:
        counts: By source, how many records of each type; of the whole archive.
        since: When the first of the selected records was written; None if there are none.
        until: When the last was.
        groups: By group, how many of the selected records it has; the most first.
    """

    counts: Mapping[str, Counts]
    since: datetime | None
    until: datetime | None
    groups: Mapping[str, int]


class _Found(NamedTuple):
    """Records of a group, or of none; times are microseconds since 1970."""

    group: str | None
    records: int
    since: int
    until: int


def describe(
    spark: SparkSession,
    archive: Archive,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    groups: Sequence[str] = (),
) -> Info:
    """Count what is in an archive; see `Archive.read` for the selection."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its common name; small archives need none

    from kafka_assignors.history._spark_columns import group_of as named_by  # noqa: PLC0415 - as above

    records = archive.read(spark, since=since, until=until, groups=groups)
    found = (
        records.groupBy(named_by(F.col("key")).alias("group"))
        .agg(
            F.count("*").alias("records"),
            # As numbers: times would come in the time zone of this process.
            F.unix_micros(F.min("timestamp")).alias("since"),
            F.unix_micros(F.max("timestamp")).alias("until"),
        )
        .collect()
    )
    return _info(archive.counts(spark), [_Found(*row) for row in found])


def describe_here(
    archive: Archive,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    groups: Sequence[str] = (),
) -> Info:
    """The same without Spark: each file is read once, without its records' values."""
    tallies: list[tuple[str, tuple[int, bool, int]]] = []
    found: list[_Found] = []
    files, is_meant = archive.files(), meant(groups)
    for source in sorted({file.values["source"] for file in files}):
        its = [file for file in files if file.values["source"] == source]
        batches = archive.batches(its, ("type", "count", "key", "timestamp"))

        def noted(batches: Iterator[Any] = batches, source: str = source) -> Iterator[Any]:
            for batch in batches:
                tallies.extend((source, one) for one in tally(batch))
                yield batch

        for rows in chosen(noted(), since, until):
            found += [one for one in _count(rows) if is_meant(one.group)]
    sources = dict.fromkeys(source for source, _ in tallies)
    counts = {name: counts_of(one for source, one in tallies if source == name) for name in sources}
    return _info(counts, found)


def _count(rows: Any) -> Iterator[_Found]:
    keys = rows["key"].dictionary_encode(null_encoding="encode")
    of_key = as_numpy(keys.indices)
    times = as_numpy(rows["timestamp"])
    order = np.argsort(of_key, kind="stable")
    begins = np.flatnonzero(np.diff(of_key[order], prepend=-1))
    first, last = (by.reduceat(times[order], begins) for by in (np.minimum, np.maximum))
    counts = np.diff(begins, append=len(order))
    names = map(group_of, keys.dictionary.to_pylist())
    yield from map(_Found, names, counts.tolist(), first.tolist(), last.tolist())


def _info(counts: Mapping[str, Counts], found: Iterable[_Found]) -> Info:
    found = list(found)
    records: Counter[str] = Counter()
    for one in found:
        if one.group is not None:
            records[one.group] += one.records
    since = min((one.since for one in found), default=None)
    until = max((one.until for one in found), default=None)
    return Info(
        counts=counts,
        since=None if since is None else moment(since),
        until=None if until is None else moment(until),
        groups=dict(sorted(records.items(), key=lambda one: (-one[1], one[0]))),
    )
