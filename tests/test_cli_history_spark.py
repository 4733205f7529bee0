"""`kafka-assignors history` from a dump to a page, on Spark, of groups whose lives were simulated."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from kafka_assignors.assignors import CooperativeStickyAssignor, RangeAssignor
from kafka_assignors.cli.main import main
from kafka_assignors.coordinator import MemberSettings, Simulation
from kafka_assignors.history.archive import Archive
from kafka_assignors.history.log import Topic
from kafka_assignors.history.session import spark_session
from kafka_assignors.protocol.offsets_topic import encode_group_metadata, group_metadata_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kafka_assignors.assignors import Assignor

pytestmark = pytest.mark.timeout(600)  # the first test also starts Spark

BEGAN_MS = 1_767_268_800_000  # 2026-01-01 12:00 UTC
TOPICS = {"orders": 8, "payments": 4}


def life(group_id: str, assignor: type[Assignor]) -> Iterator[dict[str, Any]]:
    """Three join, one is killed and is started again, one leaves: the records of each generation."""
    group = Simulation(TOPICS, [assignor], member=MemberSettings(session_timeout_ms=6000))
    written: list[int] = []

    def go_on() -> Iterator[dict[str, Any]]:
        while True:
            stable = group.group.state == "Stable"
            if stable and group.group.generation not in written:
                written.append(group.group.generation)
                value = group.group.record()
                yield {
                    "key": base64.b64encode(group_metadata_key(group_id)).decode(),
                    "value": base64.b64encode(encode_group_metadata(value)).decode(),
                    "timestamp": BEGAN_MS + round(group.now * 1000),
                }
            if stable and all(member.stable for member in group.members.values() if member.running):
                return
            group.run(0.05)

    for name in "abc":
        group.join(name)
    yield from go_on()
    group.members["b"].crash()
    group.run(20)
    yield from go_on()
    group.join("b again")
    group.run(4)
    yield from go_on()
    group.members["c"].leave()
    group.run(4)
    yield from go_on()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("history")
    spark_session("local[2]", settings={"spark.sql.shuffle.partitions": "4"})
    dump = folder / "dump.jsonl"
    records = [*life("range-group", RangeAssignor), *life("coop-group", CooperativeStickyAssignor)]
    bad = {"key": base64.b64encode(b"\0\2\0\1g").decode(), "value": "AAA=", "timestamp": BEGAN_MS}
    lines = [
        json.dumps({**record, "partition": 0, "offset": offset})
        for offset, record in enumerate([*records, bad])
    ]
    dump.write_text("\n".join(lines), encoding="utf-8")
    assert main(["history", "import", str(folder / "archive"), str(dump)]) == 0
    # The topics as a capture sees them now: one of them grew after all that is in the archive.
    now = {**TOPICS, "orders": 80}
    Archive(folder / "archive").add_topics(
        [Topic(topic=topic, topic_id=f"id of {topic}", partitions=count) for topic, count in now.items()]
    )
    return str(folder / "archive")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main(["history", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


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
    rows = pq.read_table(tmp_path / "rebalances").to_pylist()
    # The hand-over of the cooperative group is no rebalance of its own.
    assert [row["group"] for row in rows].count("coop-group") == 3
    assert all(row["moved"] >= row["least_moved"] for row in rows)


def test_metrics_of_one_group_are_shown_as_a_table(archive: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["history", "metrics", archive, "--group", "range-*"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["group", "rebalances", "a"]
    assert row.split()[:2] == ["range-group", "3"]


def test_what_if_compares_with_what_happened(archive: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = run(capsys, "what-if", archive, "--assignor", "range", "--scenario", "as it was")
    assert {(row["group"], row["assignor"]): (row["moved"], row["failed"]) for row in rows} == {
        **{(group, how): (12, 0) for group in ("coop-group", "range-group") for how in ("actual", "range")},
        # Of a group whose only record cannot be read, nothing can be replayed.
        **{("g", how): (0, 1) for how in ("actual", "range")},
    }


def test_what_if_measures_a_scenario_alone_against_what_happened(
    archive: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["what-if", archive, "--group", "range-group", "--assignor", "sticky"]
    capsys.readouterr()
    assert main(["history", *asked, "--scenario", "static members"]) == 0
    said, _, *rows, _, _ = capsys.readouterr().out.splitlines()
    assert said == "range-group: nothing tried would have been better than what happened"
    assert [row.split()[0] for row in rows] == ["actual", "sticky"]


def test_an_assignor_that_there_is_not_is_refused(archive: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "what-if", archive, "--assignor", "rnage"]) == 2
    assert "kafka-assignors history what-if: there is no assignor 'rnage'" in capsys.readouterr().err


def test_tables_are_decoded_and_what_cannot_be_is_counted(
    archive: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = run(capsys, "tables", archive, str(tmp_path / "tables"))
    assert counts["read"] == counts["decoded"] + 1
    assert (counts["rejected"], counts["rows"]["rejected"]) == (1, 1)
    assert counts["rows"]["records"] == counts["decoded"]
    (generations,) = (tmp_path / "tables").glob("run-*/generations")
    rows = pq.read_table(generations).to_pylist()
    assert {row["protocol"] for row in rows} == {"range", "cooperative-sticky"}
    assert len(rows) == counts["decoded"]


def test_there_is_nothing_to_merge_in_an_archive_of_dumps(
    archive: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "merge", archive) == {"merged": 0}
    assert main(["history", "merge", archive]) == 0
    assert capsys.readouterr().out == f"{archive}: nothing to merge\n"


def test_a_report_is_a_page_on_all_groups(
    archive: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "groups.html"
    told = run(capsys, "report", archive, str(page), "--assignor", "sticky")
    text = page.read_text(encoding="utf-8")
    assert told["bytes"] == len(text.encode())
    assert text.count("<svg") >= 4  # a strip and a timeline for each group
    assert "range-group" in text
    assert "coop-group" in text
    assert "static members" in text.lower() or "static membership" in text.lower()


def test_a_report_on_nothing_is_refused(
    archive: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", "report", archive, str(tmp_path / "x.html"), "--group", "nobody"]) == 2
    assert capsys.readouterr().err.endswith("there is nothing to report on: no record of a group is meant\n")


def test_a_folder_that_is_no_archive_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "metrics", str(tmp_path)]) == 2
    assert "is no archive of groups' history" in capsys.readouterr().err
