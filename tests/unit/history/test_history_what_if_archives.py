"""What-if over an archive: its rows are those of the pure replays, whatever the records are."""

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from confluent_kafka import Message

from benchmarks.history_what_if import life
from kafka_assignors._cli.main import main
from kafka_assignors._common.times import moment
from kafka_assignors._groups.saving import WhatIf
from kafka_assignors._groups.snapshots import ArchivedRecord
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._info import info
from kafka_assignors.history._metrics import metrics
from kafka_assignors.history._records import begun
from kafka_assignors.history._report.job import report_archive
from kafka_assignors.history._source import to_rows
from kafka_assignors.history._tables.job import make_tables
from kafka_assignors.history._what_if.course import Course, CourseBuilder
from kafka_assignors.history._what_if.job import replay_all, what_if
from tests.support.commits import HOT, commit, commit_key, commits
from tests.support.group_histories import START_US, member, read_snapshots, recorded, snapshot
from tests.support.kip848_log import SEEN_TOPICS, Log, two_share
from tests.support.local_archives import rows_of
from tests.support.pages import listings
from tests.support.written_archives import write_archive

LOAD_AWARE: Final = ("--assignor", "load-aware", "--scenario", "as it was")
by_load = partial(what_if, assignors=["load-aware"], scenarios=["as it was"])


def archive(folder: Path, *lives: Iterable[ArchivedRecord]) -> Archive:
    """An archive of two batches, each with every other record."""
    rows = rows_of(chain(*lives))
    return Archive(write_archive(folder / "archive", [rows[::2], rows[1::2]]))


def lived(group: str, partition: int) -> list[ArchivedRecord]:
    return [
        ArchivedRecord(group_metadata_key(group), value, partition, 10 * number, time * 1000, 0)
        for number, (time, value) in enumerate(life(group, 8, seed=3))
    ]


def course_of(group: str, records: Sequence[ArchivedRecord]) -> Course:
    builder = CourseBuilder(group, TopicsSeen.always({}))
    for one in read_snapshots(records):
        builder.add(one)
    return builder.build()


def test_rows_are_those_of_the_replays(tmp_path: Path) -> None:
    groups = {"billing": lived("billing", 3), "search": lived("search", 4), "alerts": lived("alerts", 3)}
    # As they may stand in an archive: in any order, and some of them from two sources.
    records = [*chain(*groups.values())]
    records = [*records[::-1], *records[:5]]
    assignors = ["range", "sticky", "kafka-python:cooperative-sticky"]
    scenarios = ["as it was", "static members"]

    found = what_if(archive(tmp_path, records), assignors=assignors, scenarios=scenarios)

    wanted = tuple((scenario, tuple(assignors)) for scenario in scenarios)
    expected = [
        row
        for group, records in sorted(groups.items())
        for row in replay_all(course_of(group, records), wanted, 0)
    ]
    assert found == expected
    assert all(row.rebalances == 7 for row in expected if row.scenario == "as it was")


@pytest.mark.core
def test_what_cannot_be_read_or_replayed_counts_as_failed(tmp_path: Path) -> None:
    good = lived("good", 1)
    half = lived("half", 2)
    half[3] = half[3]._replace(value=b"\0\3 and no more")
    bad = [ArchivedRecord(group_metadata_key("bad"), b"\0\3", 2, 5, 5_000_000, None)]
    deleted = [ArchivedRecord(group_metadata_key("deleted"), None, 2, 7, 5_000_000, None)]

    found = what_if(archive(tmp_path, good, half, bad, deleted), assignors=["range"], scenarios=["as it was"])

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
    two_share(log)
    kept = archive(tmp_path, log.records)
    kept.add_topics(SEEN_TOPICS)

    found = what_if(kept, assignors=["kip848:uniform", "range"], scenarios=["as it was"])

    moved = {"actual": 2, "kip848:uniform": 2, "range": 2}
    assert {row.assignor: row.moved for row in found} == moved
    assert all(row.failed == 0 for row in found)


@pytest.mark.core
def test_wrong_names_are_said_before_anything_is_run(tmp_path: Path) -> None:
    records = archive(tmp_path, lived("g", 1)[:1])

    with pytest.raises(ValueError, match="there is no assignor 'stick'"):
        what_if(records, assignors=["stick"])
    with pytest.raises(ValueError, match="'tomorrow'; choose 'as it was' or 'static members'"):
        what_if(records, scenarios=["tomorrow"])
    with pytest.raises(ValueError, match="there is no scenario to replay"):
        what_if(records, scenarios=[])


# Commits


