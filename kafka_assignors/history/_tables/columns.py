"""Rows that were made one by one to arrays: an object that stands in many rows is made one of once.

Partition lists become a row for each topic here, so that there need not be one of Python's for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from kafka_assignors.history._schemas import PARTITIONS
from kafka_assignors.history._tables.decoded import DECODED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kafka_assignors._model.arrays import IntArray

_T = TypeVar("_T")


def cells_of(columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The numbers of rows' records, and the cells of each column."""
    return [*zip(*rows, strict=True)] or [()] * (1 + len(columns))


def arrays_of(
    name: str, columns: tuple[str, ...], cells: list[tuple[Any, ...]]
) -> tuple[IntArray, dict[str, Any]]:
    """The numbers as an array, and the columns of a table as arrays of its types."""
    numbers, *rest = cells
    arrays = {
        column: _array(of_rows, DECODED[name].field(column).type)
        for column, of_rows in zip(columns, rest, strict=True)
    }
    return np.array(numbers, dtype=np.int64), arrays


def _array(cells: tuple[Any, ...], kind: Any) -> Any:
    if not pa.types.is_list(kind):
        return pa.array(cells, kind)
    each, place = _distinct(cells)
    return pa.array(each, kind).take(pa.array(place))


def _distinct(cells: Sequence[_T]) -> tuple[list[_T], IntArray]:
    """The objects that are there, and for each cell the place of its own among them.

    Members subscribe to the same topics, and are given what they had: what is read twice in a row is the very
    same object, and most often needs to be made an array of once.
    """
    ids = [*map(id, cells)]
    objects = dict(zip(ids, cells, strict=True))
    places = dict(zip(objects, range(len(objects)), strict=True))
    return [*objects.values()], np.array([*map(places.__getitem__, ids)], dtype=np.int64)


def spread_lists(
    tables: Mapping[str, tuple[Mapping[str | None, Collection[int]], ...]],
) -> dict[str, tuple[IntArray, dict[str, Any]]]:
    """A row for each topic of the lists of each table: the number of its list, and its columns."""
    each, every_place = _distinct([one for lists in tables.values() for one in lists])
    topics = pa.array([topic for one in each for topic in one], pa.string())
    partitions = pa.array([ids for one in each for ids in one.values()], PARTITIONS)
    sizes = np.array([*map(len, each)], dtype=np.int64)
    firsts = np.cumsum(sizes) - sizes
    spread, done = {}, 0
    for name, lists in tables.items():
        place = every_place[done : done + len(lists)]
        done += len(lists)
        counts = sizes[place]
        row = np.repeat(np.arange(place.size), counts)
        shift = firsts[place] - (np.cumsum(counts) - counts)
        taken = pa.array(np.arange(row.size) + shift[row])
        spread[name] = row, {"topic": topics.take(taken), "partitions": partitions.take(taken)}
    return spread
