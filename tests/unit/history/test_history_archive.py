"""Archives as folders, and what captures work out without Spark."""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Message
from rich.console import Console

from kafka_assignors._cli.arguments import moment
from kafka_assignors._cli.history_text import captured_lines, count_lines
from kafka_assignors._cli.main import main
from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._cluster.command_config import parse_command_config
from kafka_assignors._cluster.librdkafka import librdkafka_settings
from kafka_assignors._groups.topics import SeenTopic
from kafka_assignors.history import _limits as limits
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._archive_format import FORMAT, ArchiveBusyError, WrongArchiveError, log_of
from kafka_assignors.history._capture import Captured, _Job, show_capture
from kafka_assignors.history._counts import Counts, name_of_type
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._log import read_bounds, read_topic_id, read_topics
from kafka_assignors.history._metrics import metrics
from kafka_assignors.history._records import group_of
from kafka_assignors.history._schemas import KEPT_TYPES
from kafka_assignors.history._source import Stretch, advance, shares, to_rows
from kafka_assignors.history._spark import reason
from kafka_assignors.history._store.location import WrongPlaceError
from kafka_assignors.history._store.log import DataFile
from kafka_assignors.history._tables.job import make_tables
from tests.support.written_archives import add_batch


def test_a_folder_with_something_else_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(WrongArchiveError, match=r"not empty: it has letter\.txt; name another folder"):
        Archive.create(tmp_path)
    with pytest.raises(WrongArchiveError, match=r"it has no archive\.json"):
        Archive(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("name", ["records", "topics"])
def test_a_folder_with_somebody_s_own_records_is_no_archive(tmp_path: Path, name: str) -> None:
    own = tmp_path / name / "dump.parquet"
    own.parent.mkdir()
    own.write_text("mine")
    with pytest.raises(WrongPlaceError, match=f"{tmp_path}/{name} has files of others, such as dump.parquet"):
        Archive.create(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [own]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 3}', f"of format 3, and this version reads {FORMAT}"),
        ('{"format": 1}', f"of format 1, and this version reads {FORMAT}"),
        ('{"format": 2}', "an archive without its tables: there is no table at"),
    ],
)
def test_a_description_that_is_not_ours_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "archive.json").write_text(text)
    with pytest.raises(WrongArchiveError, match=message):
        Archive(tmp_path)


@pytest.mark.parametrize("damaged", [b"", b"\xff\xfe"])
def test_a_damaged_description_is_made_again_as_the_error_says(damaged: bytes, tmp_path: Path) -> None:
    Archive.create(tmp_path).belongs_to("c1", 3)
    (tmp_path / "archive.json").write_bytes(damaged)
    said = r"archive\.json: .* remove it: history capture makes it again"
    with pytest.raises(WrongArchiveError, match=said):
        Archive(tmp_path)
    (tmp_path / "archive.json").unlink()
    assert Archive.create(tmp_path).description.cluster_id == "c1"


