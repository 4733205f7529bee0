"""What-if over an archive: its rows are those of the pure replays, whatever the records are."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.history_what_if import life
from kafka_assignors._common.uuids import uuid_text
from kafka_assignors._groups.snapshots import ArchivedRecord
from kafka_assignors._groups.topics import SeenTopic, TopicsSeen
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._what_if.course import Course, CourseBuilder
from kafka_assignors.history._what_if.job import replay_all, what_if
from tests.support.group_histories import read_snapshots
from tests.support.kip848_log import TOPIC_IDS, Log, two_come
from tests.support.local_archives import rows_of
from tests.support.written_archives import write_archive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def archived(groups: Mapping[str, Sequence[ArchivedRecord]]) -> list[dict[str, Any]]:
    return rows_of(chain.from_iterable(groups.values()))


def archive(folder: Path, rows: Sequence[dict[str, Any]]) -> Archive:
    return Archive(write_archive(folder / "archive", [rows[::2], rows[1::2]]))


def lived(group: str, partition: int) -> list[ArchivedRecord]:
    return [
        ArchivedRecord(group_metadata_key(group), value, partition, 10 * number, time * 1000, 0)
        for number, (time, value) in enumerate(life(group, 8, seed=3))
    ]


def course_of(group: str, records: Sequence[ArchivedRecord]) -> Course:
    builder = CourseBuilder(group, TopicsSeen.always({}))
    for snapshot in read_snapshots(records):
        builder.add(snapshot)
    return builder.build()


def test_rows_are_those_of_the_replays(tmp_path: Path) -> None:
    groups = {"billing": lived("billing", 3), "search": lived("search", 4), "alerts": lived("alerts", 3)}
    rows = archived(groups)
    # As they may stand in an archive: in any order, and some of them from two sources.
    rows = [*rows[::-1], *rows[:5]]
    assignors = ["range", "sticky", "kafka-python:cooperative-sticky"]
    scenarios = ["as it was", "static members"]

    found = what_if(archive(tmp_path, rows), assignors=assignors, scenarios=scenarios)

    wanted = tuple((scenario, tuple(assignors)) for scenario in scenarios)
    expected = [
        row
        for group, records in sorted(groups.items())
        for row in replay_all(course_of(group, records), wanted, 0)
    ]
    assert found == expected
    assert all(row.rebalances == 7 for row in expected if row.scenario == "as it was")


def test_what_happened_is_told_whatever_the_scenarios(tmp_path: Path) -> None:
    records = archive(tmp_path, archived({"g": lived("g", 1)}))

    found = what_if(records, assignors=["range"], scenarios=["static members"])

    assert [(row.assignor, row.scenario) for row in found] == [
        ("actual", "as it was"),
        ("range", "static members"),
    ]


@pytest.mark.core
def test_what_cannot_be_read_or_replayed_counts_as_failed(tmp_path: Path) -> None:
    good = lived("good", 1)
    half = lived("half", 2)
    half[3] = half[3]._replace(value=b"\0\3 and no more")
    bad = [ArchivedRecord(group_metadata_key("bad"), b"\0\3", 2, 5, 5_000_000, None)]
    deleted = [ArchivedRecord(group_metadata_key("deleted"), None, 2, 7, 5_000_000, None)]
    rows = archived({"good": good, "half": half, "bad": bad, "deleted": deleted})

    found = what_if(archive(tmp_path, rows), assignors=["range"], scenarios=["as it was"])

    assert {(row.group, row.assignor): (row.rebalances, row.failed) for row in found} == {
        ("good", "actual"): (7, 0),
        ("good", "range"): (7, 0),
        ("half", "actual"): (6, 1),
        ("half", "range"): (6, 1),
        ("bad", "actual"): (0, 1),
        ("bad", "range"): (0, 1),
    }


def test_groups_of_kip848_are_replayed(tmp_path: Path) -> None:
    log = Log()
    two_come(log)
    log.at(12)
    log.has("a", 2, "t0 t1")
    log.has("b", 2, "t2 t3")
    kept = archive(tmp_path, archived({"g": log.records}))
    kept.add_topics([SeenTopic(topic, uuid_text(topic_id), 4) for topic, topic_id in TOPIC_IDS.items()])

    found = what_if(kept, assignors=["kip848:uniform", "range"], scenarios=["as it was"])

    moved = {"actual": 2, "kip848:uniform": 2, "range": 2}
    assert {row.assignor: row.moved for row in found} == moved
    assert all(row.failed == 0 for row in found)


@pytest.mark.core
def test_wrong_names_are_said_before_anything_is_run(tmp_path: Path) -> None:
    records = archive(tmp_path, archived({"g": lived("g", 1)[:1]}))

    with pytest.raises(ValueError, match="there is no assignor 'stick'"):
        what_if(records, assignors=["stick"])
    with pytest.raises(ValueError, match="there is no scenario 'tomorrow'"):
        what_if(records, scenarios=["tomorrow"])
    with pytest.raises(ValueError, match="there is no scenario to replay"):
        what_if(records, scenarios=[])
