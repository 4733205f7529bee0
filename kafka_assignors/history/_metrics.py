"""How restless groups were: their rebalances, and a summary of each group."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Final, Self

import pyarrow as pa

from kafka_assignors._groups.activity import GroupFollower
from kafka_assignors._groups.reasons import RESTARTED
from kafka_assignors._groups.rebalances import Rebalance
from kafka_assignors._groups.snapshots import ArchivedRecord, Snapshot
from kafka_assignors._groups.topics import TopicsSeen, seen_and_names
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._arrow import batch_of
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._records import Selection
from kafka_assignors.history._schemas import GROUPS, REBALANCES
from kafka_assignors.history._snapshots import SnapshotReader, follow
from kafka_assignors.history._store.location import locate
from kafka_assignors.history._store.writing import TaskFiles
from kafka_assignors.history._tables.replaced import replacing

MANIFEST: Final = "metrics.json"
SCHEMAS: Final = {"rebalances": REBALANCES, "groups": GROUPS}

_AT_ONCE: Final = 32  # rebalances that are held until they are written: a move of theirs takes 400 bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """A row of `schemas.GROUPS`, whose comments say what the fields are; times are in UTC."""

    group: str
    since: datetime
    until: datetime
    rebalances: int
    per_day: float | None
    moved: int
    least_moved: int
    needless: int
    unowned_seconds: float
    longest_seconds: float
    members: int
    seen_members: int
    returned: int
    flapping: Sequence[str] = ()
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def mostly(self) -> tuple[str, ...]:
        """The kinds of reasons that most rebalances had; a restart alone, as it comprises gone and joined."""
        most = max(self.reasons.values(), default=0)
        kinds = tuple(sorted(kind for kind, often in self.reasons.items() if often == most))
        return (RESTARTED,) if RESTARTED in kinds else kinds

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """The row as an object; its reasons are pairs, as a map is to pyarrow."""
        return cls(**{**row, "reasons": dict(row["reasons"])})


def metrics(
    archive: Archive,
    out: str | os.PathLike[str] | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    groups: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    engine: Engine | None = None,
) -> list[GroupSummary]:
    """Measure how restless groups were.

    Args:
        archive: The archive.
        out: The folder or URI of the tables `rebalances` and `groups`, which replace those there; or None.
        since: Groups begin with their state at this time; naive times are UTC.
        until: Only records before then.
        groups: Patterns of groups' names, such as "orders-*"; all groups if there are none.
        options: Of the store of `out`; see `Archive`.
        engine: What does the work; `Engine.fitting` by default.

    Returns:
        The groups, those with the most rebalances first.

    Raises:
        WrongPlaceError: Tables cannot be there: it is no place, an archive, or has files of others.
        TablesBusyError: Somebody else has replaced them meanwhile.
        StoreError: The store does not let them be written.
        SparkError: Spark failed.
    """
    selection = Selection(since=since, until=until, groups=groups)
    where = None if out is None else locate(out, options)
    with nullcontext() if where is None else replacing(where, MANIFEST, SCHEMAS) as new:
        topics, names = seen_and_names(archive.topics())
        task = partial(measure_group, topics=topics, topic_names=names)
        engine = engine or Engine.fitting()
        done = engine.map_groups(archive, selection, task, where=where)
        if new is not None:
            new.update(done.files)
    return sorted(done.rows, key=lambda one: (-one.rebalances, one.group))


def measure_group(
    group: str,
    records: Iterable[ArchivedRecord],
    files: TaskFiles | None,
    *,
    topics: TopicsSeen,
    topic_names: Mapping[str, str],
) -> Iterator[GroupSummary]:
    """Measure one group, if it has a snapshot; its rebalances go into files."""
    follower = GroupFollower(topics, moves=files is not None)
    rebalances = rebalances_of(records, SnapshotReader(topic_names), follower)
    while some := [*islice(rebalances, _AT_ONCE)]:
        if files is not None:
            files.write("rebalances", REBALANCES, batch_of([one.values() for one in some], REBALANCES))
    if follower.activity is not None:
        row = follower.activity.row(group)
        if files is not None:
            files.write("groups", GROUPS, pa.RecordBatch.from_pylist([row], schema=GROUPS))
        yield GroupSummary.of(row)


def rebalances_of(
    records: Iterable[ArchivedRecord],
    reader: SnapshotReader,
    follower: GroupFollower,
    also: Callable[[Snapshot], object] = lambda _: None,
) -> Iterator[Rebalance]:
    """The rebalances of a group; `also` is called with each of its snapshots."""

    def take(snapshot: Snapshot) -> list[Rebalance]:
        also(snapshot)
        return follower.add(snapshot)

    for found in follow(records, reader, take):
        yield from (one for one in found if not one.quiet)
    yield from (one for one in follower.finish() if not one.quiet)
