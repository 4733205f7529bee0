"""How many records there are of each type, in an archive or a batch of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_assignors._wire.offsets_topic.record import RECORD_TYPES
from kafka_assignors.history._arrow import as_numpy, number

NO_TYPE: Final = -1  # of records whose key does not begin with one
_NO_TYPE: Final = number(NO_TYPE, pa.int16())


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many records there are, by name of their type: those that are kept, and those only counted."""

    kept: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Counts) -> Counts:
        return Counts(kept=self.kept + other.kept, counted=self.counted + other.counted)

    @property
    def read(self) -> int:
        """All of them."""
        return self.kept.total() + self.counted.total()

    def to_json(self) -> dict[str, Any]:
        """How many were read, kept and only counted."""
        return {"read": self.read, "kept": dict(self.kept), "counted": dict(self.counted)}


def name_of_type(number: int) -> str:
    """What a type of records is called."""
    return "no type" if number < 0 else RECORD_TYPES.get(number, f"type {number}")


def is_kept(batch: Any) -> Any:
    """(rows,) whether each row of schema ARCHIVE is a record, and does not just say how many there were."""
    return pc.or_(pc.is_valid(batch["key"]), pc.equal(batch["type"], _NO_TYPE))


def tally(batch: Any) -> Counts:
    """How many records a batch's rows stand for."""
    # In numpy, as Arrow's own grouping imports pandas.
    codes = 2 * as_numpy(batch["type"]).astype(np.int64) + as_numpy(is_kept(batch))
    found, places = np.unique(codes, return_inverse=True)
    sums = np.zeros(len(found), dtype=np.int64)
    np.add.at(sums, places, as_numpy(batch["count"]))
    counts = Counts()
    for code, count in zip(found.tolist(), sums.tolist(), strict=True):
        (counts.kept if code % 2 else counts.counted)[name_of_type(code // 2)] += count
    return counts
