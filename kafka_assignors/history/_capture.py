"""The offsets topic of a running cluster into an archive: no record twice, none lost, whenever it is ended.

Spark notes in the checkpoint which offsets a batch has before it reads them, and that it is done once it is
in its place in the archive. A batch that was cut off is read again, and written unless it had its place.
"""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException

from kafka_assignors._cluster.admin import Admin
from kafka_assignors.history import _source as source
from kafka_assignors.history._archive import TOPIC_SOURCE, Counts, WrongArchiveError, file_uri
from kafka_assignors.history._log import read_bounds, read_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from kafka_assignors.history._archive import Archive

MAX_RECORDS: Final = 2_000_000
"""How many offsets a batch has by default: some seconds of work on one machine."""

INTERVAL_SECONDS: Final = 60.0
"""How often a continuous capture writes a batch by default."""

_LOOK_SECONDS: Final = 1
_TOPICS_SECONDS: Final = 600.0  # how often a continuous capture looks for new topics


class CaptureError(RuntimeError):
    """A capture ended before it was done; the message says why. The same command goes on with the rest."""


@dataclass(frozen=True, kw_only=True)
class Captured:
    """What a capture has done so far.

    Attributes:
        offsets: How many offsets of the log it has gone over; compaction may have left fewer records.
        total: How many there were to go over when it began.
        batches: How many batches it wrote.
        counts: How many records it read, by type.
    """

    offsets: int = 0
    total: int = 0
    batches: int = 0
    counts: Counts = field(default_factory=Counts)


def capture(
    spark: SparkSession,
    bootstrap_servers: Sequence[str],
    archive: Archive,
    *,
    once: bool = True,
    interval: float = INTERVAL_SECONDS,
    settings: Mapping[str, Any] | None = None,
    max_records: int = MAX_RECORDS,
    watch: Callable[[Captured], None] | None = None,
) -> Captured:
    """Capture what there is of `__consumer_offsets`, or what is new since the last time.

    Args:
        spark: The session.
        bootstrap_servers: "host:port" each.
        archive: Where to.
        once: End when all is captured that was there at the beginning; else go on until Ctrl-C.
        interval: How often to look, in seconds, if not once.
        settings: Further settings in kafka-python's spelling; see `command_config.read_command_config`.
            Certificates must be files that all workers see.
        max_records: How many offsets a batch may have.
        watch: Is told of the progress.

    Returns:
        What this call did.

    Raises:
        ArchiveBusyError: Another process is writing into the archive.
        WrongArchiveError: It is of another cluster, or of an offsets topic that is no more.
        ClusterError: The cluster does not answer, or does not let its offsets topic be read.
        CaptureError: Something failed on the way.
        KeyboardInterrupt: Ctrl-C, if once; what was not captured will be the next time.
    """
    client = {**(settings or {}), "bootstrap_servers": list(bootstrap_servers)}
    with archive.writing(), Admin(bootstrap_servers, settings) as admin:
        bounds = read_bounds(client)
        _check_readable(client, bounds)
        cluster = admin.ask(lambda asked: asked.describe_cluster())
        archive.belongs_to(cluster["cluster_id"], len(bounds))
        # Until a first batch is done, Spark asks where to begin. It may be the first of a second checkpoint.
        start = done_to(archive.checkpoint) or archive.frontier(spark)
        _check_log(archive, start, bounds)
        archive.add_topics(read_topics(admin))
        source.register(spark)
        with _interrupts() as interrupted:
            job = _Job(archive, admin, start, bounds, interrupted)
            writer = (
                spark.readStream.format(source.FORMAT)
                .options(**source.source_options(client, max_records=max_records, first=start))
                .load()
                .writeStream.foreachBatch(job.write)
                .option("checkpointLocation", file_uri(archive.checkpoint))
            )
            every = (
                {"availableNow": True} if once else {"processingTime": f"{int(1000 * interval)} milliseconds"}
            )
            query = writer.trigger(**every).start()
            _wait(query, job, watch)
            if once and interrupted():
                raise KeyboardInterrupt
        return job.captured()


def _wait(query: StreamingQuery, job: _Job, watch: Callable[[Captured], None] | None) -> None:
    ended = False
    while not ended:
        try:
            ended = bool(query.awaitTermination(_LOOK_SECONDS))
            # Spark fills the terminal with traces of stacks when it is stopped in the midst of a batch.
            if not ended and job.interrupted() and not query.status["isTriggerActive"]:
                query.stop()
        except PySparkException as error:
            ended = True
            if not job.interrupted():
                raise CaptureError(reason(str(error))) from error
        job.advance(query)
        if watch is not None:
            watch(job.captured())