SHARED = [
    recorded(snapshot(1, 0, member("a", "t0 t1 t2 t3 t4 t5"))),
    recorded(snapshot(2, 600, member("a", "t0 t1 t2"), member("b", "t3 t4 t5"))),
]
"""a has all six partitions until b comes, after ten minutes, and takes half of them."""


def committed(begin: int, end: int, *, since_us: int = START_US, of: int = 0) -> list[ArchivedRecord]:
    """Commits of g from one second to another."""
    done = {partition: begin * rate for partition, rate in HOT.items()}
    found = commits(begin, end, HOT, done=done, of=of)
    return [one._replace(time_us=one.time_us + since_us) for one in found]


def hottest(rows: Iterable[WhatIf]) -> dict[str, float | None]:
    return {row.assignor: row.hottest and round(row.hottest, 6) for row in rows}


@pytest.mark.core
def test_commits_of_an_archive_tell_who_was_hottest_and_what_load_aware_had_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = [one._replace(key=group_metadata_key("without"), partition=1) for one in SHARED]
    there = archive(tmp_path, SHARED, committed(0, 1200), other)
    assert main(["history", "what-if", there.where.uri, *LOAD_AWARE, "--json"]) == 0
    rows = [WhatIf(**row) for row in json.loads(capsys.readouterr().out)]

    assert [hottest(row for row in rows if row.group == group) for group in ("g", "without")] == [
        {"actual": 1.4, "load-aware": 1.0},
        {"actual": None, "load-aware": None},
    ]
    assert {(row.group, row.assignor): row.problem for row in rows if row.problem} == {
        ("without", "load-aware"): "no commits in the archive"
    }
    assert main(["history", "what-if", there.where.uri, *LOAD_AWARE]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "g: load-aware would have had its hottest member at 1.00x, not 1.40x",
        "            scenario   rebalances  moved  imbalance  worst  hottest",
        "actual      as it was           1      3       0.00      0    1.40x",
        "load-aware  as it was           1      1       4.00      4    1.00x",
        "",
        "without: nothing was replayed",
        "        scenario   rebalances  moved  imbalance  worst",
        "actual  as it was           1      3       0.00      0",
        "load-aware: no commits in the archive",
        "",
        "in all, by what is recommended for each group: 0 fewer rebalances and 0 fewer moves",
    ]


def test_the_session_of_the_page_is_what_the_command_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (session,) = (one for one in listings("docs/history.md", "console") if "load-aware" in one)
    command, *printed = session.splitlines()
    records = [*SHARED, *committed(0, 1200)]
    billing = [one._replace(key=one.key.replace(b"\0\1g", b"\0\7billing", 1)) for one in records]
    there = archive(tmp_path, billing)
    assert main(shlex.split(command.replace("/srv/history", there.where.uri))[2:]) == 0
    assert capsys.readouterr().out.splitlines() == printed


def test_a_page_shows_who_was_hottest_and_what_was_not_replayed(tmp_path: Path) -> None:
    def cells(folder: str, *more: ArchivedRecord) -> list[list[str]]:
        there = archive(tmp_path / folder, SHARED, more)
        report_archive(there, tmp_path / "page.html", assignors=["load-aware"], scenarios=["as it was"])
        (table,) = re.findall("<h3>What if</h3>.*?</table>", (tmp_path / "page.html").read_text(), re.DOTALL)
        rows = (re.findall("<t[hd].*?>(.*?)</t[hd]>", row) for row in re.findall("<tr.*?</tr>", table))
        return [[re.sub("<.*?>", "", cell) for cell in row] for row in rows]

    assert cells("with", *committed(0, 1200)) == [
        ["With", "Rebalances", "Moved", "Uneven by", "Hottest", "Would have avoided"],
        ["What happened", "1", "3", "0 at worst 0", "1.40x", ""],
        ["The load-aware assignor", "1", "1", "4 at worst 4", "1.00x", "2 moves of partitions"],
    ]
    assert cells("without") == [
        ["With", "Rebalances", "Moved", "Uneven by", "Would have avoided"],
        ["What happened", "1", "3", "0 at worst 0", ""],
        ["The load-aware assignor", "not replayed", "no commits in the archive"],
    ]


def test_commits_of_a_group_of_kip848_count_as_well(tmp_path: Path) -> None:
    log = Log()
    two_share(log)
    log.at(700)
    log.gone("b")
    log.reached(3)
    log.has("a", 3, "t0 t1 t2 t3")
    (of,) = {one.partition for one in log.records}
    begin_us = log.records[0].time_us
    records = [*log.records, *committed(0, 600, since_us=begin_us, of=of)]
    kept = archive(tmp_path, sorted(records, key=attrgetter("time_us")))
    kept.add_topics(SEEN_TOPICS)

    found = hottest(by_load(kept))

    # Of four partitions t-0 has five eighths of the records: two and two are 6 to 2.
    assert found["actual"] == 1.5
    assert found["load-aware"] is not None


