"""How long what-if takes for many groups: the history of each through several assignors, on Spark.

    python -m benchmarks.history_what_if --groups 2000

The groups are made up, and no two alike: sticky members that come, go, and are restarted, with the records
that a coordinator would have written, in an archive. Then a local Spark replays
them, and its rows are counted. CPU time is that of Spark's Java and of its Python workers.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import machine
from benchmarks.local_spark import local_spark
from benchmarks.processes import cpu_seconds, largest_worker
from kafka_assignors import StickyAssignor, lead
from kafka_assignors._assignors._membership.claims import Claim
from kafka_assignors._assignors._messages import make_subscription
from kafka_assignors._wire.offsets_topic import (
    GroupMetadataValue,
    MemberMetadata,
    decode_assignment,
    encode_group_metadata,
    group_metadata_key,
)
from kafka_assignors.history import Archive, Engine, what_if
from kafka_assignors.history._schemas import ARCHIVE
from kafka_assignors.history._what_if.job import ASSIGNORS
from tests.support.written_archives import add_batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TOPICS: Final = {"orders": 80, "payments": 80, "shipments": 40}
MEMBERS: Final = 20
GENERATIONS: Final = 50
PARTITIONS: Final = 50
GROUPS_A_CHUNK: Final = 20
START_MS: Final = 1_767_225_600_000
RESULT: Final = Path(__file__).parent / "results" / "history_what_if.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run.

    Attributes:
        what: What was replayed.
        groups: How many groups.
        replays: How many rebalances were replayed, over all assignors; what happened is counted as one.
        seconds: Wall time.
        cpu_seconds: CPU time of Java and Python workers.
        worker_mib: The most memory that a Python worker had, MiB.
    """

    what: str
    groups: int
    replays: int
    seconds: float
    cpu_seconds: float
    worker_mib: float


def life(group: str, generations: int, seed: int) -> Iterator[tuple[int, bytes]]:
    """A group's records: when each was written, in ms, and its value."""
    rng = Random(f"{group} {seed}")
    assignor = StickyAssignor()
    claims: dict[str, tuple[Mapping[str, Sequence[int]], int]] = {}
    names: dict[str, str] = {}
    away: list[str] = []
    count, now = 0, START_MS + rng.randrange(86_400_000)

    def join(client: str) -> None:
        member_id = f"{client}-{rng.getrandbits(128):032x}0000"
        names[member_id] = client
        claims[member_id] = {}, -1

    for _ in range(MEMBERS):
        count += 1
        join(f"{group}-worker-{count}")
    for generation in range(1, generations + 1):
        if generation > 1:
            kind = rng.choice(["more", "more", "less", "restart", "restart"])
            if away:
                join(away.pop())
            elif kind == "more" and len(names) < MEMBERS + 2:
                count += 1
                join(f"{group}-worker-{count}")
            else:
                gone = rng.choice(list(names))
                if kind == "restart" or len(names) <= MEMBERS - 2:
                    away.append(names[gone])
                del names[gone], claims[gone]
        now += rng.randrange(5_000, 600_000)
        took = rng.randrange(50, 3_000)
        said = {
            member_id: make_subscription(
                TOPICS,
                owned={},
                generation=since,
                rack=None,
                user_data=assignor.tell_claim(Claim(had, since)),
            ).encode()
            for member_id, (had, since) in claims.items()
        }
        answers = lead(
            {topic: range(size) for topic, size in TOPICS.items()},
            [(member_id, None, subscription) for member_id, subscription in said.items()],
            assignor,
        )
        for member_id, answer in answers.items():
            assigned = decode_assignment(answer)
            claims[member_id] = {} if assigned is None else assigned.assigned_partitions, generation
        value = GroupMetadataValue(
            version=3,
            protocol_type="consumer",
            generation=generation,
            protocol="sticky",
            leader=next(iter(names)),
            current_state_timestamp=now - took,
            members=tuple(
                MemberMetadata(
                    member_id=member_id,
                    group_instance_id=None,
                    client_id=client,
                    client_host="/10.0.0.1",
                    rebalance_timeout=300_000,
                    session_timeout=45_000,
                    subscription=said[member_id],
                    assignment=answers[member_id],
                )
                for member_id, client in names.items()
            ),
        )
        yield now, encode_group_metadata(value)


