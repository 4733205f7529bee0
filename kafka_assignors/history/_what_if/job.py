"""What-if for all groups of an archive, on Spark.

    records -> decoded once -> the course of each group -> replays

A course is what a replay needs of a group, in a tenth of its records' bytes. Where there are fewer groups
than cores, each is sent once for each assignor and scenario; else it is replayed where it was made.

Of a group with 20 members and 200 partitions a task keeps 7 KiB of each generation with four assignors,
however large the records are.
"""

from __future__ import annotations

import logging
import pickle
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_assignors._groups.saving import ACTUAL
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors.history._schemas import WHAT_IF
from kafka_assignors.history._snapshots import SnapshotReader, read_safely
from kafka_assignors.history._what_if.assignors import leader_of
from kafka_assignors.history._what_if.course import Course, CourseBuilder
from kafka_assignors.history._what_if.replay import Replay, replay_course
from kafka_assignors.history._what_if.scenarios import AS_IT_WAS, Scenario

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from kafka_assignors._groups.snapshots import ArchivedRecord, Snapshot
    from kafka_assignors.history._pieces import HistoryPart

log = logging.getLogger(__name__)

ASSIGNORS: Final = ("range", "sticky", "cooperative-sticky", "kip848:uniform")
"""What groups are replayed with by default, in what-if and in reports."""

SCENARIOS: Final = (AS_IT_WAS.name, "static members")
"""How they are replayed by default."""

COURSES: Final = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("number", pa.int32(), nullable=False),
        pa.field("course", pa.binary()),
    ]
)
"""The course of each group, pickled; a long one in several rows, by number."""

_TASKS_A_CORE: Final = 4
_COURSE_BYTES: Final = 64 * 2**20
"""Of a course in one row: Arrow's arrays of bytes end at 2 GiB."""

ReplayPart = tuple[tuple[Scenario, tuple[str, ...]], ...]
"""What one call has to do: scenarios, and the assignors of each."""


def what_if(
    records: DataFrame,
    *,
    assignors: Sequence[str] = ASSIGNORS,
    scenarios: Sequence[str] = SCENARIOS,
    topics: Mapping[str, int] | TopicsSeen | None = None,
    topic_names: Mapping[str, str] | None = None,
    split: bool | None = None,
) -> DataFrame:
    """Replay the history of each group.

    Args:
        records: An archive in the schema `ARCHIVE`, with a column `group`.
        assignors: Names as `leader_of` takes them. What happened comes in addition.
        scenarios: Names as `Scenario.of` takes them.
        topics: How many partitions each topic has, or had at what time, as far as that is known.
        topic_names: The name of each topic by its id, for groups of KIP-848.
        split: Whether each group is sent once for each assignor; by default where there are fewer groups than
            cores.

    Returns:
        In the schema `WHAT_IF`: a row for each group, scenario and assignor. What cannot be read or replayed
        counts as failed.

    Raises:
        ValueError: There is no such assignor or scenario, or nothing to do.
    """
    from kafka_assignors.history._chain import of_each_group  # noqa: PLC0415 - small archives need no Spark

    wanted = check_wanted(assignors, scenarios)
    seen, names = TopicsSeen.told(topics), dict(topic_names or {})
    cores = records.sparkSession.sparkContext.defaultParallelism
    if split is None:
        grouped = records.where("`group` is not null and key is not null").select("group").distinct()
        split = grouped.limit(cores).count() < cores

    def tell(group: str, _: HistoryPart, its: Iterator[ArchivedRecord]) -> Iterator[dict[str, Any]]:
        return tell_course(group, its, seen, names)

    # Left to itself, Spark goes by bytes, and makes fewer tasks of this than there is work for.
    courses = of_each_group(records, tell, COURSES, tasks=_TASKS_A_CORE * cores)
    return replay_courses(courses, wanted, split=split)


