"""How fast `__consumer_offsets` is captured, beside Spark's own Kafka connector on the same log.

    python -m benchmarks.history_capture --records 4000000

A broker's offsets topic is filled with committed offsets and, every twentieth, a group's record of 2 kB.
The capture and a Structured Stream of the connector read it in batches of the same size, and commit group
metadata to an archive of their own; the capture also counts what it does not keep. Besides, the two Python
clients read one partition of it without Spark, which is why the capture reads by confluent-kafka.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import struct
import subprocess
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Producer
from kafka import KafkaConsumer, TopicPartition
from pyspark.sql import functions as F  # noqa: N812 - its common name
from rich.console import Console
from rich.progress import Progress

from benchmarks import machine
from kafka_assignors._cluster.admin import Admin
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.groups import Cluster as Reached
from kafka_assignors.history._archive import TOPIC_SOURCE, Archive
from kafka_assignors.history._capture import capture
from kafka_assignors.history._log import read_bounds
from kafka_assignors.history._schemas import ARCHIVE
from kafka_assignors.history._source import Stretch, read_stretch
from kafka_assignors.history._spark import run_frame, spark_session
from kafka_assignors.testing import Cluster, kafka_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 4
GROUPS = 200
VALUE_BYTES = 2000
TOPIC = "__consumer_offsets"
RESULTS = Path(__file__).parent / "results"

# No release of the connector has all of its jars of one version in Maven Central: these work together.
CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.12.1",
)


class Run(NamedTuple):
    """One measurement.

    Attributes:
        way: What read.
        records: How many.
        size: Bytes of their keys and values.
        seconds: How long it took.
        cpu: CPU seconds of this process; None where other processes took part.
    """

    way: str
    records: int
    size: int
    seconds: float
    cpu: float | None = None


def fill(cluster: Cluster, count: int, progress: Progress) -> int:
    """Write the records; return the bytes of their keys and values."""
    producer = Producer(
        {
            **cluster.access.librdkafka(),
            "client.id": "__admin_client",  # brokers let only clients of this name write there
            "linger.ms": 50,
            # Coordinators write small batches: a record of a group alone, commits of some partitions.
            "batch.num.messages": 10,
            "queue.buffering.max.messages": 500_000,
        }
    )
    rng = random.Random(7)
    values = [rng.randbytes(VALUE_BYTES) for _ in range(GROUPS)]
    size = 0
    for number in progress.track(range(count), description="filling the topic"):
        group = f"group-{rng.randrange(GROUPS)}"
        if number % 20:
            key = b"\0\1" + group_metadata_key(group)[2:] + struct.pack(">h6si", 6, b"orders", number % 12)
            value = struct.pack(">hqihqh", 3, number, -1, 0, number, 0)
        else:
            key, value = group_metadata_key(group), values[number // 20 % GROUPS]
        size += len(key) + len(value)
        while True:
            try:
                producer.produce(TOPIC, value, key, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(60):
        raise RuntimeError("the broker did not take all records in a minute")
    return size


def make_topic(cluster: Cluster) -> None:
    """Have the broker make its offsets topic, as for the first group of a cluster."""
    client: Any = KafkaConsumer(**cluster.access.kafka_python(), group_id="first")
    with closing(client) as consumer:
        part = TopicPartition("nothing", 0)
        consumer.assign([part])
        consumer.committed(part)


def connector_jars(folder: Path) -> list[Path]:
    """Spark's Kafka connector and what it needs that Spark has not."""
    for coordinates in CONNECTOR:
        command = ["mvn", "-q", "-B", "-Dstyle.color=never", "dependency:copy", f"-Dartifact={coordinates}"]
        subprocess.run([*command, f"-DoutputDirectory={folder}"], check=True)
    return sorted(folder.glob("*.jar"))


def by_capture(_: SparkSession, cluster: Cluster, folder: Path, at_once: int) -> int:
    """Our way; returns the records that are kept."""
    archive = Archive.create(folder)
    done = capture(Reached(cluster.bootstrap_servers), archive, max_records=at_once)
    return done.counts.kept.total()


def by_connector(spark: SparkSession, cluster: Cluster, folder: Path, at_once: int) -> int:
    """Spark's own; the same."""
    archive = Archive.create(folder)
    kept = 0

    def write(rows: DataFrame, number: int) -> None:
        nonlocal kept
        wanted = rows.where(F.substring("key", 1, 2) == F.lit(b"\0\2"))
        shaped = wanted.withColumns(
            {
                "type": F.lit(2).cast("smallint"),
                "count": F.lit(1),
                "leader_epoch": F.lit(None).cast("int"),  # the connector does not tell
            }
        )
        run = partial(run_frame, shaped.repartition(4, F.to_date("timestamp")), ARCHIVE)
        kept += archive.append(run, TOPIC_SOURCE, {"connector": number}).kept.total()

    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", ",".join(cluster.bootstrap_servers))
        .option("assign", f'{{"{TOPIC}": {list(range(PARTITIONS))}}}')
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", at_once)
        .option("failOnDataLoss", "false")
    )
    writer = source.load().writeStream.foreachBatch(write).trigger(availableNow=True)
    checkpoint = f"file://{folder} checkpoint"  # as Spark takes paths: nothing is escaped
    writer.option("checkpointLocation", checkpoint).start().awaitTermination()
    return kept


