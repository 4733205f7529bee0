"""Archives of several kinds of groups, in folders: what commands read with Spark and without."""

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

from kafka_assignors._assignors import CooperativeStickyAssignor, RangeAssignor
from kafka_assignors._common.times import moment
from kafka_assignors._groups.snapshots import ArchivedRecord
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history._archive import Archive
from tests.support.archives import counted, random_records as random_pairs, row
from tests.support.group_histories import START_US, random_life, random_records
from tests.support.kip848_log import SEEN_TOPICS, Log, a_third_passes, two_come
from tests.support.written_archives import write_archive

DAY = 86_400
SINCE = moment(START_US + 11_500_000)
"""The group of KIP-848 of `story` has members then, and rebalances later."""


def kip848(*, pause: float = 0) -> list[ArchivedRecord]:
    """Two members come, and a third for a second; two days later one goes, and then a fourth comes."""
    log = Log()
    two_come(log)
    a_third_passes(log)
    log.at(2 * DAY)
    log.gone("a")
    log.reached(5)
    log.at(2 * DAY + 1)
    log.has("b", 5, "t0 t1 t2 t3")
    log.at(2 * DAY + 1 + pause)
    log.joined("d")
    log.reached(6)
    log.has("b", 5, "t0 t1", gives="t2 t3", state=1)
    log.at(2 * DAY + 4 + pause)
    log.has("b", 6, "t0 t1")
    log.has("d", 6, "t2 t3")
    return log.records


def rows_of(
    records: Iterable[ArchivedRecord], partition: int | None = None, group: str = "", *, later_us: int = 0
) -> list[dict[str, Any]]:
    """Records as rows of an archive, in a partition of their own if that is given."""
    return [
        row(key, one.value, partition=one.partition if partition is None else partition, offset=one.offset)
        | {"timestamp": moment(one.time_us + later_us), "leader_epoch": one.leader_epoch}
        for one in records
        for key in [group_metadata_key(group) if group else one.key]
    ]


def story(folder: Path) -> Archive:
    """Groups of all kinds in several batches, one of which brings records that are there already."""
    lives = [
        rows_of(kip848(), 1),
        rows_of(random_records(3, records=80), 2, "odd"),
        rows_of(random_life(3, [RangeAssignor]).records, 3, "range", later_us=START_US),
        rows_of(random_life(1, [CooperativeStickyAssignor]).records, 4, "coop", later_us=START_US),
    ]
    every = [one for life in lives for one in life]
    Random(1).shuffle(every)
    third = len(every) // 3
    parts = [every[:third], every[third:], [*every[:20], counted(0, 1_000), counted(1, 7)]]
    write_archive(folder, parts)
    return _with_topics(folder)


def chance(folder: Path, seed: int) -> Archive:
    """Records of a few groups at random, damaged ones and such of no group among them."""
    pairs = random_pairs(Random(seed), 200)
    rows = [row(key, value, offset=offset) for offset, (key, value) in enumerate(pairs)]
    write_archive(folder, [rows[:90], rows[90:150], rows[150:]])
    return _with_topics(folder)


def _with_topics(folder: Path) -> Archive:
    archive = Archive(folder)
    archive.add_topics(SEEN_TOPICS)
    return Archive(folder)