class Cluster:
    """What a continuous capture asks a cluster for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name = "c1"
        self.topic_id = "id1"
        self.bounds = {0: (0, 5), 1: (0, 5)}
        self.admin: Any = SimpleNamespace(ask=lambda _: {"cluster_id": self.name})
        monkeypatch.setattr("kafka_assignors.history._capture.read_bounds", lambda _: dict(self.bounds))
        monkeypatch.setattr("kafka_assignors.history._capture.read_topic_id", lambda _: self.topic_id)

    def captured(self, folder: Path) -> _Job:
        """A capture that has read all that there is."""
        archive = Archive.create(folder)
        archive.belongs_to(self.name, len(self.bounds), self.topic_id)
        job = _Job(Engine.local(), archive, {}, self.bounds, 1_000)
        self.read(archive, job.left())
        assert job.left() == []
        return job

    def read(self, archive: Archive, left: Iterable[Stretch]) -> None:
        """Commit what a batch of it does."""
        archive.logs[0].commit(transactions={log_of(one.partition): one.end for one in left})


def test_a_continuous_capture_reads_partitions_that_are_new_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(monkeypatch)
    job = cluster.captured(tmp_path)
    cluster.bounds |= {2: (0, 9)}
    job.look_again(cluster.admin)
    assert job.left() == [Stretch(2, 0, 9)]
    cluster.read(Archive(tmp_path), [Stretch(2, 0, 9)])
    later = Archive(tmp_path)
    assert (later.frontier(), later.description.partitions) == ({0: 5, 1: 5, 2: 9}, 3)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"name": "c2"}, "is an archive of cluster c1, not of c2"),
        ({"bounds": {0: (0, 5)}}, "with 2 partitions, not 1: it was created again"),
        (
            {"bounds": {0: (0, 5), 1: (0, 4)}},
            "-1 up to offset 5, and the cluster's ends at 4: the topic was",
        ),
        (
            {"topic_id": "id2", "bounds": {0: (0, 9), 1: (0, 9)}},
            "is an archive of __consumer_offsets with id id1, not id2: it was created again",
        ),
    ],
    ids=["cluster", "fewer partitions", "shorter", "grown beyond the old one"],
)
def test_a_continuous_capture_ends_if_the_topic_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: dict[str, Any], said: str
) -> None:
    cluster = Cluster(monkeypatch)
    job = cluster.captured(tmp_path)
    vars(cluster).update(now)
    with pytest.raises(WrongArchiveError, match=said):
        job.look_again(cluster.admin)


def test_a_continuous_capture_sees_what_maintenance_has_put_in_place_of_dumps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(monkeypatch)
    job = cluster.captured(tmp_path)
    other = Archive(tmp_path)
    values = {"source": "dump-1", "day": "2026-03-01"}
    for number in range(2):
        old = other.files()
        merged = DataFile(f"source=dump-1/day=2026-03-01/{number}.parquet", 9, 1, values)
        other.logs[0].commit(add=[merged], remove=old)
        job.look_again(cluster.admin)
        assert [file.path for file in job.archive.files()] == [merged.path]


def test_a_continuous_capture_ends_if_another_capture_has_read_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(monkeypatch)
    job = cluster.captured(tmp_path)
    cluster.read(Archive(tmp_path), [Stretch(0, 5, 9)])
    with pytest.raises(ArchiveBusyError, match=r"another capture is writing into .* end one of the two"):
        job.look_again(cluster.admin)


def test_a_capture_says_once_how_much_retention_has_removed_since_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(monkeypatch)
    job = cluster.captured(tmp_path)  # up to 5 of each partition
    cluster.bounds = {0: (8, 12), 1: (9, 9), 2: (3, 4)}
    job.look_again(cluster.admin)
    archive = Archive(tmp_path)
    job = _Job(Engine.local(), archive, {}, cluster.bounds, 7)

    def read(*rest: Any) -> Counts:
        archive.logs[0].commit(transactions=rest[-1])
        return Counts()

    monkeypatch.setattr(archive, "append", read)
    while left := job.left():
        job.write_batch(left)
    assert (job.captured.offsets, job.captured.lost) == (7 + 4 + 1, 3 + 4)
    assert archive.frontier() == {0: 12, 1: 9, 2: 4}
    assert [*captured_lines(job.captured)][-1].startswith("7 of these offsets are lost: retention removed")


def test_an_archive_whose_making_was_ended_is_made_by_the_next_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("kafka_assignors.history._archive.describe", ended)
        with pytest.raises(KeyboardInterrupt):
            Archive.create(tmp_path)
    with pytest.raises(WrongArchiveError, match=r"it has no archive\.json"):
        Archive(tmp_path)
    assert Archive.create(tmp_path).files() == []


def test_topics_that_two_captures_note_at_once_are_noted_once(tmp_path: Path) -> None:
    archive = Archive.create(tmp_path)
    other = Archive(tmp_path)
    orders, events = SeenTopic("orders", "id1", 6), SeenTopic("events", "id2", 3)
    assert archive.add_topics([orders]) == 1
    assert other.add_topics([orders]) == 0
    assert archive.add_topics([orders, events]) == 1
    assert other.add_topics([orders, events]) == 0
    assert [one.topic for one in Archive(tmp_path).topics()] == ["orders", "events"]


def test_topics_of_brokers_that_give_them_no_ids_have_none() -> None:
    described = [
        {"name": "new", "error_code": 0, "partitions": [{}, {}], "topic_id": "0" * 32},
        {"name": "old", "error_code": 0, "partitions": [{}]},
        {"name": "gone", "error_code": 3, "partitions": []},
    ]
    admin: Any = SimpleNamespace(ask=lambda _: described)
    assert read_topics(admin) == [SeenTopic("new", "A" * 22, 2), SeenTopic("old", "", 1)]


@pytest.mark.parametrize(
    ("told", "topic_id"),
    [
        ({"topic_id": "00000000-0000-0000-0000-000000000000"}, ""),  # of a topic from before an upgrade
        ({"topic_id": "00000000-0000-0000-0000-000000000001"}, "AAAAAAAAAAAAAAAAAAAAAQ"),
        ({}, ""),
        ({"error_code": 29}, ""),
    ],
)
def test_the_offsets_topic_has_an_id_if_its_cluster_gave_it_one(told: dict[str, Any], topic_id: str) -> None:
    described = [{"name": "__consumer_offsets", "error_code": 0, "partitions": [{}], **told}]
    admin: Any = SimpleNamespace(ask=lambda _: described)
    assert read_topic_id(admin) == topic_id


@pytest.mark.parametrize(
    ("partitions", "said"),
    [
        ([], "the cluster has no __consumer_offsets: .* It needs DESCRIBE and READ"),
        (
            [0, 1],
            "timed out after 0.1 s waiting for leaders that say .*:\n  - __consumer_offsets-0\n",
        ),
    ],
)
def test_a_topic_whose_end_cannot_be_found_is_not_captured(
    partitions: list[int], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(limits, "LOOK_SECONDS", 0.01)
    parts = [{"partition_index": number, "leader_id": -1} for number in partitions]
    admin: Any = SimpleNamespace(
        ask=lambda _: [{"name": "__consumer_offsets", "error_code": 0, "partitions": parts}]
    )
    with pytest.raises(ClusterError, match=said):
        read_bounds(admin)


@pytest.mark.parametrize(("first", "second"), [("", "id1"), ("id1", "")])
def test_an_archive_takes_a_topic_s_id_when_the_cluster_has_one(
    tmp_path: Path, first: str, second: str
) -> None:
    archive = Archive.create(tmp_path)
    archive.belongs_to("c1", 1, first)
    archive.belongs_to("c1", 1, second)
    assert Archive(tmp_path).description.topic_id == "id1"


def test_topics_are_noted_when_they_change(tmp_path: Path) -> None:
    archive = Archive.create(tmp_path)
    assert archive.topics() == []
    orders, events = SeenTopic("orders", "id1", 6), SeenTopic("events", "id2", 3)
    assert archive.add_topics([orders, events]) == 2
    assert archive.add_topics([orders, events]) == 0
    grown, anew = SeenTopic("orders", "id1", 12), SeenTopic("events", "id3", 3)
    assert archive.add_topics([grown, events]) == 1
    assert archive.add_topics([grown, anew]) == 1
    assert archive.add_topics([anew]) == 1
    assert archive.add_topics([anew]) == 0
    gone = SeenTopic("orders", "id1", 0)
    noted = [events, orders, grown, anew, gone]
    assert [one[:3] for one in archive.topics()] == [one[:3] for one in noted]
    assert all(datetime.now(UTC) - one.seen < timedelta(minutes=1) for one in archive.topics())


def test_topics_are_noted_once_though_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Archive.create(tmp_path)
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    clock = SimpleNamespace(now=lambda _: noon)
    monkeypatch.setattr("kafka_assignors.history._archive.datetime", clock)
    assert archive.add_topics([SeenTopic("orders", "id1", 6)]) == 1
    clock.now = lambda _: noon - timedelta(hours=1)
    grown = SeenTopic("orders", "id1", 12)
    assert [archive.add_topics([grown]) for _ in range(2)] == [1, 0]
    assert [(one.partitions, one.seen) for one in archive.topics()] == [
        (6, noon),
        (12, noon + timedelta(microseconds=1)),
    ]


def test_types_have_kafkas_names() -> None:
    assert [name_of_type(number) for number in (-1, 2, 16, 9, 99)] == [
        "no type",
        "GroupMetadata",
        "ConsumerGroupRegularExpression",
        "type 9",
        "type 99",
    ]


def test_counts_add_up() -> None:
    one = Counts(kept=Counter({"GroupMetadata": 2}), counted=Counter({"OffsetCommit": 1_000}))
    both = one + one
    assert (both.kept, both.counted, both.read) == ({"GroupMetadata": 4}, {"OffsetCommit": 2_000}, 2_004)
    assert [*count_lines(both)] == [
        "  GroupMetadata      4  kept",
        "  OffsetCommit   2,000  counted only",
    ]


@pytest.mark.parametrize(
    ("time_ms", "day"), [(-1, "1969-12-31"), (253_402_300_800_000, "9999-12-31"), (2**63 - 1, "9999-12-31")]
)
def test_a_record_is_captured_whatever_its_time(time_ms: int, day: str, tmp_path: Path) -> None:
    written = Message(offset=3, key=b"\0\2\0\1g", timestamp=(1, time_ms))
    add_batch(Archive.create(tmp_path), to_rows([written], partition=4))
    assert [(file.rows, file.values["day"]) for file in Archive(tmp_path).files()] == [(1, day)]


def test_groups_are_read_from_keys_of_every_kept_type() -> None:
    keys = [
        kind.to_bytes(2, "big") + b"\0\7a group" + b"\0\1m" * (kind in {5, 7, 8, 16}) for kind in KEPT_TYPES
    ]
    wrong = [
        None,
        b"",
        b"\2",
        b"\0\2\0",
        b"\0\2\0\5four",
        b"\0\2\xff\xff" + b"x" * 70_000,
        b"\0\2\x80\x00" + b"x" * 70_000,
        b"\0\2\xff\xfe" + b"x" * 70_000,
        b"\0\2\0\2\xc3\x28",
    ]
    found = [group_of(key) for key in [*keys, b"\0\2\0\0", *wrong]]
    assert found == ["a group"] * len(keys) + [""] + [None] * len(wrong)


def test_batches_share_what_is_left_among_the_partitions() -> None:
    left = [Stretch(0, 0, 100), Stretch(1, 100, 1_000)]
    assert advance(left, 10_000) == left
    assert advance(left, 1_000) == left
    assert advance(left, 100) == [Stretch(0, 0, 10), Stretch(1, 100, 190)]
    assert advance(left, 1) == [Stretch(0, 0, 1), Stretch(1, 100, 101)]
    assert advance([], 100) == []


def test_tasks_share_the_log_and_are_few_where_there_is_little() -> None:
    assert shares([], 2) == []
    little = [Stretch(number, 0, 10) for number in range(50)]
    assert shares(little, 8) == [little]
    much = [Stretch(0, 0, 900_000), Stretch(1, 5, 300_005), Stretch(2, 0, 300_000), Stretch(3, 0, 100)]
    assert shares(much, 1) == [[Stretch(0, 0, 900_000)], [*much[1:]]]
    assert [len(some) for some in shares(much, 100)] == [1, 1, 1, 1]


def test_properties_files_serve_both_clients(tmp_path: Path) -> None:
    pem = tmp_path / "a.pem"
    pem.write_text("")
    settings = parse_command_config(
        f"""
        security.protocol=SASL_SSL
        sasl.mechanism=SCRAM-SHA-512
        sasl.jaas.config=x.ScramLoginModule required username="u" password="p";
        ssl.truststore.type=PEM
        ssl.truststore.location={pem}
        ssl.keystore.location={pem}
        ssl.key.password=q
        ssl.endpoint.identification.algorithm=
        client.id=c
        request.timeout.ms=9000
        """
    )
    assert librdkafka_settings({**settings, "bootstrap_servers": ["h:1", "h:2"]}) == {
        "bootstrap.servers": "h:1,h:2",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": "p",
        "ssl.ca.location": str(pem),
        "ssl.certificate.location": str(pem),
        "ssl.key.location": str(pem),
        "ssl.key.password": "q",
        "ssl.endpoint.identification.algorithm": "none",
        "client.id": "c",
        "socket.timeout.ms": 9000,
    }
    with pytest.raises(ValueError, match="setting 'fetch_max_bytes' is not known"):
        librdkafka_settings({"fetch_max_bytes": 1})


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_on_terminals_only(terminal: bool) -> None:
    output = io.StringIO()
    counts = Counts(kept=Counter({"GroupMetadata": 1_234}), counted=Counter({"OffsetCommit": 56_789}))
    with show_capture(Console(file=output, force_terminal=terminal, width=120)) as watch:
        watch(Captured(offsets=60_000, total=90_000, batches=1, counts=counts))
    if terminal:
        assert "1,234 records kept, 56,789 counted" in output.getvalue()
        assert "60000/90000" in output.getvalue()
    else:
        assert output.getvalue() == ""


def test_a_continuous_capture_writes_a_line_for_each_batch_into_a_file() -> None:
    output = io.StringIO()
    counts = Counts(kept=Counter({"GroupMetadata": 1_234}))
    with show_capture(Console(file=output, width=20), continuous=True) as watch:
        for batches in (1, 2):
            watch(Captured(offsets=batches * 60_000, total=90_000, batches=batches, counts=counts))
            assert len(output.getvalue().splitlines()) == batches
    assert [line[19:] for line in output.getvalue().splitlines()] == [
        " UTC: 1,234 records kept, 0 counted; offsets 60,000",
        " UTC: 1,234 records kept, 0 counted; offsets 120,000",
    ]


def test_what_failed_in_a_worker_is_told_without_the_traces_around_it() -> None:
    text = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted due to stage failure
Traceback (most recent call last):
  File "source.py", line 1, in read
kafka_assignors.history._source.StuckPartitionError: __consumer_offsets-3 returned nothing for 60 s

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException
Caused by: java.lang.RuntimeException: other"""
    assert reason(text) == "StuckPartitionError: __consumer_offsets-3 returned nothing for 60 s"
    text = "[STREAM_FAILED] failed\nTraceback:\nOSError: [Errno 28] No space left on device\n\tat java"
    assert reason(text) == "OSError: [Errno 28] No space left on device"
    text = """Traceback:
py4j.protocol.Py4JJavaError: An error occurred while calling o165.parquet.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed
\tat org.apache.spark.sql
Caused by: java.io.IOException: Mkdirs failed to create file:/a/staging
\tat org.apache.hadoop"""
    assert reason(text) == "IOException: Mkdirs failed to create file:/a/staging"
    assert reason(text.partition("Caused")[0]) == "SparkException: [TASK_WRITE_FAILED] Task failed"
    assert reason("nothing that is known\nor looked for") == "nothing that is known"


