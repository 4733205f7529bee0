"""What the compiled codec gives of records, as arrays of Arrow."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_assignors._wire.codec import compiled

_STRING: Final = pa.string()

Columns = tuple[dict[str, bytes], dict[str, tuple[bytes, bytes]]]
"""Columns by name, and the strings that some of them have the numbers of; see `_wire/_records.c`."""


def decode(key: Any, value: Any) -> Columns | None:
    """Decode those of some records that are as most are, given arrays of their keys and values.

    None if the codec was not compiled: then records are decoded one by one.
    """
    codec = compiled()
    if codec is None:
        return None
    columns, texts = codec.decode(len(key), *((side.offset, *side.buffers()) for side in (key, value)))
    return columns, texts


def numbers(raw: bytes) -> Any:
    """The compiled codec's numbers."""
    return np.frombuffer(raw, dtype=np.int32)


def texts(dictionary: tuple[bytes, bytes], kind: pa.DataType = _STRING) -> Any:
    """An array of the compiled codec's strings, by number."""
    bounds, joined = dictionary
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(joined)]
    return pa.Array.from_buffers(kind, len(bounds) // 4 - 1, buffers)


def strings(references: bytes, dictionary: tuple[bytes, bytes]) -> Any:
    """A dictionary-encoded array of the compiled codec's strings; those numbered -1 are null."""
    indices = numbers(references)
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=indices < 0), texts(dictionary))
