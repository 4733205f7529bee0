"""What an archive has, in short."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kafka_assignors._common.times import moment
from kafka_assignors.history._arrow import as_numpy
from kafka_assignors.history._counts import counts_of, tally
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._records import Selection, group_of, meant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from kafka_assignors.history._archive import Archive
    from kafka_assignors.history._counts import Counts


@dataclass(frozen=True, kw_only=True)
class ArchiveInfo:
    """What an archive has.

    Attributes:
        archive: Its URI.
        version: Its version; see docs/history.md.
        files: How many files its records are in.
        bytes: How large these are.
        cluster_id: The cluster that it is of; None if it is of dumps only.
        topic: The topic that it is of.
        partitions: How many partitions that has; None if that is not known.
        topics: How many topics captures saw in the cluster.
        sources: By source, how many records of each type; of the whole archive.
        since: When the first of the selected records was written; None if there are none.
        until: When the last was.
        groups: By group, how many of the selected records it has; the most first.
    """

    archive: str
    version: int
    files: int
    bytes: int
    cluster_id: str | None
    topic: str
    partitions: int | None
    topics: int
    sources: Mapping[str, Counts]
    since: datetime | None
    until: datetime | None
    groups: Mapping[str, int]


def info(
    archive: Archive,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    groups: Sequence[str] = (),
    engine: Engine | None = None,
) -> ArchiveInfo:
    """Count what is in an archive.

    Args:
        archive: The archive.
        since: Of groups' records only those from then on; naive times are UTC.
        until: Of these only those before then.
        groups: Patterns of groups' names, such as "orders-*"; all records if there are none.
        engine: What does the work; `Engine.fitting` by default.

    Raises:
        SparkError: Spark failed.
    """
    count = partial(_count, selection=Selection(since=since, until=until, groups=groups, every_record=True))
    engine = engine or Engine.fitting(doing="counting")
    rows = engine.map_rows(archive, ("source", "type", "count", "key", "timestamp"), count).rows
    tallies = [row[1:] for row in rows if row[0] == "tally"]
    found = [row[1:] for row in rows if row[0] == "group"]
    records: Counter[str] = Counter()
    for group, count_of, _, _ in found:
        if group is not None:
            records[group] += count_of
    first = min((since_us for _, _, since_us, _ in found), default=None)
    last = max((until_us for _, _, _, until_us in found), default=None)
    files, known = archive.files(), archive.description
    return ArchiveInfo(
        archive=archive.where.uri,
        version=archive.version,
        files=len(files),
        bytes=sum(file.size for file in files),
        cluster_id=known.cluster_id,
        topic=known.topic,
        partitions=known.partitions,
        topics=len({topic.topic for topic in archive.topics()}),
        sources={
            name: counts_of(tuple(one[1:]) for one in tallies if one[0] == name)
            for name in sorted({one[0] for one in tallies})
        },
        since=None if first is None else moment(first),
        until=None if last is None else moment(last),
        groups=dict(sorted(records.items(), key=lambda one: (-one[1], one[0]))),
    )


def _count(batches: Iterator[Any], _: object, *, selection: Selection) -> Iterator[tuple[Any, ...]]:
    """Of each source and type how many records there are; of each group, how many and of what time."""
    counted: Counter[tuple[Any, ...]] = Counter()
    is_meant = meant(selection.groups)

    def tallied() -> Iterator[Any]:
        for batch in batches:
            if batch.num_rows:
                source = batch["source"][0].as_py()
                counted.update({(source, kind, kept): count for kind, kept, count in tally(batch)})
            yield batch

    for rows in selection.in_time(tallied()):
        yield from (("group", *one) for one in _groups_of(rows) if is_meant(one[0]))
    yield from (("tally", *one, count) for one, count in counted.items())


def _groups_of(rows: Any) -> Iterator[tuple[str | None, int, int, int]]:
    """Of each key its group, how many records, and when the first and the last were written."""
    keys = rows["key"].dictionary_encode(null_encoding="encode")
    of_key = as_numpy(keys.indices)
    times = as_numpy(rows["timestamp"])
    order = np.argsort(of_key, kind="stable")
    begins = np.flatnonzero(np.diff(of_key[order], prepend=-1))
    first, last = (by.reduceat(times[order], begins) for by in (np.minimum, np.maximum))
    counts = np.diff(begins, append=len(order))
    names = map(group_of, keys.dictionary.to_pylist())
    return zip(names, counts.tolist(), first.tolist(), last.tolist(), strict=True)
