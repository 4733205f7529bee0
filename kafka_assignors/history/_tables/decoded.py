"""What comes of a batch of the archive: a batch for each table.

All decoders return what is in the records, and for each row the number of its record in the batch. What else
stands in a row is taken from the archive's columns here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_assignors._common.times import LAST_MS
from kafka_assignors.history._counts import is_kept
from kafka_assignors.history._schemas import (
    ASSIGNMENTS,
    CLAIMS,
    GENERATIONS,
    MEMBERS,
    RECORDS,
    REJECTED,
    TIME,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors._model.arrays import IntArray

DECODED: Final = {
    "records": RECORDS,
    "generations": GENERATIONS,
    "members": MEMBERS,
    "assignments": ASSIGNMENTS,
    "claims": CLAIMS,
    "rejected": REJECTED,
}
"""The tables that a decoder makes rows of. Of `generations` there is a row for each record; see `job`."""


def kept(batch: Any) -> IntArray:
    """The numbers of a batch's rows that are records, not counts of records."""
    return np.flatnonzero(np.asarray(is_kept(batch)))


def table(name: str, batch: Any, numbers: IntArray, columns: Mapping[str, Any]) -> Any:
    """The rows of a table of `DECODED`, with (R,) the number of each row's record in a batch of ARCHIVE.

    Strings can be dictionary-encoded; else the result has the table's schema.
    """
    indices = pa.array(numbers, pa.int64())

    def of_record(column: str) -> Any:
        if column == "records":
            return pa.array(np.ones(len(numbers), dtype=np.int32))
        return batch["timestamp" if column in {"time", "first_time"} else column].take(indices)

    schema = DECODED[name]
    arrays = [columns[one] if one in columns else of_record(one) for one in schema.names]
    fields = [field.with_type(array.type) for field, array in zip(schema, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def microseconds(milliseconds: int) -> int | None:
    """A time as the archive has it; None for one that is not there, or that no clock would show."""
    return milliseconds * 1000 if 0 <= milliseconds <= LAST_MS else None


def all_microseconds(milliseconds: IntArray) -> Any:
    """An array of such times."""
    told = (milliseconds >= 0) & (milliseconds <= LAST_MS)
    return pa.array(np.where(told, milliseconds, 0) * 1000, pa.int64(), mask=~told).cast(TIME)