def test_commits_change_nothing_else(tmp_path: Path) -> None:
    def told(folder: str, *more: ArchivedRecord) -> list[Any]:
        there = archive(tmp_path / folder, SHARED, more)
        tables = make_tables(there, tmp_path / f"{folder} tables")
        return [metrics(there), info(there).groups, tables, what_if(there)[0].moved]

    assert told("without") == told("with", *committed(0, 1200))


def test_with_since_a_group_that_only_committed_from_then_on_is_left_out(tmp_path: Path) -> None:
    there = archive(tmp_path, SHARED, committed(0, 1200))

    def found(seconds: int) -> dict[str, float | None]:
        return hottest(by_load(there, since=moment(START_US + seconds * 1_000_000)))

    assert found(300) == {"actual": 1.4, "load-aware": 1.0}  # what came before b counts as known
    assert found(601) == {}


def test_with_since_commits_up_to_the_first_rebalance_are_known(tmp_path: Path) -> None:
    there = archive(tmp_path, SHARED, committed(0, 590))

    rows = by_load(there, since=moment(START_US + 300_000_000))

    assert {row.assignor: row.moved for row in rows} == {"actual": 3, "load-aware": 1}


@pytest.mark.parametrize(
    ("good", "problem", "hot"), [([], "its commits cannot be read", None), (committed(0, 1200), None, 1.4)]
)
def test_a_commit_that_cannot_be_read_is_passed_over(
    tmp_path: Path, good: list[ArchivedRecord], problem: str | None, hot: float | None
) -> None:
    bad = committed(0, 0)[0]._replace(value=b"\0\3", offset=9_999)

    actual, other = by_load(archive(tmp_path, SHARED, good, [bad]))

    assert (actual.rebalances, actual.failed, other.failed) == (1, 0, 0)
    assert (other.problem, hottest([actual])["actual"]) == (problem, hot)


def test_with_since_commits_are_passed_on_as_they_are_read() -> None:
    newer = committed(300, 1200)
    reading = iter([SHARED[0], *committed(0, 240), *newer])

    found = begun(reading, START_US + 300_000_000)

    assert [(one.time_us - START_US) // 1_000_000 for one, _ in zip(found, range(3), strict=False)] == [
        300
    ] * 3
    assert len([*reading]) > len(newer) - 3


def test_a_commit_takes_at_most_25_bytes(tmp_path: Path) -> None:
    chance, done = Random(1), [0.0] * 50
    found: list[ArchivedRecord] = []
    for minute in range(240):
        for partition, at in enumerate(sorted(chance.uniform(0, 60) for _ in done)):
            done[partition] += chance.expovariate(0.001)
            one = commit(60 * minute + at, round(done[partition]), topic="orders", partition=partition)
            found.append(one._replace(offset=100 * len(found) + chance.randrange(100)))
    there = Archive(write_archive(tmp_path / "archive", [rows_of(found)]))
    assert sum(file.size for file in there.files()) <= 25 * len(found)


def test_of_each_minute_the_first_commit_of_a_partition_is_kept_if_that_is_asked_for() -> None:
    one, two = commit_key("g", "t", 0), commit_key("g", "t", 1)
    seen = [(one, 60), (two, 61), (one, 70), (None, 80), (two, 119), (b"\0\2\0\1g", 119), (one, 120)]
    forgotten = 9  # an offset that expired: what comes behind it in its minute is kept
    messages = [
        Message(offset=offset, key=key, value=None if offset == forgotten else b"v", timestamp=(1, 1000 * at))
        for offset, (key, at) in enumerate([*seen, (one, 170), (two, 180), (two, 240), (two, 241)])
    ]

    def rows(minutes: dict[bytes, int] | None) -> list[tuple[int, int, int]]:
        batches = [to_rows(part, 0, minutes) for part in (messages[:7], messages[7:])]
        found = [row for batch in batches for row in batch.to_pylist()]
        return sorted((row["offset"], row["type"], row["count"]) for row in found)

    assert rows(None) == [(3, -1, 1), (5, 2, 1), (6, 1, 5), (10, 1, 4)]
    kept = [(offset, 1, 1) for offset in (0, 1, 6, 8, 10)]
    assert rows({}) == sorted([*kept, (3, -1, 1), (4, 1, 2), (5, 2, 1), (9, 1, 2)])
