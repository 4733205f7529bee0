"""What a record costs on its way from an archive to metrics, what-if and a report; without Spark.

    python -m benchmarks.history_story
    python -m benchmarks.history_story --groups 1 --generations 500

The groups are those of `history_archive`: sticky, 20 members, 200 partitions, one member replaced and one
partition elsewhere in each generation. A report measures them, replays them with its assignors and scenarios,
and keeps what is to be drawn. Spark only hands the records over; its part is not in these times.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from benchmarks.history_archive import records_of_groups
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors.history._decoded import COLUMNS, read_batches
from kafka_assignors.history._pieces import PIECES, HistoryPart, measure_part, piece_row
from kafka_assignors.history._stories import read_states, tell_group
from kafka_assignors.history._what_if.job import (
    ASSIGNORS,
    SCENARIOS,
    check_wanted,
    read_course,
    replay_parts,
    tell_course,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_assignors._groups.snapshots import ArchivedRecord

_BEGAN_US: Final = 1_767_225_600_000_000
_MINUTE_US: Final = 60_000_000
_TYPES: Final = (pa.binary(), pa.binary(), pa.int32(), pa.int64(), pa.int64(), pa.int32())
_TOPICS: Final = TopicsSeen.always({})
_REPLAYS: Final = tuple(chain.from_iterable(check_wanted(ASSIGNORS, SCENARIOS)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table.

    Args:
        arguments: The command line without the program's name; that of the process if None.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.history_story", description="Measure the way of a record."
    )
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--generations", type=int, default=150, help="of each group")
    parser.add_argument("--times", type=int, default=3, help="the best of so many runs is told")
    options = parser.parse_args(arguments)
    batches = batches_of(options.groups, options.generations)
    records = options.groups * options.generations
    sys.stdout.write("| step | CPU us a record |\n|---|---|\n")
    for name, step in (("decoded", decode), ("metrics", metrics), ("what-if", what_if), ("report", report)):
        took = min(_cpu_seconds(step, batches) for _ in range(options.times))
        sys.stdout.write(f"| {name} | {took / records * 1e6:,.0f} |\n")
        sys.stdout.flush()
    return 0


def _cpu_seconds(step: Any, batches: Sequence[Any]) -> float:
    began = time.process_time()
    for batch in batches:
        step(batch)
    return time.process_time() - began


def batches_of(groups: int, generations: int) -> list[Any]:
    """The records of each group in one batch, as a Spark task gets them."""
    pairs = list(records_of_groups("00", groups, groups * generations))
    found = []
    for group in range(groups):
        rows = [
            (key, value, 0, offset, _BEGAN_US + offset * _MINUTE_US, 0)
            for offset, (key, value) in enumerate(pairs[group::groups])
        ]
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, _TYPES, strict=True)]
        found.append(pa.RecordBatch.from_arrays(arrays, names=COLUMNS))
    return found


def _records(batch: Any) -> Iterator[ArchivedRecord]:
    return chain.from_iterable(records for _, records in read_batches([batch]))


def decode(batch: Any) -> None:
    """Decode a group's records."""
    for _ in _records(batch):
        pass


def metrics(batch: Any) -> None:
    """Measure a group, to rows of Arrow."""
    for number, (activity, found) in enumerate(measure_part(_records(batch), HistoryPart(), topics=_TOPICS)):
        pa.RecordBatch.from_pylist([piece_row("g", 0, number, activity, found)], schema=PIECES)


def what_if(batch: Any) -> None:
    """Replay a group with all assignors and scenarios that are tried unless told otherwise."""
    course, broken = read_course(tell_course("g", _records(batch), _TOPICS, {}))
    replay_parts("g", course, _REPLAYS, broken)


def report(batch: Any) -> None:
    """All that a report needs of a group, but for the page itself."""
    told = tell_group("g", HistoryPart(), _records(batch), topics=_TOPICS, topic_names={}, replayed=True)
    rows = list(told)
    for row in rows:
        if "states" in row:
            read_states(row["states"])
    course, broken = read_course(row for row in rows if "course" in row)
    replay_parts("g", course, _REPLAYS, broken)


if __name__ == "__main__":
    sys.exit(main())
