"""Arrow's values from Python's and back, and from the compiled codec's, without pandas.

Arrow's own ways (`pa.scalar`, `pa.array`, `as_py` of a time) import pandas, which takes as long as all else.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_assignors._common.times import moment
from kafka_assignors._wire.codec import compiled

_STRING: Final = pa.string()


def number(value: int, kind: pa.DataType) -> Any:
    """A whole number as a scalar: of its type, or microseconds since 1970 as a time."""
    raw = value.to_bytes(kind.bit_width // 8, "little", signed=True)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(raw)])[0]


def integers(values: Sequence[int]) -> Any:
    """An array of int64."""
    raw = pa.py_buffer(np.array(values, dtype="<i8").tobytes())
    return pa.Array.from_buffers(pa.int64(), len(values), [None, raw])


def strings(values: Sequence[str | None]) -> Any:
    """An array of strings."""
    encoded = [b"" if one is None else one.encode() for one in values]
    ends = np.array([0, *accumulate(map(len, encoded))], dtype="<i4")
    there = np.packbits(np.array([one is not None for one in values], dtype=np.bool_), bitorder="little")
    buffers = [pa.py_buffer(one) for one in (there.tobytes(), ends.tobytes(), b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def batch_of(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> Any:
    """A batch of rows in the order of a schema: Arrow takes tuples in a third of the time of dicts."""
    return pa.RecordBatch.from_arrays(pa.array(rows, pa.struct([*schema])).flatten(), schema=schema)


def only(batch: Any, rows: Any) -> Any:
    """Those rows of a batch of which this is true; all of them without a copy."""
    return batch if rows.true_count == len(rows) else batch.filter(rows)


def as_numpy(array: Any) -> Any:
    """Whole numbers or times, none of them null, as numpy has them; what is true or false as 1 or 0."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    width = array.type.bit_width // 8
    raw = array.buffers()[1]
    if raw is None:
        return np.zeros(0, dtype=f"<i{width}")
    return np.frombuffer(raw, dtype=f"<i{width}")[array.offset : array.offset + len(array)]


def values(column: Any) -> list[Any]:
    """The values of a column."""
    if not pa.types.is_timestamp(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    since_1970 = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
    return [None if one is None else moment(one) for one in since_1970]


def rows_of(table: Any) -> Iterator[dict[str, Any]]:
    """The rows of a table or a batch, by the names of its columns."""
    columns = [values(column) for column in table.columns]
    return (dict(zip(table.schema.names, row, strict=True)) for row in zip(*columns, strict=True))


# The compiled codec

Columns = tuple[dict[str, bytes], dict[str, tuple[bytes, bytes]]]
"""Columns by name, and the strings that some of them have the numbers of; see `_wire/_records.c`."""


def decode(key: Any, value: Any) -> Columns | None:
    """Decode those of some records that are as most are, by arrays of keys and values; None without it."""
    codec = compiled()
    if codec is None:
        return None
    columns, texts = codec.decode(len(key), *((side.offset, *side.buffers()) for side in (key, value)))
    return columns, texts


def numbers(raw: bytes) -> Any:
    """The codec's numbers."""
    return np.frombuffer(raw, dtype=np.int32)


def texts(dictionary: tuple[bytes, bytes], kind: pa.DataType = _STRING) -> Any:
    """An array of the codec's strings, by number."""
    bounds, joined = dictionary
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(joined)]
    return pa.Array.from_buffers(kind, len(bounds) // 4 - 1, buffers)


def named(references: bytes, dictionary: tuple[bytes, bytes]) -> Any:
    """A dictionary-encoded array of the codec's strings; those numbered -1 are null."""
    indices = numbers(references)
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=indices < 0), texts(dictionary))
