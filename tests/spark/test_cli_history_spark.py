"""`kafka-assignors history` from a dump to a page, on Spark, of groups whose lives were simulated."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kafka_assignors._assignors import Assignor, CooperativeStickyAssignor, RangeAssignor
from kafka_assignors._cli.main import main
from kafka_assignors._groups.snapshots import ArchivedRecord
from kafka_assignors._groups.topics import SeenTopic
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._schemas import REBALANCES, TABLES
from tests.support.archives import group as group_value, row
from tests.support.delta_tables import files_of, rows_of
from tests.support.dumps import write_dump
from tests.support.group_histories import RecordedGroup
from tests.support.written_archives import write_archive

BEGAN_US = 1_767_268_800_000_000  # 2026-01-01 12:00 UTC
TOPICS = {"orders": 8, "payments": 4}
DAY = 86_400


def life(group_id: str, assignor: type[Assignor]) -> list[ArchivedRecord]:
    """Three join, one is killed and is started again, one leaves: the records of each generation."""
    group = RecordedGroup(TOPICS, assignor)
    for name in "abc":
        group.simulation.join(name)
    group.settle()
    group.simulation.members["b"].crash()
    group.run(20)
    group.simulation.join("b again")
    group.settle()
    group.simulation.members["c"].leave()
    group.settle()
    return [one._replace(key=group_metadata_key(group_id)) for one in group.records]


# The commands take over the session that is there.
pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]


@pytest.fixture(scope="module")
def archive(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:  # noqa: ARG001 - see above
    folder = tmp_path_factory.mktemp("history")
    records = [*life("range-group", RangeAssignor), *life("coop-group", CooperativeStickyAssignor)]
    records.append(ArchivedRecord(b"\0\2\0\1g", b"\0\0", 0, 0, 0, None))  # which nobody can decode
    numbered = [one._replace(offset=offset) for offset, one in enumerate(records)]
    write_dump(folder / "dump", numbered, later_us=BEGAN_US)
    assert main(["history", "import", str(folder / "archive"), str(folder / "dump")]) == 0
    # The topics as a capture sees them now: one of them grew after all that is in the archive.
    now = {**TOPICS, "orders": 80}
    Archive(folder / "archive").add_topics(
        [SeenTopic(topic=topic, topic_id=f"id of {topic}", partitions=count) for topic, count in now.items()]
    )
    return str(folder / "archive")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main(["history", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.core
def test_metrics_tell_the_groups_and_why_they_rebalanced(
    archive: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run(capsys, "metrics", archive, "--out", str(tmp_path))
    assert {(row["group"], row["rebalances"], row["members"]) for row in found} == {
        ("range-group", 3, 2),
        ("coop-group", 3, 2),
    }
    kinds = {"member gone", "member joined", "member left"}
    assert all({*row["reasons"]} <= kinds | {"member restarted"} for row in found)
    rows = rows_of(tmp_path / "rebalances", REBALANCES)
    # The hand-over of the cooperative group is no rebalance of its own.
    assert [row["group"] for row in rows].count("coop-group") == 3
    assert all(row["moved"] >= row["least_moved"] for row in rows)


def test_times_in_json_are_utc_wherever_it_runs(
    archive: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "America/New_York")
        time.tzset()
        found = run(capsys, "metrics", archive, "--group", "range-*")
    time.tzset()
    assert [row["since"][:16] for row in found] == ["2026-01-01 12:00"]
    assert [row["since"][-6:] for row in found] == ["+00:00"]


@pytest.mark.core
def test_what_if_compares_with_what_happened(archive: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = run(capsys, "what-if", archive, "--assignor", "range", "--scenario", "as it was")
    assert {(row["group"], row["assignor"]): (row["moved"], row["failed"]) for row in rows} == {
        **{(group, how): (12, 0) for group in ("coop-group", "range-group") for how in ("actual", "range")},
        # Of a group whose only record cannot be read, nothing can be replayed.
        **{("g", how): (0, 1) for how in ("actual", "range")},
    }


@pytest.mark.core
def test_tables_are_decoded_and_what_cannot_be_is_counted(
    archive: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = run(capsys, "tables", archive, str(tmp_path / "tables"))
    assert counts["read"] == counts["decoded"] + 1
    assert (counts["rejected"], counts["rows"]["rejected"]) == (1, 1)
    assert counts["rows"]["records"] == counts["decoded"]
    rows = rows_of(tmp_path / "tables" / "generations", TABLES["generations"])
    assert {row["protocol"] for row in rows} == {"range", "cooperative-sticky"}
    assert len(rows) == counts["decoded"]


DAYS = [
    [row(group_metadata_key("g"), group_value(1), offset=day * DAY + at) for day in range(3)]
    for at in range(2)
]
"""Two batches of three days."""


def test_maintenance_is_shown_and_done_if_that_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = write_archive(tmp_path, DAYS)
    before = run(capsys, "info", archive)
    shown = run(capsys, "maintain", archive)
    assert [[path.split("/")[1] for path in day] for day in shown.pop("compacted")] == [
        [f"day=2026-01-0{number}"] * 2 for number in (1, 2, 3)
    ]
    assert shown == {"executed": False, "removed": [], "deleted": [], "bad": []}
    assert run(capsys, "info", archive) == before
    assert main(["history", "maintain", archive]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{archive}: 6 files of 3 days (0.0 MB) would be made one for each day",
        "0 files would be deleted: no version of the last 7 days has them",
        "nothing is changed: --execute does it",
    ]
    assert main(["history", "maintain", archive, "--execute"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{archive}: 6 files of 3 days (0.0 MB) made one for each day",
        "0 files deleted: no version of the last 7 days has them",
    ]
    after = run(capsys, "info", archive)
    assert (before["files"], after["files"]) == (6, 3)
    assert after["version"] > before["version"]
    assert after | {name: before[name] for name in ("files", "bytes", "version")} == before
    again = run(capsys, "maintain", archive, "--execute")
    assert again == {"executed": True, "compacted": [], "removed": [], "deleted": [], "bad": []}
    assert run(capsys, "info", archive)["version"] == after["version"]


def test_an_archive_says_its_version_and_size(archive: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "info", archive)
    files = files_of(f"{archive}/records")
    assert (found["archive"], found["files"]) == (archive, len(files))
    assert found["bytes"] == sum(path.stat().st_size for path in files)
    assert found["version"] == DeltaTable(f"{archive}/records").version()
    assert main(["history", "info", archive]) == 0
    line = f"version {found['version']}: {len(files)} file{'s' * (len(files) > 1)}, 0.0 MB"
    assert line in capsys.readouterr().out.splitlines()


def test_properties_of_a_store_come_from_a_file(
    archive: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "store.properties"
    config.write_text("# of the store\n\nAWS_REGION = eu-central-1\n")
    assert run(capsys, "info", archive, "--store-config", str(config))["files"]
    config.write_text("AWS_REGION\n")
    assert main(["history", "info", archive, "--store-config", str(config)]) == 2
    assert f"{config}: AWS_REGION has no value" in capsys.readouterr().err


def test_a_report_on_nothing_is_refused(
    archive: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", "report", archive, str(tmp_path / "x.html"), "--group", "nobody"]) == 2
    assert capsys.readouterr().err.endswith(
        "nothing to report on: the archive has no records of these groups at that time\n"
    )