class _Job:
    """What is done with each batch, and what became of it."""

    def __init__(
        self,
        archive: Archive,
        admin: Admin,
        start: Mapping[int, int],
        bounds: Mapping[int, tuple[int, int]],
        interrupted: Callable[[], bool],
    ) -> None:
        self.interrupted = interrupted
        self._archive = archive
        self._admin = admin
        self._start = {number: start.get(number, first) for number, (first, _) in bounds.items()}
        self._total = sum(max(0, end - self._start[number]) for number, (_, end) in bounds.items())
        self._offsets = 0
        self._batches = 0
        self._counts = Counts()
        self._looked = time.monotonic()

    def write(self, rows: DataFrame, number: int) -> None:
        """Write a batch, in a thread of Spark's; after Ctrl-C, none any more."""
        if self.interrupted():
            raise InterruptedError("there was a Ctrl-C; this batch is for the next capture")
        if dumps := self._archive.dumps():
            known = self._archive.places(rows.sparkSession, dumps)
            # What is only counted has the offset of the last of its kind, which no dump's kept record has.
            rows = rows.join(known, ["partition", "offset"], "left_anti").select(*rows.columns)
        counts = self._archive.write(rows, TOPIC_SOURCE, f"{_run(self._archive.checkpoint)}-{number:08}")
        self._counts += counts
        self._batches += 1
        if time.monotonic() > self._looked + _TOPICS_SECONDS:
            self._looked = time.monotonic()
            self._archive.add_topics(read_topics(self._admin))

    def advance(self, query: StreamingQuery) -> None:
        """See how far the query has got."""
        progress = query.lastProgress
        if progress is not None and (told := progress["sources"][0]["endOffset"]) is not None:
            ends: dict[str, int] = json.loads(told) if isinstance(told, str) else told
            self._offsets = sum(end - self._start.get(int(number), 0) for number, end in ends.items())

    def captured(self) -> Captured:
        """What was done so far."""
        return Captured(offsets=self._offsets, total=self._total, batches=self._batches, counts=self._counts)


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Whether there was a Ctrl-C; the first does not interrupt what goes on meanwhile, the second does.

    PySpark's own handler talks to Java in the midst of whatever it said to it last.
    """
    seen = threading.Event()

    def interrupt(*_: object) -> None:
        if seen.is_set():
            raise KeyboardInterrupt
        seen.set()

    if threading.current_thread() is not threading.main_thread():
        yield seen.is_set
        return
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield seen.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def reason(text: str) -> str:
    """What failed, out of the traces that Spark puts around it.

    That is what this package raised in a worker, else what Python did, else Java's deepest cause.
    """
    for pattern in (
        r"^kafka_assignors[\w.]*\.(\w+: .+)$",
        r"^(?!py4j)(?:\w+\.)*(\w*Error: .+)$",
        r"^Caused by: (?:[\w$]+\.)*([\w$]+: .+)$",
        r"^: (?:[\w$]+\.)*([\w$]+: .+)$",
    ):
        if found := re.findall(pattern, text, re.MULTILINE):
            return str(found[-1])
    return text.partition("\n")[0]


def _check_readable(client: Mapping[str, Any], bounds: Mapping[int, tuple[int, int]]) -> None:
    """Read one record here: who may see the topic's offsets need not be allowed to read it."""
    for number, (first, end) in bounds.items():
        if end > first:
            for _ in source.read_stretch(client, source.Stretch(number, first, first + 1)):
                pass
            return


def _check_log(archive: Archive, start: Mapping[int, int], bounds: Mapping[int, tuple[int, int]]) -> None:
    for number, offset in start.items():
        if number in bounds and offset > bounds[number][1]:
            raise WrongArchiveError(
                f"{archive.path} has {archive.description.topic}-{number} up to offset {offset}, and the"
                f" cluster's ends at {bounds[number][1]}: the topic was made anew; name another folder"
            )


def done_to(checkpoint: Path) -> dict[int, int]:
    """By partition, where the newest batch ends that is done; empty if none is."""
    done = max((int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")), default=None)
    if done is None:
        return {}
    noted = (checkpoint / "offsets" / str(done)).read_text(encoding="utf-8")
    ends: dict[str, int] = json.loads(noted.splitlines()[-1])
    return {int(number): end for number, end in ends.items()}


def _run(checkpoint: Path) -> str:
    """What tells the batches of this checkpoint from those of one that was lost."""
    return str(json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"])[:8]