def write_archive(folder: Path, groups: int, generations: int, bar: Progress) -> int:
    """Write an archive with the records of all groups, some groups in each batch.

    Returns:
        The bytes of all records' values.
    """
    archive = Archive.create(folder)
    task = bar.add_task("groups written", total=groups)
    written = 0
    for first in range(0, groups, GROUPS_A_CHUNK):
        rows = []
        for number in range(first, min(first + GROUPS_A_CHUNK, groups)):
            key = group_metadata_key(f"group-{number:05d}")
            for offset, (now, value) in enumerate(life(f"group-{number:05d}", generations, number)):
                written += len(value)
                rows.append(
                    {
                        "type": 2,
                        "count": 1,
                        "key": key,
                        "value": value,
                        "partition": number % PARTITIONS,
                        "offset": offset * groups + number,
                        "timestamp": now * 1000,
                        "leader_epoch": 0,
                    }
                )
            bar.advance(task)
        add_batch(archive, pa.RecordBatch.from_pylist(rows, schema=ARCHIVE))
    return written


def measure(archive: Path, what: str, assignors: Sequence[str]) -> Result:
    """Replay an archive."""
    cpu, began = cpu_seconds(own=False), time.perf_counter()
    rows = what_if(Archive(archive), assignors=assignors, scenarios=["as it was"], engine=Engine.spark())
    took = time.perf_counter() - began
    cpu = cpu_seconds(own=False) - cpu
    failed = sum(row.failed for row in rows)
    if failed and not any(":" in name for name in assignors):
        raise RuntimeError(f"{failed} rebalances failed, of groups in which none should")
    return Result(
        what=what,
        groups=len({row.group for row in rows}),
        replays=sum(row.rebalances for row in rows),
        seconds=took,
        cpu_seconds=cpu,
        worker_mib=largest_worker(),
    )


_HEAD: Final = """\
# What-if of many groups

{groups} groups, {generations} generations each, about {members} members and {partitions} partitions in three
topics; sticky members that come, go and are restarted. {records:,} records, {mib:.0f} MiB. Replayed on Spark,
`local[{cores}]`; the row of what happened comes in addition to the assignors named. The first run also starts
Spark's Python workers.

`{command}`

| what | groups | rebalances replayed | s | CPU s | CPU µs a rebalance | worker MiB |
|---|---|---|---|---|---|---|
"""


def report(results: Sequence[Result], facts: Mapping[str, Any], about: Mapping[str, str]) -> str:
    """The results as a page."""
    rows = [
        f"| {one.what} | {one.groups} | {one.replays:,} | {one.seconds:.1f} | {one.cpu_seconds:.1f}"
        f" | {1e6 * one.cpu_seconds / max(1, one.replays):.0f} | {one.worker_mib:.0f} |"
        for one in results
    ]
    lines = machine.lines(about)
    return _HEAD.format(**facts) + "\n".join([*rows, "", *lines, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page.

    Returns:
        0.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history_what_if", description=__doc__)
    parser.add_argument("--groups", type=int, default=2000)
    parser.add_argument("--generations", type=int, default=GENERATIONS)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--assignor", action="append", help="only this one (repeatable)")
    parser.add_argument(
        "--output", type=Path, default=RESULT, help="the page to write (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args(arguments)
    about = {**machine.describe(), "PySpark": version("pyspark"), "pyarrow": version("pyarrow")}
    assignors = options.assignor or list(ASSIGNORS)
    bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with tempfile.TemporaryDirectory() as folder, bar:
        archive = Path(folder) / "archive"
        written = write_archive(archive, options.groups, options.generations, bar)
        with local_spark(options.cores):
            results = [measure(archive, ", ".join(assignors), assignors)]
    command = f"python -m benchmarks.history_what_if --groups {options.groups}"
    facts = {
        "groups": f"{options.groups:,}",
        "generations": options.generations,
        "members": MEMBERS,
        "partitions": sum(TOPICS.values()),
        "records": options.groups * options.generations,
        "mib": written / 2**20,
        "cores": options.cores,
        "command": command,
    }
    page = report(results, facts, about)
    options.output.write_text(page, encoding="utf-8")
    sys.stdout.write((json.dumps([asdict(one) for one in results]) if options.json else page) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