def read_by_confluent_kafka(cluster: Cluster, end: int) -> int:
    """One partition, as the capture's tasks read it."""
    settings = {"bootstrap_servers": cluster.bootstrap_servers}
    return sum(sum(rows["count"].to_pylist()) for rows in read_stretch(settings, Stretch(0, 0, end)))


def read_by_kafka_python(cluster: Cluster, end: int) -> int:
    """The same; only looking at the keys."""
    client: Any = KafkaConsumer(
        **cluster.access.kafka_python(),
        exclude_internal_topics=False,
        check_crcs=False,
        max_poll_records=10_000,
        max_partition_fetch_bytes=8 << 20,
    )
    kinds: dict[bytes, int] = {}
    with closing(client) as consumer:
        part = TopicPartition(TOPIC, 0)
        consumer.assign([part])
        consumer.seek(part, 0)
        while consumer.position(part) < end:
            for record in consumer.poll(1000).get(part, ()):
                kinds[record.key[:2]] = kinds.get(record.key[:2], 0) + 1
    return sum(kinds.values())


def measure(records: int, rounds: int, at_once: int) -> list[Run]:
    """All runs, round by round, so that what disturbs one way disturbs the others, too."""
    runs: list[Run] = []
    settings: dict[str, str | int] = {
        "offsets.topic.num.partitions": PARTITIONS,
        "log.cleaner.enable": "false",
    }
    folder = Path(tempfile.mkdtemp(prefix="history-capture-"))
    try:
        jars = ",".join(map(str, connector_jars(folder / "jars")))
        with kafka_cluster(how="embedded", settings=settings) as cluster, Progress() as progress:
            make_topic(cluster)
            size = fill(cluster, records, progress)
            with Admin(cluster.bootstrap_servers) as admin:
                end = read_bounds(admin)[0].end
            spark = spark_session(
                settings={
                    "spark.jars": jars,
                    # Without it, the connector reads nothing of internal topics, and does not say so.
                    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
                }
            )
            ways = {"capture": by_capture, "Spark's connector": by_connector}
            readers = {"confluent-kafka": read_by_confluent_kafka, "kafka-python": read_by_kafka_python}
            task = progress.add_task("measuring", total=(rounds + 1) * len(ways) + rounds * len(readers))
            for number in range(rounds + 1):
                for way, run in ways.items():
                    began = time.perf_counter()
                    kept = run(spark, cluster, folder / f"{way} {number}", at_once)
                    _expect(way, kept, -(-records // 20))
                    if number:  # the first is warm-up
                        runs.append(Run(way, records, size, time.perf_counter() - began))
                    progress.advance(task)
                for way, read in readers.items() if number else ():
                    runs.append(_read(way, read, cluster, end, size * end // records))
                    progress.advance(task)
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return runs


def _read(way: str, read: Callable[[Cluster, int], int], cluster: Cluster, end: int, size: int) -> Run:
    began, before = time.perf_counter(), os.times()
    _expect(way, read(cluster, end), end)
    seconds, after = time.perf_counter() - began, os.times()
    cpu = after.user + after.system - before.user - before.system
    return Run(f"{way}, one partition, no Spark", end, size, seconds, cpu)


def _expect(way: str, found: int, expected: int) -> None:
    if found != expected:
        raise RuntimeError(f"{way} found {found} records, and there are {expected}")


def table(runs: list[Run]) -> str:
    """The fastest and the slowest run of each way, in Markdown."""
    lines = [
        "| way | records | records/s, best | worst | MB/s, best | worst | records per CPU second, best |",
        "|---|---|---|---|---|---|---|",
    ]
    for way in dict.fromkeys(run.way for run in runs):
        own = sorted((run for run in runs if run.way == way), key=lambda run: run.seconds)
        best, worst = own[0], own[-1]
        cpu = max((run.records / run.cpu for run in own if run.cpu), default=None)
        lines.append(
            f"| {way} | {best.records:,} | {best.records / best.seconds:,.0f} | "
            f"{worst.records / worst.seconds:,.0f} | {best.size / best.seconds / 1e6:.1f} | "
            f"{worst.size / worst.seconds / 1e6:.1f} | {'' if cpu is None else f'{cpu:,.0f}'} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=2_000_000, help="offsets in a batch")
    parser.add_argument("--output", type=Path, default=RESULTS / "history_capture.md")
    options = parser.parse_args()
    about = machine.describe()
    runs = measure(options.records, options.rounds, options.at_once)
    command = f"--records {options.records} --rounds {options.rounds} --at-once {options.at_once}"
    text = [
        "# Capturing the offsets topic",
        "",
        (__doc__ or "").split("\n\n", 2)[2].strip(),
        f"Spark runs with local[*]; {options.rounds} rounds after one for warming up.",
        "",
        f"`python -m benchmarks.history_capture {command}`",
        "",
        table(runs),
        "",
        *machine.lines(about),
        "",
    ]
    options.output.write_text("\n".join(text), encoding="utf-8")
    Console().print(table(runs), markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
