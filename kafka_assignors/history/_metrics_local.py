"""Groups of a small archive measured in this process; `_metrics` does it on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from kafka_assignors.history._local import of_each_group
from kafka_assignors.history._metrics_tables import replacing
from kafka_assignors.history._pieces import add_up, measure_window
from kafka_assignors.history._schemas import GROUPS, REBALANCES
from kafka_assignors.history._store.places import place
from kafka_assignors.history._store.writing import TaskFiles

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from kafka_assignors._groups.topics import SeenTopic


def measure_here(
    records: pa.Table,
    topics: Sequence[SeenTopic] = (),
    out: str | os.PathLike[str] | None = None,
    options: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Measure all groups, and write the tables `rebalances` and `groups` if they are wanted.

    Args:
        records: As `read_groups` of `_local` gives them.
        topics: The cluster's topics, as `Archive.topics` gives them.
        out: See `write_metrics`; None to write nothing.
        options: See `write_metrics`.

    Returns:
        The rows of the table GROUPS, for pyarrow.
    """
    pieces = of_each_group(records, measure_window(topics))
    if out is None:
        return [*add_up(pieces)]
    where = place(out, options)
    with replacing(where) as files:
        with TaskFiles(where, f"part-{uuid4().hex}") as task:
            found = [*add_up(_writing(task, pieces))]
            task.write("groups", GROUPS, pa.RecordBatch.from_pylist(found, schema=GROUPS))
        files.update({table: [file] for table, file in task.written.items()})
    return found


def _writing(task: TaskFiles, pieces: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for piece in pieces:
        rows = pa.array(piece["rebalances"], pa.struct(list(REBALANCES)))
        task.write("rebalances", REBALANCES, pa.RecordBatch.from_arrays(rows.flatten(), schema=REBALANCES))
        yield piece
