"""Captures that are killed again and again, in the midst of whatever they do: nothing twice, nothing lost.

    python -m benchmarks.lab.history_kills --kills 100

A broker's offsets topic is filled, and captured into an archive in an object store by the command, in small
batches. At a drawn moment after its first batch one of its processes is killed: the driver, its JVM, or a
Python worker. After each kill the archive has each record up to where its log says that the topic was read,
and no other; the next capture goes on from there. In the end it has the whole topic.

Runs with other seeds are added to the page; one with the same seed takes the place of the one before.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import psutil

from benchmarks import machine
from benchmarks.history_capture import fill, make_topic
from benchmarks.processes import below
from kafka_assignors._cluster.admin import Admin
from kafka_assignors._common.progress import progress_bar
from kafka_assignors._common.waiting import wait_until
from kafka_assignors.history import Archive
from kafka_assignors.history._archive_format import WrongArchiveError
from kafka_assignors.history._counts import is_kept
from kafka_assignors.history._log import read_bounds
from kafka_assignors.history._schemas import ARCHIVE
from kafka_assignors.history._store.reading import Part, read_parts
from kafka_assignors.testing import kafka_cluster
from tests.support.object_store import running_object_store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESULT: Final = Path(__file__).parents[1] / "results" / "history_kills.md"
PARTITIONS: Final = 4
BATCH: Final = 400
"""Offsets of a batch; so small that a capture has many commits."""
_SECONDS: Final = 120.0
_LONGEST_WAIT: Final = 4.0
"""Seconds after the first batch within which a process is killed."""

VICTIMS: Final = ("driver", "JVM", "worker")


def check(archive: Archive, starts: Mapping[int, int]) -> int:
    """Make sure that an archive has what its log says was read.

    Args:
        archive: The archive.
        starts: By partition, the first offset of the topic, of which nothing was compacted.

    Returns:
        How many records were read.

    Raises:
        AssertionError: A record is there twice, or is not there.
    """
    log, _ = archive.logs
    counted: Counter[int] = Counter()
    places: Counter[tuple[int, int]] = Counter()
    for batch in read_parts(log.where, map(Part, archive.files()), ARCHIVE):
        for partition, count in zip(batch["partition"].to_pylist(), batch["count"].to_pylist(), strict=True):
            counted[partition] += count
        kept = batch.filter(is_kept(batch))
        places.update(zip(kept["partition"].to_pylist(), kept["offset"].to_pylist(), strict=True))
    twice = [place for place, count in places.items() if count > 1]
    if twice:
        raise AssertionError(f"{len(twice)} records are there twice, such as {twice[0]}")
    read = {
        number: end - starts[number] for number, end in archive.frontier().items() if end > starts[number]
    }
    if dict(counted) != read:
        raise AssertionError(f"the log says that {read} were read, and there are {dict(counted)}")
    return counted.total()


def kill_one(running: subprocess.Popen[str], victim: str) -> bool:
    """Kill a process of a capture; whether there was one."""
    if victim == "driver":
        running.kill()
        return True
    wanted = "java" if victim == "JVM" else "python"
    for one in reversed(below(running.pid)):
        with contextlib.suppress(psutil.NoSuchProcess):
            if one.name().startswith(wanted):
                one.kill()
                return True
    return False


@dataclass(frozen=True, kw_only=True)
class Run:
    """What came of captures that were killed.

    Attributes:
        seed: Of what was drawn.
        kills: How many there were of each kind of process.
        went_on: How many captures went on after a kill of a worker.
        commits: How many the archive's log has.
        records: How many records the archive has, each once.
        minutes: How long it took.
        revision: Of the sources.
    """

    seed: int
    kills: dict[str, int]
    went_on: int
    commits: int
    records: int
    minutes: float
    revision: str


def run(kills: int, seed: int, revision: str) -> Run:
    """Kill captures, and check after each."""
    began = time.monotonic()
    random = Random(seed)
    done: Counter[str] = Counter()
    went_on = 0
    progress = progress_bar()
    with (
        running_object_store() as store,
        kafka_cluster(
            how="embedded",
            settings={"offsets.topic.num.partitions": PARTITIONS, "log.cleaner.enable": "false"},
        ) as cluster,
        tempfile.TemporaryDirectory() as temporary,
        progress as bar,
    ):
        make_topic(cluster)
        fill(cluster, kills * BATCH * 12, bar)
        with Admin(cluster.bootstrap_servers) as admin:
            starts = {number: extent.beginning for number, extent in read_bounds(admin).items()}
        uri = f"s3://{store.bucket()}/archive"
        environment = {**os.environ, **store.options}
        command = [sys.executable, "-m", "kafka_assignors", "history", "capture", uri, "--master", "local[2]"]
        command += ["--bootstrap-server", ",".join(cluster.bootstrap_servers), "--max-records", str(BATCH)]
        log = Path(temporary) / "log"
        task = bar.add_task("kills", total=kills)
        while done.total() < kills:
            victim = random.choice(VICTIMS)
            with log.open("w") as errors:
                running = subprocess.Popen(
                    command, env=environment, stdout=errors, stderr=errors, text=True, start_new_session=True
                )
                try:
                    _await_batch(running, uri, store.options)
                    time.sleep(random.uniform(0, _LONGEST_WAIT))
                    struck = running.poll() is None and kill_one(running, victim)
                    went_on += struck and victim == "worker" and _goes_on(running)
                finally:
                    _end(running)
            if not struck and running.returncode not in {0, -signal.SIGKILL}:
                raise RuntimeError(f"a capture failed that nobody killed: {log.read_text()[-2000:]}")
            check(Archive(uri, store.options), starts)
            done[victim] += struck
            bar.update(task, completed=done.total())
        subprocess.run([*command[:-1], "1000000"], env=environment, check=True, stdout=subprocess.DEVNULL)
        archive = Archive(uri, store.options)
        records = check(archive, starts)
        with Admin(cluster.bootstrap_servers) as admin:
            ends = {number: extent.end for number, extent in read_bounds(admin).items()}
        if archive.frontier() != ends:
            raise AssertionError(f"the topic ends at {ends}, and was read to {archive.frontier()}")
    return Run(
        seed=seed,
        kills=dict(done),
        went_on=went_on,
        commits=archive.version,
        records=records,
        minutes=(time.monotonic() - began) / 60,
        revision=revision,
    )


def page(runs: Sequence[Run], told: Mapping[str, str]) -> str:
    """All runs, as a page."""
    total = sum(sum(one.kills.values()) for one in runs)
    lines = [
        "# Captures that are killed",
        "",
        f"**{total} kills: {sum(one.records for one in runs):,} records, each there once.**",
        "",
        (
            f"| seed | kills of {' | of '.join(f'{one}s' for one in VICTIMS)} | went on | commits | records"
            " | minutes | revision |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.seed} | {' | '.join(str(one.kills.get(victim, 0)) for victim in VICTIMS)} | {one.went_on}"
        f" | {one.commits:,} | {one.records:,} | {one.minutes:.0f} | {one.revision} |"
        for one in runs
    ]
    lines += [
        "",
        "*Went on*: captures that went on after a kill of a worker that no batch's task ran in.",
        "",
        *(f"- {name}: {value}" for name, value in told.items() if name != "revision"),
        "",
        "Made by `python -m benchmarks.lab.history_kills --kills N --seed S`.",
        "",
    ]
    return "\n".join(lines)


def _await_batch(running: subprocess.Popen[str], uri: str, options: Mapping[str, str]) -> None:
    """Wait until a capture has written a batch, or has ended."""
    before = _version(uri, options)

    def missing() -> list[str]:
        return [] if _version(uri, options) > before or running.poll() is not None else ["a batch"]

    wait_until(missing, _SECONDS, "the capture's first batch")


def _goes_on(running: subprocess.Popen[str]) -> bool:
    """Whether a capture does not end soon: Spark has started another worker."""
    try:
        return running.wait(_LONGEST_WAIT) == 0
    except subprocess.TimeoutExpired:
        return True


def _version(uri: str, options: Mapping[str, str]) -> int:
    try:
        return Archive(uri, options).version
    except WrongArchiveError:
        return 0


def _end(running: subprocess.Popen[Any]) -> None:
    """Kill what is left of a capture, its JVM and workers too."""
    for one in below(running.pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def main() -> int:
    """Run, print and write down.

    Returns:
        0.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (%(default)s)")
    parser.add_argument("--output", type=Path, default=RESULT, help="the page (%(default)s)")
    options = parser.parse_args()
    told = machine.describe()
    kept = options.output.with_suffix(".json")
    before = [Run(**one) for one in json.loads(kept.read_text(encoding="utf-8"))] if kept.exists() else []
    done = run(options.kills, options.seed, told["revision"])
    runs = [*(one for one in before if one.seed != options.seed), done]
    kept.write_text(json.dumps([asdict(one) for one in runs], indent=1) + "\n", encoding="utf-8")
    options.output.write_text(page(runs, told), encoding="utf-8")
    sys.stdout.write(page(runs, told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
