"""Captures of a real broker's `__consumer_offsets`, held against what a plain consumer reads there."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition as Offset
from kafka import TopicPartition
from pyspark.sql import (
    SparkSession,
    functions as F,  # noqa: N812 - its common name
)

from integration_tests.support.clusters import own_cluster
from integration_tests.support.offsets_log import OFFSETS_TOPIC, SECONDS, read_messages
from integration_tests.support.records import commit, committed, produce
from integration_tests.support.waiting import wait_for
from kafka_assignors import CooperativeStickyAssignor, RangeAssignor
from kafka_assignors._cluster.admin import Admin
from kafka_assignors._wire.offsets_topic import (
    group_metadata_key,
)
from kafka_assignors.groups import Cluster as ClusterHandle
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._archive_format import WrongArchiveError
from kafka_assignors.history._capture import Captured, capture
from kafka_assignors.history._counts import name_of_type
from kafka_assignors.history._dump import Imported, import_dump
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._info import info
from kafka_assignors.history._java import find_java
from kafka_assignors.history._records import group_of
from kafka_assignors.history._schemas import KEPT_TYPES, TABLES
from kafka_assignors.history._tables.job import make_tables, read_table
from kafka_assignors.history._what_if.job import what_if
from kafka_assignors.testing import Cluster, ConsumerGroup, create_topic
from kafka_assignors.testing._brokers.jars import class_path, fetch_jars
from tests.support import sessions
from tests.support.archives import group as group_value
from tests.support.commits import commit_key
from tests.support.dumps import dump_command, printed_record
from tests.support.object_store import Fault, ObjectStore
from tests.support.small_archives import read

pytestmark = pytest.mark.slow

PARTITIONS = 3


class Plain(NamedTuple):
    """A record as a plain consumer gets it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    time_us: int
    leader_epoch: int

    @property
    def type(self) -> int:
        return -1 if self.key is None or len(self.key) < 2 else int.from_bytes(self.key[:2], signed=True)

    @property
    def kept(self) -> bool:
        return self.type < 0 or self.type in KEPT_TYPES


def new_cluster(
    request: pytest.FixtureRequest, settings: Mapping[str, Any] | None = None, **more: Any
) -> AbstractContextManager[Cluster]:
    settings = {"offsets.topic.num.partitions": PARTITIONS, **(settings or {})}
    return own_cluster(request.config, settings=settings, **more)


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with new_cluster(request) as running:
        yield running


def read_log(cluster: Cluster, ends: Mapping[int, int] | None = None) -> list[Plain]:
    """All that is in the offsets topic, or was when its partitions had these ends."""
    records = [
        Plain(one.partition, one.offset, one.key, one.value, 1000 * one.timestamp, one.leader_epoch)
        for one in read_messages(cluster, ends)
    ]
    return sorted(records, key=lambda one: one[:2])


def read_archive(spark: SparkSession, archive: Archive) -> list[Plain]:
    columns: list[Any] = ["partition", "offset", "key", "value", F.unix_micros("timestamp"), "leader_epoch"]
    found = read(spark, archive).select(*columns).collect()
    rows = [Plain(p, o, k and bytes(k), None if v is None else bytes(v), t, e) for p, o, k, v, t, e in found]
    return sorted(rows, key=lambda one: one[:2])


def by_name(records: list[Plain], *, kept: bool) -> Counter[str]:
    return Counter(name_of_type(one.type) for one in records if one.kept == kept)


def assert_is_the_log(spark: SparkSession, archive: Archive, log: list[Plain]) -> None:
    """The archive has each record of the log once, and has counted each of the others once."""
    assert read_archive(spark, archive) == [one for one in log if one.kept]
    (counts,) = info(archive, engine=Engine.local()).sources.values()
    assert counts.kept == by_name(log, kept=True)
    assert counts.counted == by_name(log, kept=False)


def form_a_group(cluster: Cluster | str, topic: str, assignor: type[Any]) -> None:
    """Two members join, one after the other, commit and leave."""
    with ConsumerGroup(cluster, topic, [assignor], place="thread", timeout=240) as group:
        for name in "ab":
            group.join(name)
            group.wait_stable()
        for member in group.members.values():
            member.commit()


a_generation = partial(group_value, protocol_type="x" * 100)
"""A group's record without members, of some size."""


