"""The compiled part, `_decode.c`, and what it gives as arrays of Arrow."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

try:
    _compiled: Any = import_module("kafka_assignors.history._tables._decode")
except ImportError:  # installed without a compiler
    _compiled = None


def compiled() -> Any:
    """The compiled part; None if there is none."""
    return _compiled


def int32s(raw: bytes) -> Any:
    """An array of the compiled part's numbers."""
    return pa.Array.from_buffers(pa.int32(), len(raw) // 4, [None, pa.py_buffer(raw)])


def strings(numbers: bytes, dictionary: tuple[bytes, bytes]) -> Any:
    """A dictionary-encoded array of the compiled part's strings; those numbered -1 are null."""
    bounds, texts = dictionary
    values = pa.Array.from_buffers(
        pa.string(), len(bounds) // 4 - 1, [None, pa.py_buffer(bounds), pa.py_buffer(texts)]
    )
    references = np.frombuffer(numbers, dtype=np.int32)
    is_null = references < 0
    indices = pa.array(references, mask=is_null) if is_null.any() else pa.array(references)
    return pa.DictionaryArray.from_arrays(indices, values)
