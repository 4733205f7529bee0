"""What an archive has, in short."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

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
    columns = ("source", "type", "count", "key", "timestamp")
    tallies: Counter[tuple[Any, ...]] = Counter()
    records: Counter[str] = Counter()
    times: list[int] = []
    for of_sources, of_groups, of_times in engine.map_rows(archive, columns, count).rows:
        tallies.update({(source, kind, kept): number for source, kind, kept, number in of_sources})
        records.update(of_groups)
        times += of_times
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
            name: counts_of((*one[1:], number) for one, number in tallies.items() if one[0] == name)
            for name in sorted({source for source, _, _ in tallies})
        },
        since=moment(min(times)) if times else None,
        until=moment(max(times)) if times else None,
        groups=dict(sorted(records.items(), key=lambda one: (-one[1], one[0]))),
    )


def _count(batches: Iterator[Any], _: object, *, selection: Selection) -> Iterator[tuple[Any, ...]]:
    """Of each source and type how many records there are; of each group how many; the first and last time."""
    sources: Counter[tuple[Any, ...]] = Counter()
    groups: Counter[str] = Counter()
    times: list[int] = []
    is_meant = meant(selection.groups)

    def tallied() -> Iterator[Any]:
        for batch in batches:
            if batch.num_rows:
                source = batch["source"][0].as_py()
                sources.update({(source, kind, kept): count for kind, kept, count in tally(batch)})
            yield batch

    for rows in selection.in_time(tallied()):
        timed = zip(rows["key"].to_pylist(), as_numpy(rows["timestamp"]).tolist(), strict=True)
        chosen = [(group, time_us) for key, time_us in timed if is_meant(group := group_of(key))]
        groups.update(group for group, _ in chosen if group is not None)
        times += [time_us for _, time_us in chosen]
        times = [min(times), max(times)] if times else []
    yield [(*one, count) for one, count in sources.items()], groups, times
