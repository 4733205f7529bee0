"""What an archive has, in short."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from kafka_assignors._common.times import moment
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._arrow import as_numpy
from kafka_assignors.history._counts import Counts, tally
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._records import Selection


@dataclass(frozen=True, kw_only=True)
class ArchiveInfo:
    """What an archive has.

    Attributes:
        archive: Its URI.
        version: Its version; see docs/history_archive.md.
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
    """Count what is in an archive; of groups only records from `since` on. For the rest see `metrics`.

    Raises:
        SparkError: Spark failed.
    """
    selection = Selection(since=since, until=until, groups=groups, every_record=True, cut=True)
    count = partial(_count, selection=selection)
    engine = engine or Engine.fitting()
    columns = ("source", "type", "count", "key", "timestamp")
    rows = engine.map_rows(archive, columns, count).rows
    sources: defaultdict[str, Counts] = defaultdict(Counts)
    records: Counter[str] = Counter()
    for row in rows:
        if "source" in row:
            sources[row["source"]] += row["counts"]
        elif row["group"] is not None:
            records[row["group"]] += row["count"]
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
        sources=dict(sorted(sources.items())),
        since=min((row["first"] for row in rows if "first" in row), default=None),
        until=max((row["last"] for row in rows if "last" in row), default=None),
        groups=dict(sorted(records.items(), key=lambda one: (-one[1], one[0]))),
    )


def _count(batches: Iterator[Any], _: object, *, selection: Selection) -> Iterator[dict[str, Any]]:
    """Rows of each source, and of each group: how many records it has."""
    sources: defaultdict[str, Counts] = defaultdict(Counts)
    groups: dict[str | None, tuple[int, int, int]] = {}  # how many records, the first time and the last

    def tallied() -> Iterator[Any]:
        for batch in batches:
            if batch.num_rows:
                sources[batch["source"][0].as_py()] += tally(batch)
            yield batch

    for rows in selection.of(tallied()):
        times = as_numpy(rows["timestamp"]).tolist()
        for group, time_us in zip(rows["group"].to_pylist(), times, strict=True):
            count, first, last = groups.get(group, (0, time_us, time_us))
            groups[group] = count + 1, min(first, time_us), max(last, time_us)
    for source, counts in sources.items():
        yield {"source": source, "counts": counts}
    for group, (count, first, last) in groups.items():
        yield {"group": group, "count": count, "first": moment(first), "last": moment(last)}
