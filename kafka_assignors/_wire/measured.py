"""What members of `load-aware` measure, as they send it to their leader.

It is what stands behind the priority in a member's user data (`user_data`), in at most `LIMIT` bytes:

    int16 version, which is 1
    int16 topics, each: string, 3 x float32 of its other partitions, int16 n, n x (int32 id, 3 x float32)

The three numbers are the cost of a record in seconds, the lag in records, and the records that arrive a
second. -1 stands for what the member does not know. The partitions with the most work stand one by one, and
those numbers of a topic's others are means. All integers are big-endian. Versions after 1 append: what
follows the topics is not read.

The bytes come from other members, so reading trusts nothing. A number that cannot be counts as unknown.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafka_assignors._model.arrays import FloatArray, IntArray
from kafka_assignors._wire.reader import INT16, Reader, UnreadableError, encode_string

VERSION: Final = 1

LIMIT: Final = 2048
"""Bytes that a member's measures have at most."""

ONE_BY_ONE: Final = 100
"""How many partitions at most are sent one by one."""

UNKNOWN: Final = -1.0

MOST: Final = (86_400.0, 1e15, 1e9)
"""The most that is believed: a day for a record, a lag, and records a second."""

_NUMBERS: Final = np.dtype(">f4")
_PARTITION: Final = np.dtype([("id", ">i4"), ("numbers", _NUMBERS, 3)])
_HEAD: Final = 2 * INT16.size
_OTHERS: Final = 3 * _NUMBERS.itemsize


class Measured(NamedTuple):
    """What is known of one partition: seconds a record, records that wait, records a second that arrive.

    NaN is what is not known.
    """

    cost: float = np.nan
    lag: float = np.nan
    arriving: float = np.nan

    def work(self, seconds: float = 60.0) -> float:
        """Seconds that a member needs for what waits, and for what arrives in so many seconds."""
        cost, lag, arriving = (0.0 if value != value else value for value in self)  # noqa: PLR0124 - NaN
        return cost * (lag + seconds * arriving)


class MeasuredTopic(NamedTuple):
    """What a member measured of one topic; NaN is what is not known.

    `ids` (K,) are partitions, `numbers` (K, 3) what is known of each, and `others` (3,) the mean of the
    member's other partitions of the topic, all as in `Measured`.
    """

    name: str
    ids: IntArray
    numbers: FloatArray
    others: FloatArray


def encode_measured(measured: Mapping[tuple[str, int], Measured]) -> bytes:
    """Write what a member measured of each (topic, partition id); what does not fit is left out.

    The same mapping gives the same bytes.
    """
    if not measured:
        return b""
    costliest = sorted(measured, key=lambda one: (-measured[one].work(), one))[:ONE_BY_ONE]
    left, singles, names = LIMIT - _HEAD, set[tuple[str, int]](), set[str]()
    for name, number in [*costliest, *((name, None) for name in sorted({name for name, _ in measured}))]:
        size = 0 if name in names else len(encode_string(name)) + _OTHERS + INT16.size
        size += 0 if number is None else _PARTITION.itemsize
        if size <= left:
            left -= size
            names.add(name)
            if number is not None:
                singles.add((name, number))
    parts = [INT16.pack(VERSION), INT16.pack(len(names))]
    for name, listed in groupby(sorted(measured), key=itemgetter(0)):
        if name not in names:
            continue
        keys = [*listed]
        alone = [one for one in keys if one in singles]
        rows = np.zeros(len(alone), dtype=_PARTITION)
        rows["id"] = [number for _, number in alone]
        rows["numbers"] = _sent(np.array([measured[one] for one in alone]).reshape(-1, 3))
        others = _mean(measured[one] for one in keys if one not in singles)
        parts += [encode_string(name), _sent(others).tobytes(), INT16.pack(len(alone)), rows.tobytes()]
    return b"".join(parts)


def decode_measured(data: bytes) -> tuple[list[MeasuredTopic], str | None]:
    """Read what a member sent, and what is wrong with it; what cannot be read counts as not there."""
    if len(data) > LIMIT:
        return [], f"{len(data)} bytes are more than the {LIMIT} that are read"
    reader, topics, fault = Reader(data), list[MeasuredTopic](), None
    if not data:
        return topics, fault
    try:
        version = reader.version()
        if version < VERSION:
            return [], f"there is no version {version} of measures"
        listed = reader.int16("the number of topics")
        if listed < 0:
            return [], f"the number of topics is {listed}"
        for _ in range(listed):
            name = reader.text("a topic's name")
            others, bad = _believed(np.frombuffer(reader.take(_OTHERS, "numbers"), dtype=_NUMBERS))
            count = reader.int16("the number of partitions")
            raw = reader.take(count * _PARTITION.itemsize, "partitions")
            rows = np.frombuffer(raw, dtype=_PARTITION)
            numbers, worse = _believed(rows["numbers"])
            fault = fault or bad or worse
            ids = rows["id"].astype(np.int64)
            topics.append(MeasuredTopic(name=name, ids=ids, numbers=numbers, others=others))
    except UnreadableError as error:
        fault = str(error)
    return topics, fault


def _mean(measured: Iterable[Measured]) -> FloatArray:
    """(3,) the means of what is known."""
    table = np.array([*measured], dtype=np.float64).reshape(-1, 3)
    known = ~np.isnan(table)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, table, 0.0).sum(axis=0) / known.sum(axis=0))


def _sent(numbers: FloatArray) -> NDArray[np.float32]:
    """Numbers as they are sent."""
    clipped = np.minimum(numbers, np.array(MOST))
    return np.where(np.isnan(numbers), UNKNOWN, clipped).astype(_NUMBERS)


def _believed(sent: NDArray[np.float32]) -> tuple[FloatArray, str | None]:
    """Numbers with NaN for what is not known or not believed, and the first of the latter."""
    numbers = sent.astype(np.float64)
    unknown = numbers == UNKNOWN
    most = np.array(MOST) * (1 + 1e-6)  # as float32 has it
    with np.errstate(invalid="ignore"):
        bad = ~(unknown | ((numbers >= 0) & (numbers <= most)))
    fault = f"{numbers[bad][0]:g} is no cost, lag or rate" if bad.any() else None
    return np.where(unknown | bad, np.nan, numbers), fault
