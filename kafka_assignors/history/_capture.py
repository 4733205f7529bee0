"""The offsets topic of a running cluster into an archive, no record twice and none lost, whenever it ends.

How far the topic was read is in the commit of the batch. A batch that was cut off is read again.
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_assignors._cluster.handle import connect
from kafka_assignors._common.plain import fields_of
from kafka_assignors.history import _limits as limits
from kafka_assignors.history._archive import TOPIC_SOURCE
from kafka_assignors.history._archive_format import ArchiveBusyError, WrongArchiveError, log_of
from kafka_assignors.history._counts import Counts
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._log import read_bounds, read_topic_id, read_topics
from kafka_assignors.history._source import Stretch, advance, read_stretch, source_of_log
from kafka_assignors.history._store.log import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kafka_assignors._cluster.admin import Admin
    from kafka_assignors._cluster.handle import Cluster
    from kafka_assignors._model.arrays import IntArray
    from kafka_assignors.history._archive import Archive


@dataclass(frozen=True, kw_only=True)
class Captured:
    """What a capture has done so far.

    Attributes:
        offsets: How many offsets of the log it has gone over; compaction may have left fewer records.
        total: How many there were to go over when it began.
        batches: How many batches it wrote.
        counts: How many records it read, by type.
        lost: How many of these offsets retention had removed since the capture before.
    """

    offsets: int = 0
    total: int = 0
    batches: int = 0
    lost: int = 0
    counts: Counts = field(default_factory=Counts)

    def to_json(self) -> dict[str, Any]:
        """For machines: the counts beside the others."""
        return {**fields_of(self, without=("total", "counts")), **self.counts.to_json()}


def capture(
    cluster: Cluster,
    archive: Archive,
    *,
    once: bool = True,
    interval: float = limits.INTERVAL_SECONDS,
    max_records: int = limits.MAX_RECORDS,
    commits: bool = False,
    watch: Callable[[Captured], None] | None = None,
    engine: Engine | None = None,
) -> Captured:
    """Capture what there is of `__consumer_offsets`, or what is new since the last time.

    Args:
        cluster: The cluster. Certificates that its settings name are files that all workers see.
        archive: Where to.
        once: End when all is captured that was there at the beginning; else continue until Ctrl-C.
        interval: How often to look, in seconds, if not once.
        max_records: How many offsets a batch may have.
        commits: Whether to keep committed offsets, too, about one a minute of each partition.
        watch: Gets the progress after each batch.
        engine: What reads the topic; Spark by default.

    Raises:
        ArchiveBusyError: Another capture is writing into the archive.
        WrongArchiveError: It is of another cluster, or of an offsets topic that is no more.
        StoreError: The archive cannot be written.
        ClusterError: The cluster does not answer, or does not let its offsets topic be read.
        SparkError: Spark failed; the next capture continues with the rest.
        KeyboardInterrupt: Ctrl-C, if once; what was not captured will be the next time.
    """
    engine = engine or Engine.spark(progress=False)
    engine.start()
    with connect(cluster) as admin:
        client = dict(admin.settings)
        bounds = read_bounds(admin)
        _check_readable(client, bounds)
        _check_same(archive, admin, bounds)
        archive.add_topics(read_topics(admin))
        with _interrupts() as interrupted:
            job = _Job(engine, archive, client, bounds, max_records, commits)
            while not interrupted.is_set():
                began = time.monotonic()
                while (left := job.left()) and not interrupted.is_set():
                    job.write_batch(left)
                    if watch is not None:
                        watch(job.captured)
                if once:
                    break
                interrupted.wait(max(0.0, began + interval - time.monotonic()))
                if not interrupted.is_set():
                    job.look_again(admin)
            if once and interrupted.is_set():
                raise KeyboardInterrupt
        return job.captured


@dataclass
class _Job:
    engine: Engine
    archive: Archive
    client: Mapping[str, Any]
    bounds: Mapping[int, tuple[int, int]]
    max_records: int
    commits: bool = False

    def __post_init__(self) -> None:
        self._looked = time.monotonic()
        self.captured = Captured(total=sum(end - start for _, start, end in self.left()))

    def left(self) -> list[Stretch]:
        """What of each partition was not read when the ends were looked up."""
        read = self.archive.frontier()
        found = (
            Stretch(number, read.get(number, first), end) for number, (first, end) in self.bounds.items()
        )
        return [one for one in found if one.end > one.start]

    def look_again(self, admin: Admin) -> None:
        """Look where the log ends now, and from time to time for topics."""
        self._refresh()  # of an old version, files of dumps may be deleted that a batch has to read
        bounds = read_bounds(admin)
        _check_same(self.archive, admin, bounds)
        self.bounds = bounds
        if time.monotonic() > self._looked + limits.TOPICS_SECONDS:
            self._looked = time.monotonic()
            self.archive.add_topics(read_topics(admin))

    def write_batch(self, left: Sequence[Stretch]) -> None:
        batch = advance(left, self.max_records)
        ends = {log_of(one.partition): one.end for one in batch}
        known = self._known(batch)
        split = partial(
            source_of_log, settings=self.client, stretches=batch, known=known, commits=self.commits
        )
        try:
            counts = self.archive.append(partial(self.engine.run, split), TOPIC_SOURCE, ends)
        except ConflictError:
            self._refresh()
            return  # an import was faster: the same again, without what that has added
        before = self.captured
        self.captured = replace(
            before,
            offsets=before.offsets + sum(end - start for _, start, end in batch),
            batches=before.batches + 1,
            counts=before.counts + counts,
            lost=before.lost
            + sum(max(0, min(end, self.bounds[number][0]) - start) for number, start, end in batch),
        )

    def _refresh(self) -> None:
        before = self.archive.frontier()
        self.archive.refresh()
        if self.archive.frontier() != before:
            raise ArchiveBusyError(
                f"another capture is writing into {self.archive.where}, and was faster: end one of the two"
            )

    def _known(self, batch: Sequence[Stretch]) -> dict[int, IntArray]:
        """By partition, the offsets of a batch whose records the archive has of dumps."""
        files = [
            file
            for file in self.archive.files()
            if file.values["source"] != TOPIC_SOURCE
            and any(
                file.may_have("partition", number) and file.may_have("offset", start, end - 1)
                for number, start, end in batch
            )
        ]
        there = self.archive.offsets_of(files)
        return {
            number: there[number][(there[number] >= start) & (there[number] < end)]
            for number, start, end in batch
            if number in there
        }


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Whether there was a Ctrl-C: the first interrupts nothing, as PySpark's would; the second does."""
    seen = threading.Event()

    def interrupt(*_: object) -> None:
        if seen.is_set():
            raise KeyboardInterrupt
        seen.set()

    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def _check_readable(client: Mapping[str, Any], bounds: Mapping[int, tuple[int, int]]) -> None:
    """Read one record here: who may see the topic's offsets need not be allowed to read it."""
    for number, (first, end) in bounds.items():
        if end > first:
            for _ in read_stretch(client, Stretch(number, first, first + 1)):
                pass
            return


def _check_same(archive: Archive, admin: Admin, bounds: Mapping[int, tuple[int, int]]) -> None:
    """Make sure that the archive is of this cluster, and of its offsets topic as it is now."""
    cluster = admin.ask(lambda asked: asked.describe_cluster())
    archive.belongs_to(cluster["cluster_id"], len(bounds), read_topic_id(admin))
    for number, offset in archive.frontier().items():
        if number in bounds and offset > bounds[number][1]:
            raise WrongArchiveError(
                f"{archive.where} has {archive.description.topic}-{number} up to offset {offset}, and the"
                f" cluster's ends at {bounds[number][1]}: the topic was created again. Or an unclean election"
                " of a leader has cut its log off. Name another folder"
            )