@pytest.mark.parametrize(
    "text",
    [
        "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\nThis was created",
        "org.apache.spark.SparkException: Job 0 cancelled because SparkContext was shut down",
        "org.apache.spark.SparkException: Job aborted: Master removed our application: FAILED",
    ],
)
def test_if_all_executors_failed_the_workers_logs_are_named(text: str) -> None:
    assert reason(f"An error occurred while calling o53.collect.\n: {text}\n\tat org.apache") == (
        "Spark has stopped: all of its executors failed, or somebody has ended it. The workers' logs say why,"
        " by default in the folder work of each worker's Spark"
    )


def test_moments_are_dates_times_or_how_long_ago() -> None:
    assert moment("2026-03-01") == datetime(2026, 3, 1, tzinfo=UTC)
    assert moment("2026-03-01T12:30+01:00") == datetime(2026, 3, 1, 11, 30, tzinfo=UTC)
    a_week_ago = moment("7d")
    assert timedelta(days=7) <= datetime.now(UTC) - a_week_ago < timedelta(days=7, minutes=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "a", "--since", "yesterday"], "'yesterday' is neither a date or time"),
        (["info", "a", "--since", "99999999999d"], "'99999999999d' is neither a date or time"),
        (["info", "a", "--since", "0001-01-01T00:00+14:00"], "'0001-01-01T00:00+14:00' is neither a date"),
        (
            ["metrics", "a", "--since", "2026-03-02", "--until", "2026-03-02"],
            "--since 2026-03-02T00:00:00+00:00 is not before --until 2026-03-02T00:00:00+00:00",
        ),
        (["report", "a", "b", "--no-what-if", "--assignor", "range"], "--no-what-if replays nothing"),
        (["report", "a", "b", "--no-what-if", "--scenario", "as it was"], "--no-what-if replays nothing"),
        (["capture", "a", "--bootstrap-server", "h:1", "--interval", "5"], "--interval requires"),
        (["capture", "a"], "--bootstrap-server"),
        (["maintain", "a", "--keep", "36h"], "--keep 1 day, 12:00:00 is not whole days"),
        (["maintain", "a", "--keep", "0d"], "--keep 0:00:00 is not whole days"),
    ],
)
def test_wrong_command_lines_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["history", *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_page_that_cannot_be_written_is_named_before_a_record_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Archive.create(tmp_path / "a")
    nowhere = tmp_path / "no" / "x.html"
    for page, why in (
        (tmp_path, f"{tmp_path} is a folder, and the page is a file: write {tmp_path}/groups.html"),
        (nowhere, f"there is no folder for the page {nowhere}: make it, or name another"),
    ):
        assert main(["history", "report", str(tmp_path / "a"), str(page)]) == 2
        assert capsys.readouterr().err == f"kafka-assignors history report: {why}\n"


@pytest.mark.parametrize(
    "arguments", [["tables", "no archive", "hdfs://n/a"], ["metrics", "no", "--out", "hdfs://n/a"]]
)
def test_a_place_for_tables_that_cannot_be_is_told_before_the_archive_is_opened(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", *arguments]) == 2
    assert "hdfs://n/a cannot be used: " in capsys.readouterr().err


@pytest.mark.parametrize("make", [make_tables, metrics])
@pytest.mark.parametrize("text", ['{"format": 2}', '{"format": 3}'])
def test_no_tables_are_made_in_an_archive(tmp_path: Path, make: Callable[..., object], text: str) -> None:
    (tmp_path / "archive.json").write_text(text)
    with pytest.raises(WrongPlaceError, match="is an archive, and its tables go elsewhere: name another"):
        make(None, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["archive.json"]


def test_a_command_that_begins_again_after_ctrl_c_says_nothing_of_a_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(**_: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafka_assignors._cli.history.metrics.callback", interrupted)
    assert main(["history", "metrics", "a"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_capture_that_is_broken_off_says_what_it_has_captured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any, watch: Callable[[Captured], None], **__: Any) -> Captured:
        counts = Counts(kept=Counter({"GroupMetadata": 2}), counted=Counter({"OffsetCommit": 1200}))
        watch(Captured(offsets=1500, total=9000, batches=1, counts=counts))
        raise KeyboardInterrupt

    answering = nullcontext(SimpleNamespace(settings={"bootstrap_servers": "h:1"}))
    monkeypatch.setattr("kafka_assignors._cluster.handle.connect", lambda _: answering)
    monkeypatch.setattr("kafka_assignors.history._capture.capture", interrupted)
    assert main(["history", "capture", str(tmp_path), "--bootstrap-server", "h:1"]) == 130
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "captured 1,202 records in 1 batch, of 1,500 offsets of the log"
    assert said[-1] == "interrupted; the same command continues with the rest"


def test_what_an_archive_is_of_stands_in_its_table_s_properties(tmp_path: Path) -> None:
    Archive.create(tmp_path).belongs_to("c1", 1, "id1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive.json", "records", "topics"]
    assert json.loads((tmp_path / "archive.json").read_text()) == {"format": FORMAT}
    properties = Archive(tmp_path).logs[0].properties
    assert {name: text for name, text in properties.items() if "kafka" in name} == {
        "kafka_assignors.cluster_id": "c1",
        "kafka_assignors.topic": "__consumer_offsets",
        "kafka_assignors.partitions": "1",
        "kafka_assignors.topic_id": "id1",
    }
