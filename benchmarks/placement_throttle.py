"""How long producers wait while replicas are copied, with a throttle and without.

    python -m benchmarks.placement_throttle

Three brokers on one machine. One topic is produced to at a fixed rate with `acks=all`, another one's replicas
are moved to a broker that has none of them.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, Self

from confluent_kafka import Producer

from benchmarks import machine
from kafka_assignors._cluster.admin import Admin
from kafka_assignors._common.progress import progress_bar
from kafka_assignors.placement._cluster.reassign import Pacing, reassign
from kafka_assignors.placement._cluster.topics import create_topic
from kafka_assignors.testing import kafka_cluster
from kafka_assignors.testing._brokers.access import Access

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from confluent_kafka import KafkaError

    from kafka_assignors.testing import Cluster

RESULT: Final = Path(__file__).parent / "results" / "placement_throttle.md"
PARTITIONS: Final = 4
RECORD: Final = 900_000
RATE: Final = 200
SIZE: Final = 1000
QUIET_SECONDS: Final = 10.0
MEBI: Final = 1 << 20

CASES: Final[Mapping[str, int | None]] = {
    "nothing is moved": 0,
    "moved without a throttle": None,
    "moved at 32 MiB/s": 32 * MEBI,
    "moved at 8 MiB/s": 8 * MEBI,
}
"""Bytes per second of a broker; 0 for no move at all."""

_PAGE: Final = """\
# Producers while replicas are moved

`python -m benchmarks.placement_throttle --runs {runs} --mebibytes {mebibytes}`: three brokers on one
machine, {rate} records of {size} bytes a second with `acks=all` to a topic of 3 replicas. Meanwhile the
replicas of another topic, {mebibytes} MiB, are moved to a third broker, all at once. *took* is how long the
move took, in seconds. The others are milliseconds until a record was acknowledged, counted from when it was
due: of the median record, of the slowest in a hundred, in a thousand, and of all; medians of the runs.

Brokers, producer and whatever else the machine does share its processors (see the load average), so that rows
compare with each other only.

| | took | 50 % | 99 % | 99.9 % | slowest |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run.

    Attributes:
        seconds: How long the move took.
        waits: Of each record, sorted, in seconds.
    """

    seconds: float
    waits: list[float]

    def percentile(self, share: float) -> float:
        """What so many of the records did not exceed."""
        return self.waits[min(len(self.waits) - 1, int(share * len(self.waits)))]


@dataclass(slots=True)
class Paced:
    """A producer with a fixed rate, that notes how long each record took. A context manager."""

    producer: Producer
    topic: str
    waits: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._thread is not None  # noqa: S101 - for the type checker
        self._thread.join()
        self.producer.flush()
        if self.refused:
            raise RuntimeError(f"{len(self.refused)} records were not taken: {self.refused[0]}")

    def _run(self) -> None:
        value, began, sent = os.urandom(SIZE), time.perf_counter(), 0
        while not self._stop.is_set():
            due = began + sent / RATE
            while (left := due - time.perf_counter()) > 0:
                self.producer.poll(left)
            # From when it was due: who waits for the producer itself waits, too.
            self.producer.produce(self.topic, value, on_delivery=self._note(due))
            sent += 1

    def _note(self, due: float) -> Callable[[KafkaError | None, object], None]:
        def note(error: KafkaError | None, _: object) -> None:
            if error is None:
                self.waits.append(time.perf_counter() - due)
            else:
                self.refused.append(str(error))

        return note


def measure(
    cluster: Cluster, admin: Admin, topics: tuple[str, str], broker: int, rate: int | None
) -> Outcome:
    """Move the second of the topics to a broker, under load on the first."""
    live, moved = topics
    placed = {moved: {partition: [1, broker] for partition in range(PARTITIONS)}}
    settings = {"linger.ms": 0, "acks": "all"}
    with Paced(Producer({**Access.to(cluster).librdkafka(), **settings}), live) as load:
        time.sleep(1)
        load.waits.clear()
        began = time.monotonic()
        if rate == 0:
            time.sleep(QUIET_SECONDS)
        else:
            reassign(admin, placed, Pacing(throttle=rate), warn=print)
        seconds = time.monotonic() - began
    return Outcome(seconds=seconds, waits=sorted(load.waits))


def fill(cluster: Cluster, topic: str, mebibytes: int) -> None:
    """Produce so much to a topic, evenly to its partitions."""
    producer = Producer({**Access.to(cluster).librdkafka(), "linger.ms": 20})
    for number in range(mebibytes * MEBI // RECORD):
        producer.produce(topic, os.urandom(RECORD), partition=number % PARTITIONS)
        producer.flush()


def report(found: Mapping[str, Sequence[Outcome]], mebibytes: int, about: Mapping[str, str]) -> str:
    """The page."""
    lines = []
    for name, runs in found.items():
        took = f"{median(run.seconds for run in runs):.1f}" if CASES[name] != 0 else ""
        waits = [median(run.percentile(share) for run in runs) for share in (0.5, 0.99, 0.999, 1.0)]
        lines.append(f"| {name} | {took} | {' | '.join(f'{1000 * wait:,.1f}' for wait in waits)} |")
    lines += ["", *machine.lines(about), ""]
    times = len(next(iter(found.values())))
    return _PAGE.format(runs=times, mebibytes=mebibytes, rate=RATE, size=SIZE) + "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page.

    Returns:
        0.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.placement_throttle", description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--mebibytes", type=int, default=256, help="how much is moved (default: 256)")
    parser.add_argument(
        "--output", type=Path, default=RESULT, help="the page to write (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    about = machine.describe()
    found: dict[str, list[Outcome]] = {name: [] for name in CASES}
    with (
        progress_bar() as bar,
        kafka_cluster(3, how="embedded") as cluster,
        Admin(cluster.bootstrap_servers) as admin,
    ):
        topics = "live", "moved"
        create_topic(
            admin, topics[0], {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}, {"min.insync.replicas": "2"}
        )
        create_topic(admin, topics[1], {partition: [1, 2] for partition in range(PARTITIONS)})
        fill(cluster, topics[1], options.mebibytes)
        task, broker = bar.add_task("runs", total=options.runs * len(CASES)), 2
        for _ in range(options.runs):
            for name, rate in CASES.items():
                if rate != 0:
                    broker = 5 - broker  # from 2 to 3 and back
                found[name].append(measure(cluster, admin, topics, broker, rate))
                bar.advance(task)
    options.output.write_text(report(found, options.mebibytes, about), encoding="utf-8")
    print(options.output)  # noqa: T201 - a command prints
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
