"""What-if for all groups of an archive: the course of each group, replayed."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from kafka_assignors._common.escaping import get_logger
from kafka_assignors._groups.saving import ACTUAL, AS_IT_WAS, WhatIf
from kafka_assignors._groups.snapshots import ArchivedRecord
from kafka_assignors._groups.topics import TopicsSeen, seen_and_names
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._records import Selection
from kafka_assignors.history._snapshots import SnapshotReader, follow
from kafka_assignors.history._what_if.assignors import LOAD_AWARE, leader_of
from kafka_assignors.history._what_if.course import Course, CourseBuilder
from kafka_assignors.history._what_if.replay import hottest_of, loads_of, replay_course, row_of
from kafka_assignors.history._what_if.scenarios import STATIC, scenario_of

log = get_logger(__name__)

ASSIGNORS: Final = ("range", "sticky", "cooperative-sticky", "kip848:uniform")
"""What groups are replayed with by default, in what-if and in reports."""

SCENARIOS: Final = (AS_IT_WAS, STATIC)
"""How they are replayed by default."""

NO_COMMITS: Final = "no commits in the archive"
UNREADABLE: Final = "its commits cannot be read"
"""The problems of a group that cannot be replayed by load."""

Wanted = tuple[tuple[str, tuple[str, ...]], ...]
"""What is to be replayed: scenarios, and the assignors of each."""


def what_if(
    archive: Archive,
    *,
    assignors: Sequence[str] = ASSIGNORS,
    scenarios: Sequence[str] = SCENARIOS,
    since: datetime | None = None,
    until: datetime | None = None,
    groups: Sequence[str] = (),
    engine: Engine | None = None,
) -> list[WhatIf]:
    """Replay the history of each group.

    Args:
        archive: The archive.
        assignors: Names as `leader_of` takes them; `load-aware` needs commits. What happened is added.
        scenarios: "as it was", "static members".
        since: Groups begin with their state at this time; naive times are UTC.
        until: Only records before then.
        groups: Patterns of groups' names, such as "orders-*"; all groups if there are none.
        engine: What does the work; `Engine.fitting` by default.

    Returns:
        A row for each group, scenario and assignor. What cannot be read or replayed counts as failed.

    Raises:
        ValueError: There is no such assignor or scenario, or nothing to do.
        SparkError: Spark failed.
    """
    wanted = check_wanted(assignors, scenarios)
    topics, names = seen_and_names(archive.topics())
    task = partial(replay_group, wanted=wanted, topics=topics, topic_names=names)
    selection = Selection(since=since, until=until, groups=groups, commits=True)
    engine = engine or Engine.fitting(replaying=True)
    return engine.map_groups(archive, selection, task).rows


def replay_group(
    group: str,
    records: Iterable[ArchivedRecord],
    _: object = None,
    *,
    wanted: Wanted,
    topics: TopicsSeen,
    topic_names: Mapping[str, str],
) -> list[WhatIf]:
    """Replay one group."""
    builder, reader = CourseBuilder(group, topics), SnapshotReader(topic_names)
    for _ in follow(builder.commits.without(records), reader, builder.add):
        pass
    return replay_all(builder.build(), wanted, reader.rejected)


def check_wanted(assignors: Sequence[str], scenarios: Sequence[str]) -> Wanted:
    """What is to be replayed with each group, each once; a ValueError if there is none of the name."""
    chosen = tuple(dict.fromkeys(name for name in assignors if name != ACTUAL))
    for name in chosen:
        leader_of(name)
    for name in scenarios:
        scenario_of(name)
    if not scenarios:
        raise ValueError(f"there is no scenario to replay: give at least {AS_IT_WAS!r}")
    return tuple((name, chosen) for name in dict.fromkeys(scenarios))


def replay_all(course: Course, wanted: Wanted, broken: int) -> list[WhatIf]:
    """What happened in one group, and its replays.

    A group that no assignor of consumers could assign, or that never had members, has none.
    """
    if not course.steps and not broken:
        return []
    began = broken + (not course.began_well)
    rows = [row_of(course, course.happened, began, hottest=hottest_of(loads_of(course)))]
    problem = UNREADABLE if course.commits.rejected else NO_COMMITS
    for scenario, assignors in wanted:
        unknown = [name for name in assignors if name == LOAD_AWARE and not course.commits]
        try:
            changed = scenario_of(scenario)(course)
            if scenario != AS_IT_WAS and changed is course:
                continue  # it changes nothing, as where all members are static already
            replays = replay_course(changed, [name for name in assignors if name not in unknown])
        except Exception:
            log.exception("The history of group %s cannot be replayed (%s)", course.group, scenario)
            failed = broken + len(course.steps)
            rows += [row_of(course, (), failed, assignor=name, scenario=scenario) for name in assignors]
            continue
        row = partial(row_of, changed, scenario=scenario)
        rows += [
            row(one.rebalances, broken + one.failed_before, assignor=one.name, hottest=hottest_of(one.loads))
            for one in replays
        ]
        rows += [row((), 0, assignor=name, problem=problem) for name in unknown]
    return rows
