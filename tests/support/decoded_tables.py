"""The tables' rows of a batch, by the compiled codec as far as that takes its records."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from kafka_assignors._wire import codec
from kafka_assignors.history import _arrow as native
from kafka_assignors.history._tables import fast, one_by_one
from kafka_assignors.history._tables.one_by_one import DECODED


def decoded_fast(batch: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Each table's rows in the order of the records, which have offsets in their order."""
    parts = fast.decode(batch, names, native.decode(batch["key"], batch["value"]))
    found = {}
    for name, schema in DECODED.items():
        rows = pa.Table.from_batches([one[name].cast(schema) for one in parts if name in one], schema)
        places = rows["offset"].to_pylist()
        order = sorted(range(len(places)), key=places.__getitem__)
        found[name] = rows.take(pa.array(order, pa.int64())).combine_chunks()
    return found


compiled = pytest.mark.skipif(codec.compiled() is None, reason="_codec was not compiled")

each_decoder = pytest.mark.parametrize(
    "decode",
    [
        pytest.param(decoded_fast, marks=compiled, id="fast"),
        pytest.param(one_by_one.decode, id="one by one"),
    ],
)
"""For tests of what decodes a batch to the tables' rows."""