def put(cluster: Cluster, records: Sequence[tuple[bytes, bytes | None]]) -> None:
    """Write into the offsets topic itself: thousands of records in a second, and such as no group writes.

    Brokers let only clients of this name write into internal topics.
    """
    producer = Producer(
        {**cluster.access.librdkafka(), "client.id": "__admin_client", "acks": "all", "linger.ms": 20}
    )
    failed: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(error)

    for number, (key, value) in enumerate(records):
        producer.produce(
            OFFSETS_TOPIC,
            key=key,
            value=value,
            partition=number % PARTITIONS,
            on_delivery=delivered,
        )
        producer.poll(0)
    assert producer.flush(SECONDS) == 0
    assert failed == []


def has_come_to(archive: Path, wanted: int, running: subprocess.Popen[str]) -> bool:
    """Whether a capture has written so many batches, or has ended."""
    return batches(archive) >= wanted or running.poll() is not None


def start_capture(archive: Path, cluster: Cluster, *more: str) -> subprocess.Popen[str]:
    """The command, in a process group of its own."""
    command = [sys.executable, "-m", "kafka_assignors._cli.main", "history", "capture", str(archive)]
    command += ["--bootstrap-server", ",".join(cluster.bootstrap_servers), "--master", "local[2]", *more]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def batches(archive: Path) -> int:
    commits = archive.glob("records/_delta_log/*.json")
    return sum(f"{OFFSETS_TOPIC}-" in commit.read_text(encoding="utf-8") for commit in commits)


