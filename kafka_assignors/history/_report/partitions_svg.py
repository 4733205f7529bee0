"""Partitions across time, in the colour of the consumer that had them: a lane each, or one stack of all."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from kafka_assignors.history._report import words
from kafka_assignors.history._report.svg import ROW, SLIVER, label, n, shape, strokes, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from kafka_assignors.history._report.drawing import Column
    from kafka_assignors.history._report.svg import Colouring, Scale

STACK: Final = 170
_LETTER: Final = 11  # a box that is narrower has no letter


def lanes(scale: Scale, colouring: Colouring, partitions: Sequence[str], top: float) -> list[Markup]:
    """A lane for each partition, with slivers where it was without an owner in a rebalance."""
    names: list[Markup] = []
    boxes: dict[str, list[tuple[float, float, float]]] = {}
    letters: list[Markup] = []
    for row, partition in enumerate(partitions):
        middle = top + ROW * (row + 0.5)
        names.append(label(partition, middle))
        inks: dict[str, list[tuple[float, str]]] = {}
        since = next((at for at, one in enumerate(scale.columns) if one.owners[row]), 0)
        # Before its first owner it may not have been there.
        owners = [column.owners[row] for column in scale.columns[since:]]
        for first, after, owner in scale.runs(owners, since):
            boxes.setdefault(colouring.shade(owner), []).append((first, after, middle))
            if after - first >= _LETTER and (letter := colouring.letter(owner)):
                inks.setdefault(colouring.ink(owner), []).append(((first + after) / 2, letter))
        letters += [written(ink, found, middle) for ink, found in inks.items()]
    slivers = [
        f"M{n(x + SLIVER / 2)} {n(top + ROW * row)}v{ROW * length}"
        for column, x in scale.placed
        for row, length in _in_rows(_without(column, len(partitions)))
    ]
    return [
        *names,
        *(shape(f"bar {shade}", strokes(found)) for shade, found in boxes.items()),
        *letters,
        shape("sliver", "".join(slivers)),
    ]


def _in_rows(places: Sequence[int]) -> list[tuple[int, int]]:
    """Places that follow each other, as the first and how many."""
    groups = itertools.groupby(enumerate(places), key=lambda item: item[1] - item[0])
    found = [[place for _, place in group] for _, group in groups]
    return [(group[0], len(group)) for group in found]


def _without(column: Column, partitions: int) -> Sequence[int]:
    """The numbers of the partitions that were without an owner while the group rebalanced."""
    return range(partitions) if column.stopped else column.without


def stack(scale: Scale, colouring: Colouring, partitions: Sequence[str], top: float) -> Iterator[Markup]:
    """Loads upon each other, in the order of the consumers' rows; what has no owner is on top."""
    unit = STACK / len(partitions)
    known = set(colouring.names)
    others = [sum(one.loads[name] for name in one.loads.keys() - known) for one in scale.columns]
    layers = [("cz", others)]
    layers += [
        (colouring.shade(name), [one.loads.get(name, 0) for one in scale.columns])
        for name in reversed(colouring.names)
    ]
    layers.append(("none", [one.free for one in scale.columns]))
    bottoms = [top + STACK] * len(scale.columns)
    for shade, counts in layers:
        tops = [bottom - count * unit for bottom, count in zip(bottoms, counts, strict=True)]
        rounded = [(round(low, 1), round(high, 1)) for low, high in zip(bottoms, tops, strict=True)]
        boxes = [
            f"M{n(left)} {n(low)}H{n(right)}V{n(high)}H{n(left)}z"
            for left, right, (low, high) in scale.runs(rounded)
            if high < low
        ]
        if boxes:
            yield shape(f"area {shade}", "".join(boxes))
        bottoms = tops
    slivers = [
        f"M{n(x + SLIVER / 2)} {n(top)}v{n(len(lost) * unit)}"
        for column, x in scale.placed
        if (lost := _without(column, len(partitions)))
    ]
    yield shape("sliver", "".join(slivers))
    yield label(words.count(len(partitions), "partition"), top + 6)
    yield label("0", top + STACK - 6)
