"""The job of `history_story`: the same steps by the sources of now, or of before, in a tree that has those.

python -m benchmarks.history_story_job now|before GROUPS GENERATIONS
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from benchmarks.history_archive import records_of_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

BEST_OF: Final = 3

_BEGAN_US: Final = 1_767_225_600_000_000
_MINUTE_US: Final = 60_000_000
_NAMES: Final = ("key", "value", "partition", "offset", "time_us", "leader_epoch")
_TYPES: Final = (pa.binary(), pa.binary(), pa.int32(), pa.int64(), pa.int64(), pa.int32())


def measure(tree: str, groups: int, generations: int) -> dict[str, float]:
    """CPU microseconds that each step takes for a record, the least of some runs."""
    steps = {"before": steps_before, "now": steps_now}[tree]
    batches = batches_of(groups, generations)
    return {
        name: min(_cpu_seconds(step, batches) for _ in range(BEST_OF)) / (groups * generations) * 1e6
        for name, step in steps().items()
    }


def _cpu_seconds(step: Callable[[Any], object], batches: Sequence[Any]) -> float:
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
        found.append(pa.RecordBatch.from_arrays(arrays, names=_NAMES))
    return found


def steps_now() -> Mapping[str, Callable[[Any], object]]:
    """Each step by its name: it takes the records of a group as one batch."""
    # Not at the top: the other tree has none of these.
    from kafka_assignors._common.garbage import no_garbage_collection  # noqa: PLC0415
    from kafka_assignors._groups.topics import TopicsSeen  # noqa: PLC0415
    from kafka_assignors.history._decoded import COLUMNS, read_batches  # noqa: PLC0415
    from kafka_assignors.history._metrics import measure_group  # noqa: PLC0415
    from kafka_assignors.history._report.job import report_group  # noqa: PLC0415
    from kafka_assignors.history._what_if.job import (  # noqa: PLC0415
        ASSIGNORS,
        SCENARIOS,
        check_wanted,
        replay_group,
    )

    topics, wanted = TopicsSeen.always({}), check_wanted(ASSIGNORS, SCENARIOS)

    class Rows:
        """Where a task writes rows; nobody reads them."""

        def write(self, table: str, schema: Any, batch: Any) -> None:
            """Take some."""

    nowhere: Any = Rows()

    def records(batch: Any) -> Iterator[Any]:
        return chain.from_iterable(found for _, found in read_batches([batch.rename_columns([*COLUMNS])]))

    def sent(found: Iterable[Any]) -> list[Any]:
        """What tasks find as it comes back from them."""
        return pickle.loads(pickle.dumps([*found]))  # type: ignore[no-any-return]  # noqa: S301

    def decode(batch: Any) -> None:
        for _ in records(batch):
            pass

    def metrics(batch: Any) -> None:
        with no_garbage_collection():
            sent(measure_group("g", records(batch), nowhere, topics=topics, topic_names={}))

    def what_if(batch: Any) -> None:
        with no_garbage_collection():
            sent(replay_group("g", records(batch), wanted=wanted, topics=topics, topic_names={}))

    def report(batch: Any) -> None:
        with no_garbage_collection():
            sent(report_group("g", records(batch), wanted=wanted, topics=topics, topic_names={}))

    return {"decoded": decode, "metrics": metrics, "what-if": what_if, "report": report}


def steps_before() -> Mapping[str, Callable[[Any], object]]:
    """The same while each command decoded records one by one, and each of its steps did."""
    metrics, pieces, job, snapshots, report = (
        import_module(f"kafka_assignors.history.{name}")
        for name in ("_metrics", "_pieces", "_what_if.job", "_snapshots", "_archive_report")
    )
    topics = import_module("kafka_assignors._groups.topics")
    seen = topics.TopicsSeen.told({})
    scenarios = import_module("kafka_assignors.history._what_if.scenarios").Scenario
    wanted = job._parts([scenarios.of(name) for name in report.SCENARIOS], report.ASSIGNORS, split=False)  # noqa: SLF001 - as the job does

    def records(batch: Any) -> Iterator[Any]:
        return map(metrics.record_of, metrics._rows([batch]))  # noqa: SLF001 - as the job does

    def measure(batch: Any) -> None:
        found = pieces.measure_part(records(batch), pieces.Part(), topics=seen)
        for number, (activity, rebalances) in enumerate(found):
            row = pieces.piece_row("g", 0, number, activity, rebalances)
            pa.RecordBatch.from_pylist([row], schema=pieces.PIECES)

    def read(batch: Any) -> None:
        for _ in snapshots.read_snapshots(records(batch), {}):
            pass

    def replay(batch: Any) -> None:
        timed = batch.rename_columns([name.replace("time_us", "timestamp") for name in _NAMES])
        for part in wanted:
            job.replay_records("g", job._records(iter([timed])), part, seen, {})  # noqa: SLF001 - as the job does

    def report_all(batch: Any) -> None:
        measure(batch)
        replay(batch)
        list(snapshots.read_snapshots(records(batch), {}))  # what is to be drawn is read again, and kept

    return {"decoded": read, "metrics": measure, "what-if": replay, "report": report_all}


if __name__ == "__main__":
    measured = measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write(json.dumps(measured) + "\n")