def test_a_second_capture_adds_what_is_new_and_nothing_twice(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    topic = create_topic(cluster, 4)
    form_a_group(cluster, topic, RangeAssignor)
    archive = Archive.create(tmp_path / "an archive")
    told: list[Captured] = []
    first = capture(ClusterHandle(cluster.bootstrap_servers), archive, watch=told.append)
    before = read_log(cluster, archive.frontier())
    assert first.counts.read == len(before) == first.offsets
    assert first.counts.kept["GroupMetadata"] >= 3
    assert first.counts.counted["OffsetCommit"] >= 4
    assert told[-1] == first
    assert_is_the_log(spark, archive, before)

    form_a_group(cluster, topic, CooperativeStickyAssignor)
    second = capture(ClusterHandle(cluster.bootstrap_servers), archive)
    after = read_log(cluster, archive.frontier())
    assert second.counts.read == len(after) - len(before) > 0
    assert_is_the_log(spark, archive, after)

    third = capture(ClusterHandle(cluster.bootstrap_servers), archive)
    assert (third.batches, third.counts.read) == (0, 0)
    assert_is_the_log(spark, archive, after)


@pytest.mark.usefixtures("spark")
def test_commits_are_kept_if_that_is_asked_for_and_tell_how_hot_the_hottest_member_was(
    cluster: Cluster, tmp_path: Path
) -> None:
    topic, archive = create_topic(cluster, 2), Archive.create(tmp_path / "archive")
    records = {0: 0, 1: 0}
    with ConsumerGroup(cluster, topic, [RangeAssignor], place="thread", timeout=240) as group:

        def work_off(*counts: int) -> None:
            more = dict(enumerate(counts))
            produce(cluster, topic, more)
            records.update({number: records[number] + count for number, count in more.items()})
            group.wait_consumed({TopicPartition(topic, number): count for number, count in records.items()})
            for member in group.members.values():
                member.commit()
            wait_for(
                "both commits",
                lambda: (
                    [committed(cluster, group.group_id, topic, n) for n in records] == [*records.values()]
                ),
                SECONDS,
            )

        for name in "ab":
            group.join(name)
            group.wait_stable()
        work_off(1, 1)
        first = capture(ClusterHandle(cluster.bootstrap_servers), archive, commits=True)
        work_off(30, 10)
        second = capture(ClusterHandle(cluster.bootstrap_servers), archive, commits=True)
        work_off(0, 0)
        third = capture(ClusterHandle(cluster.bootstrap_servers), archive, commits=True)

        assert all(one.counts.kept["OffsetCommit"] >= 2 for one in (first, second, third))
        rows = what_if(archive, assignors=["load-aware"], scenarios=["as it was"], groups=[group.group_id])
        assert [(row.assignor, row.problem) for row in rows] == [("actual", None), ("load-aware", None)]
        # One member worked off 30 records since the first capture, and the other 10; and each the one before,
        # if its first commit was before that.
        assert rows[0].hottest in {30 / 20, 31 / 21}


def test_a_dump_that_is_imported_between_two_batches_is_there_once(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    commit(cluster, "the first", create_topic(cluster, 1), 0)  # makes the offsets topic
    put(cluster, [(group_metadata_key(f"dumped-{number}"), a_generation(number)) for number in range(300)])
    log = read_log(cluster)
    kept = [one for one in log if one.kept]
    lines = (
        printed_record(
            one.key, one.value, partition=one.partition, offset=one.offset, time_ms=one.time_us // 1000
        )
        for one in kept
    )
    dump = tmp_path / "dump"
    dump.write_bytes(b"".join(lines))
    archive, other = Archive.create(tmp_path / "archive"), Archive(tmp_path / "archive")
    imported: list[Imported] = []

    def import_too(_: Captured) -> None:
        if not imported:
            other.refresh()
            imported.append(import_dump(dump, other))

    done = capture(ClusterHandle(cluster.bootstrap_servers), archive, max_records=100, watch=import_too)
    assert imported[0].counts.kept.total() + done.counts.kept.total() == len(kept)
    assert imported[0].known > 0 < imported[0].counts.kept.total()
    assert [one[:2] for one in read_archive(spark, archive)] == [one[:2] for one in kept]


@pytest.mark.timeout(180)
def test_a_dump_by_the_command_of_the_docs_is_what_a_capture_reads(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    form_a_group(cluster, create_topic(cluster, 4), RangeAssignor)
    commit(cluster, "the second", create_topic(cluster, 1), 0)
    hashes = Path(sessions.__file__).with_name("kafka-3.9.1.sha256")
    java = [str(find_java().program), "-cp", class_path(fetch_jars(sessions.KAFKA_3_9, hashes))]
    words = [word.replace("kafka-1:9092", cluster.bootstrap_servers[0]) for word in dump_command()]
    dump = tmp_path / "dump.txt"
    with dump.open("wb") as file:
        subprocess.run(
            [*java, "org.apache.kafka.tools.consumer.ConsoleConsumer", *words[1:]], stdout=file, check=True
        )
    captured, imported = Archive.create(tmp_path / "captured"), Archive.create(tmp_path / "imported")
    import_dump(dump, imported)
    capture(ClusterHandle(cluster.bootstrap_servers), captured)
    # Leader epochs are not printed. The end of the console consumer's own group comes after its dump.
    dumped = {one[:2]: one[:5] for one in read_archive(spark, imported)}
    later = {one for one in read_archive(spark, captured) if one[:5] != dumped.get(one[:2])}
    assert len(dumped) > len(later)
    assert {*dumped} <= {one[:2] for one in read_archive(spark, captured)}
    assert {one[:2] for one in later}.isdisjoint(dumped)
    assert all((group_of(one.key) or "").startswith("console-consumer-") for one in later)


def test_a_store_that_takes_seconds_for_each_request_is_waited_for(
    cluster: Cluster, spark: SparkSession, object_store: ObjectStore
) -> None:
    form_a_group(cluster, create_topic(cluster, 4), RangeAssignor)
    put(cluster, [(group_metadata_key(f"slow-{number}"), a_generation(number)) for number in range(300)])
    home = f"s3://{object_store.bucket()}"
    archive = Archive.create(f"{home}/archive", object_store.options)
    slow = Fault(path=r"\.parquet$|_delta_log/\d+\.json$", delay=2.0)
    with object_store.failing(slow) as struck:
        done = capture(ClusterHandle(cluster.bootstrap_servers), archive, max_records=200)
        made = make_tables(archive, f"{home}/tables", options=object_store.options)
        assert struck.count() >= 2 * done.batches + len(TABLES)
    log = read_log(cluster, archive.frontier())
    assert done.batches >= 2
    assert_is_the_log(spark, Archive(archive.where.uri, object_store.options), log)
    assert made.read == sum(one.kept for one in log)
    assert read_table(f"{home}/tables", "records", object_store.options).read_all().num_rows == made.decoded


@pytest.mark.timeout(900)  # starts Spark twice more
def test_nothing_is_lost_or_twice_when_captures_are_killed(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> None:
    with new_cluster(request) as cluster:
        form_a_group(cluster, create_topic(cluster, 4), RangeAssignor)
        put(
            cluster,
            [
                (group_metadata_key(f"group {number % 7}"), a_generation(number))
                if number % 3
                else (commit_key(f"group {number % 7}", "orders", number % 11), b"\0\3")
                for number in range(20_000)
            ],
        )
        log = read_log(cluster)
        path = tmp_path / "archive"
        for more in (2, 2):
            wanted = batches(path) + more
            running = start_capture(path, cluster, "--max-records", "1000")
            wait_for(
                f"{wanted} batches",
                partial(has_come_to, path, wanted, running),
                SECONDS,
            )
            os.killpg(running.pid, signal.SIGKILL)
            _, errors = running.communicate()
            assert running.returncode == -signal.SIGKILL, errors
        archive = Archive(path)
        assert 0 < len(read_archive(spark, archive)) < by_name(log, kept=True).total()
        rest = capture(ClusterHandle(cluster.bootstrap_servers), archive, max_records=5_000)
        assert rest.counts.read > 0
        assert_is_the_log(spark, archive, log)


def test_a_transaction_that_hangs_keeps_nothing_back(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    topic = create_topic(cluster, 1)
    settings = {"transactional.id": "hanging", "transaction.timeout.ms": 600_000}
    producer: Any = Producer({**cluster.access.librdkafka(), **settings})
    consumer: Any = Consumer({**cluster.access.librdkafka(), "group.id": "hanging"})
    with closing(consumer):
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction([Offset(topic, 0, 1)], consumer.consumer_group_metadata())
    # Some in each partition, so also behind the offset that is not committed.
    put(cluster, [(group_metadata_key(f"behind {number}"), a_generation(1)) for number in range(50)])
    archive = Archive.create(tmp_path)
    capture(ClusterHandle(cluster.bootstrap_servers), archive)
    assert_is_the_log(spark, archive, read_log(cluster))
    producer.abort_transaction()


def test_ctrl_c_ends_a_continuous_capture_in_order(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    topic = create_topic(cluster, 2)
    form_a_group(cluster, topic, RangeAssignor)
    path = tmp_path / "archive"
    running = start_capture(path, cluster, "--continuous", "--interval", "5", "--json")
    wait_for("the first batch", partial(has_come_to, path, 1, running), SECONDS)
    form_a_group(cluster, topic, RangeAssignor)
    wait_for("another batch", partial(has_come_to, path, 2, running), SECONDS)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does
    output, errors = running.communicate(timeout=SECONDS)
    told = json.loads(output)
    assert (running.returncode, errors.count("records kept")) == (0, told["batches"])
    archive = Archive(path)
    capture(ClusterHandle(cluster.bootstrap_servers), archive)
    log = read_log(cluster, archive.frontier())
    assert 2 <= told["batches"] <= batches(path)
    assert 0 < told["kept"]["GroupMetadata"] <= by_name(log, kept=True)["GroupMetadata"]
    assert_is_the_log(spark, archive, log)


def test_what_compaction_destroys_stays_in_the_archive(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> None:
    settings = {
        "offsets.topic.segment.bytes": 1 << 20,
        "log.cleaner.backoff.ms": 200,
        "log.cleaner.min.cleanable.ratio": 0.01,
    }
    with new_cluster(request, settings=settings) as cluster:
        form_a_group(cluster, create_topic(cluster, 4), RangeAssignor)
        archive = Archive.create(tmp_path)
        capture(ClusterHandle(cluster.bootstrap_servers), archive)
        before = read_log(cluster, archive.frontier())
        old = {one for one in before if one.type == 2}
        newest = {(one.key, max(two.offset for two in old if two.key == one.key)) for one in old}
        assert len(old) > len(newest)

        # Segments roll by what is committed, and only those that are closed are compacted.
        filler = [(commit_key("filler", "orders", number % 5), b"x" * 500) for number in range(12_000)]
        put(cluster, filler)
        wait_for(
            "compaction to remove the group's older generations",
            lambda: {(one.key, one.offset) for one in set(read_log(cluster)) & old} <= newest,
            SECONDS,
        )
        second = capture(ClusterHandle(cluster.bootstrap_servers), archive)
        assert old <= set(read_archive(spark, archive))
        assert read_archive(spark, archive) == [one for one in before if one.kept]
        assert 0 < second.counts.counted["OffsetCommit"] < len(filler)
        assert second.offsets == len(filler)


@pytest.mark.usefixtures("spark")
def test_an_archive_of_a_topic_that_was_created_again_and_has_grown_is_refused(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with new_cluster(request) as cluster:
        topic = create_topic(cluster, 2)
        form_a_group(cluster, topic, RangeAssignor)
        archive = Archive.create(tmp_path)
        capture(ClusterHandle(cluster.bootstrap_servers), archive)
        before = archive.frontier()
        with Admin(cluster.bootstrap_servers) as admin:
            admin.ask(lambda client: client.delete_topics([OFFSETS_TOPIC]))
        form_a_group(cluster, topic, RangeAssignor)  # which creates it
        put(
            cluster,
            [
                (commit_key("filler", "orders", number), b"x")
                for number in range(PARTITIONS * max(before.values()))
            ],
        )
        with pytest.raises(WrongArchiveError, match=r"with id .{22}, not .{22}: it was created"):
            capture(ClusterHandle(cluster.bootstrap_servers), archive)
        assert Archive(tmp_path).frontier() == before