def tell_course(
    group: str, records: Iterable[ArchivedRecord], topics: TopicsSeen, topic_names: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """The course of a group, in rows of COURSES.

    Args:
        group: The group.
        records: Its records by partition and offset; one that comes twice counts once.
        topics: See `what_if`.
        topic_names: See `what_if`.
    """
    follower, reader = CourseFollower(group), SnapshotReader(topic_names)
    for record in records:
        follower.take(read_safely(reader, record))
    follower.take(reader.flush())
    return follower.rows(topics, undecoded=reader.rejected)


def read_course(rows: Iterable[Mapping[str, Any]]) -> tuple[Course, int]:
    """The course of a group in rows of COURSES, and how many of its records could not be read."""
    found: tuple[Course, int] = pickle.loads(b"".join(row["course"] for row in rows))  # noqa: S301 - our own
    return found


def check_wanted(assignors: Sequence[str], scenarios: Sequence[str]) -> tuple[ReplayPart, ...]:
    """What is to be replayed: all that is to be done with one group, in parts that can be done apart.

    Args:
        assignors: See `what_if`.
        scenarios: See `what_if`.

    Raises:
        ValueError: There is no such assignor or scenario, or nothing to do.
    """
    chosen = tuple(dict.fromkeys(name for name in assignors if name != ACTUAL))
    for name in chosen:
        leader_of(name)
    wanted = tuple(dict.fromkeys(Scenario.of(name) for name in scenarios))
    if not wanted:
        raise ValueError(f"there is no scenario to replay: give at least {AS_IT_WAS.name!r}")
    alone = [(scenario, (name,)) for scenario in wanted for name in chosen]
    return tuple((one,) for one in [(AS_IT_WAS, (ACTUAL,)), *alone])


def replay_courses(courses: DataFrame, parts: tuple[ReplayPart, ...], *, split: bool) -> DataFrame:
    """Replay the courses of groups.

    Args:
        courses: In schema COURSES, those of one group in one task and in order.
        parts: What to do; see `check_wanted`.
        split: Whether each part is a task of its own.

    Returns:
        In the schema `WHAT_IF`.
    """
    from pyspark.sql import functions as sf  # noqa: PLC0415 - small archives need no Spark
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - as above

    whole = tuple(chain.from_iterable(parts))

    def replay_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # One row at a time: a course can be large.
        single = (batch.slice(one, 1) for batch in batches for one in range(batch.num_rows))
        rows = (row for batch in single for row in batch.to_pylist())
        for (group, part), its in groupby(rows, key=lambda row: (row["group"], row.get("part"))):
            course, broken = read_course(its)
            replays = replay_parts(group, course, whole if part is None else parts[part], broken)
            if replays:
                yield pa.RecordBatch.from_pylist([row_of(replay) for replay in replays], schema=WHAT_IF)

    told = courses.select(*COURSES.names)
    if split:
        told = (
            told.withColumn("part", sf.explode(sf.lit([*range(len(parts))])))
            .repartition(max(len(parts), told.sparkSession.sparkContext.defaultParallelism), "group", "part")
            .sortWithinPartitions("group", "part", "number")
        )
    return told.mapInArrow(replay_all, from_arrow_schema(WHAT_IF))


class CourseFollower:
    """Makes the course of one group as its snapshots come; what it fails on counts as undecoded.

    Args:
        group: The group.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self._builder = CourseBuilder(group)
        self._broken = 0

    def take(self, snapshots: Iterable[Snapshot]) -> None:
        """Take the next snapshots."""
        for snapshot in snapshots:
            try:
                self._builder.add(snapshot)
            except Exception:
                log.exception(
                    "Leaving out group %s at %d/%d", self._group, snapshot.partition, snapshot.offset
                )
                self._broken += 1

    def course(self, topics: Mapping[str, int] | TopicsSeen) -> Course:
        """The course."""
        return self._builder.build(topics)

    def rows(self, topics: TopicsSeen, *, undecoded: int) -> Iterator[dict[str, Any]]:
        """The course as rows of COURSES.

        Args:
            topics: See `what_if`.
            undecoded: How many of the group's records could not be read.
        """
        told = pickle.dumps((self.course(topics), undecoded + self._broken), protocol=pickle.HIGHEST_PROTOCOL)
        for number, begin in enumerate(range(0, len(told), _COURSE_BYTES)):
            yield {"group": self._group, "number": number, "course": told[begin : begin + _COURSE_BYTES]}


def replay_parts(group: str, course: Course, part: ReplayPart, broken: int) -> list[Replay]:
    """Replay the course of one group.

    A group that no assignor of consumers could assign, or that never had members, has no replays.

    Args:
        group: The group.
        course: What was in its records.
        part: What to do.
        broken: How many of its records could not be read.
    """
    if not course.steps and not broken:
        return []
    replays: list[Replay] = []
    for scenario, each in groupby(part, key=lambda one: one[0]):
        assignors = [name for _, names in each for name in names]
        try:
            replays += replay_course(scenario.apply(course), assignors, scenario.name, undecoded=broken)
        except Exception:
            log.exception("The history of group %s cannot be replayed (%s)", group, scenario.name)
            failed = broken + len(course.steps)
            replays += [
                Replay(group=group, assignor=name, scenario=scenario.name, rebalances=(), undecoded=failed)
                for name in assignors
            ]
    return replays


def row_of(replay: Replay) -> dict[str, Any]:
    """A row in the schema `WHAT_IF`."""
    return {
        "group": replay.group,
        "assignor": replay.assignor,
        "scenario": replay.scenario,
        "rebalances": len(replay.rebalances),
        "moved": replay.moved,
        "imbalance": replay.imbalance,
        "worst_imbalance": replay.worst_imbalance,
        "unowned_seconds": replay.unowned_seconds,
        "failed": replay.failed,
    }
