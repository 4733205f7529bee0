"""A group's timeline as SVG: consumers and partitions across time, and what each rebalance cost.

Colours are classes of the page's style sheet: c0 to c9, with h for the same colours hatched, cz for all
consumers without a row of their own, none for no owner. Lengths are in units of the viewBox.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, NamedTuple

from markupsafe import Markup

from kafka_assignors.history.report import _words as words
from kafka_assignors.history.report._layout import LEFT, RIGHT, Colouring, Scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from kafka_assignors.history.report._columns import Column
    from kafka_assignors.history.report._model import Limits

WIDTH: Final = 1000

_AXIS: Final = 46
_ROW: Final = 18
_HEADING: Final = 22
_STACK: Final = 170
_BARS: Final = 42
_NAME: Final = 28  # letters of a consumer's or a partition's name
_LABEL: Final = 44  # from one time on the axis to the next
_DAY: Final = 84
_LETTER: Final = 11  # a box that is narrower has no letter
_DIGIT: Final = 7
_SLIVER: Final = 4


class OwnerRun(NamedTuple):
    """The same over several columns, from one to before another."""

    first: int
    after: int
    value: str


def timeline(columns: Sequence[Column], limits: Limits, *, key: str, title: str) -> Markup:
    """The picture; empty if there is nothing to draw.

    Args:
        columns: The history.
        limits: How many consumers and partitions get rows.
        key: Begins the ids of its elements.
        title: What it is called where it cannot be seen.
    """
    if not columns:
        return Markup()
    scale, colouring = Scale.of(columns), Colouring.of(columns, limits.consumers)
    partitions = sorted({one for column in columns for one in column.owners})
    top = float(_AXIS)
    parts: list[Markup] = []
    if colouring.names:
        parts += [
            _heading("Consumers and how many partitions each had", top),
            *_consumers(scale, colouring, top + _HEADING),
        ]
        top += _HEADING + _ROW * (len(colouring.names) + bool(colouring.others)) + 8
    if partitions:
        few = len(partitions) <= limits.lanes
        wording = "Partitions, in the colour of the consumer that had them"
        parts.append(_heading(wording if few else f"{len(partitions):,} partitions, by who had them", top))
        top += _HEADING
        parts += (_lanes if few else _stack)(scale, colouring, partitions, top)
        top += (_ROW * len(partitions) if few else _STACK) + 8
    for draw in (_moved, _unowned):
        parts += draw(scale, top)
        top += _HEADING + _BARS + 8
    height = round(top)
    return Markup(
        '<svg class="timeline" viewBox="0 0 {} {}" role="img" aria-labelledby="{}t {}d">'
        '<title id="{}t">{}</title><desc id="{}d">{}</desc>{}{}{}</svg>'
    ).format(
        WIDTH,
        height,
        key,
        key,
        key,
        title,
        key,
        "The same is told as text below the picture.",
        _axis(scale, height),
        Markup().join(parts),
        _tips(scale, height),
    )


def told(columns: Sequence[Column], limits: Limits) -> list[tuple[str, str, str]]:
    """The picture's consumers as text: letter, name, and when each was there with how many partitions."""
    colouring = Colouring.of(columns, limits.consumers)
    found = []
    for name in colouring.names:
        stays = [run for run in _runs(name if name in one.loads else "" for one in columns) if run.value]
        loads = [one.loads[name] for one in columns if name in one.loads]
        low, high = min(loads), max(loads)
        had = (
            words.count(high, "partition") if low == high else f"{low:,} to {words.count(high, 'partition')}"
        )
        first, last = columns[stays[0].first], columns[stays[-1].after - 1]
        text = f"{had}; from {words.moment(first.begin)} to {_end(columns, last)}"
        if len(stays) > 1:
            text += f", away {words.times(len(stays) - 1)} in between"
        found.append((colouring.letter(name), name, text))
    if colouring.others:
        others = words.count(colouring.others, "other consumer")
        found.append(("", others, "fewer partitions, or for a shorter time; grey in the picture"))
    return found


def _end(columns: Sequence[Column], last: Column) -> str:
    return "the end" if last is columns[-1] else words.moment(last.end)


def _runs(values: Iterable[str]) -> Iterator[OwnerRun]:
    at = 0
    for value, same in itertools.groupby(values):
        length = sum(1 for _ in same)
        yield OwnerRun(at, at + length, value)
        at += length


def _heading(text: str, top: float) -> Markup:
    return Markup('<text class="head" x="4" y="{}">{}</text>').format(_n(top + 15), text)


def _label(text: str, middle: float, *, left: float = 4) -> Markup:
    # Names that are alike differ at their ends, most often.
    short = text if len(text) <= _NAME else f"{text[: _NAME // 2 - 1]}…{text[-_NAME // 2 :]}"
    full = Markup("<title>{}</title>").format(text) if short != text else ""
    return Markup('<text class="name" x="{}" y="{}">{}{}</text>').format(
        _n(left), _n(middle + 4), short, full
    )


def _axis(scale: Scale, height: float) -> Markup:
    """Days and times above; a line down for each column with a rebalance, a tick as thick as there were."""
    parts: list[Markup] = []
    free = free_day = float(LEFT)
    day, shown = None, ""
    lines: list[str] = []
    for column, x in zip(scale.columns, scale.edges, strict=False):
        if column.begin.date() != day and x >= free_day:
            parts.append(
                Markup('<text class="day" x="{}" y="12">{}</text>').format(
                    _n(x), words.moment(column.begin)[:-6]
                )
            )
            day, free_day = column.begin.date(), x + _DAY
        clock = f"{column.begin:%H:%M}"
        if x >= free and x + _LABEL - 6 <= WIDTH and f"{day} {clock}" != shown:
            parts.append(Markup('<text class="time" x="{}" y="27">{}</text>').format(_n(x), clock))
            free, shown = x + _LABEL, f"{day} {clock}"
        if column.rebalances:
            lines.append(f"M{_n(x)} 33V{_n(height)}")
    ticks = [
        f"M{_n(x)} 32v10h{min(2 + len(one.rebalances), 8)}v-10z"
        for one, x in zip(scale.columns, scale.edges, strict=False)
        if one.rebalances
    ]
    return Markup(
        '<text class="name" x="4" y="27">Time (UTC)</text><path class="line" d="{}"/>'
        '<path class="tick" d="{}"/>{}'
    ).format("".join(lines), "".join(ticks), Markup().join(parts))


def _consumers(scale: Scale, colouring: Colouring, top: float) -> Iterator[Markup]:
    edges = scale.edges
    for row, name in enumerate(colouring.names):
        middle = top + _ROW * (row + 0.5)
        yield Markup(
            '<path class="chip {}" d="M4 {}h16"/><text class="on {}" x="12" y="{}">{}</text>'
        ).format(
            shade := colouring.shade(name),
            _n(middle),
            ink := colouring.ink(name),
            _n(middle + 4),
            colouring.letter(name),
        )
        yield _label(name, middle, left=26)
        there = [
            run for run in _runs(name if name in one.loads else "" for one in scale.columns) if run.value
        ]
        yield Markup('<path class="bar {}" d="{}"/>').format(
            shade, _path((edges[run.first], edges[run.after], middle) for run in there)
        )
        loads = [
            ((edges[run.first] + edges[run.after]) / 2, run.value)
            for run in _runs(str(one.loads.get(name, "")) for one in scale.columns)
            if run.value and edges[run.after] - edges[run.first] >= _DIGIT * len(run.value) + 6
        ]
        yield _written(ink, loads, middle)
    if colouring.others:
        middle = top + _ROW * (len(colouring.names) + 0.5)
        yield _label(words.count(colouring.others, "other consumer"), middle, left=26)
        known = set(colouring.names)
        there = [
            run for run in _runs("*" * bool(one.loads.keys() - known) for one in scale.columns) if run.value
        ]
        yield Markup('<path class="bar cz" d="{}"/>').format(
            _path((edges[run.first], edges[run.after], middle) for run in there)
        )


def _lanes(
    scale: Scale, colouring: Colouring, partitions: Sequence[tuple[str, int]], top: float
) -> list[Markup]:
    names: list[Markup] = []
    boxes: dict[str, list[tuple[float, float, float]]] = {}
    letters: list[Markup] = []
    for row, partition in enumerate(partitions):
        middle = top + _ROW * (row + 0.5)
        names.append(_label(f"{partition[0]}-{partition[1]}", middle))
        inks: dict[str, list[tuple[float, str]]] = {}
        since = next(at for at, one in enumerate(scale.columns) if partition in one.owners)
        # Before its first owner it may not have been there.
        for run in _runs(column.owners.get(partition, "") for column in scale.columns[since:]):
            first, after = scale.edges[since + run.first], scale.edges[since + run.after]
            shade = colouring.shade(run.value) if run.value else "none"
            boxes.setdefault(shade, []).append((first, after, middle))
            if after - first >= _LETTER and (letter := colouring.letter(run.value)):
                inks.setdefault(colouring.ink(run.value), []).append(((first + after) / 2, letter))
        letters += [_written(ink, found, middle) for ink, found in inks.items()]
    slivers = [
        f"M{_n(x + _SLIVER / 2)} {_n(top + _ROW * row)}v{_ROW * length}"
        for column, x in zip(scale.columns, scale.edges, strict=False)
        for row, length in _in_rows(_without(column, partitions))
    ]
    return [
        *names,
        *(
            Markup('<path class="bar {}" d="{}"/>').format(shade, _path(found))
            for shade, found in boxes.items()
        ),
        *letters,
        Markup('<path class="sliver" d="{}"/>').format("".join(slivers)),
    ]


def _in_rows(places: Sequence[int]) -> list[tuple[int, int]]:
    """Places that follow each other, as the first and how many."""
    groups = itertools.groupby(enumerate(places), key=lambda item: item[1] - item[0])
    found = [[place for _, place in group] for _, group in groups]
    return [(group[0], len(group)) for group in found]


def _without(column: Column, partitions: Sequence[tuple[str, int]]) -> list[int]:
    """Which of the partitions were without an owner while the group rebalanced, by their place."""
    found: set[int] = set()
    places = {partition: place for place, partition in enumerate(partitions)}
    for one in column.rebalances:
        if one.unowned_seconds <= 0:
            continue
        if one.unowned_seconds >= 0.9 * one.seconds * one.partitions:  # all, but for rounding
            return list(range(len(partitions)))
        moved = {(move.topic, move.partition) for move in one.moves}
        found.update(places[partition] for partition in moved if partition in places)
    return sorted(found)


def _stack(
    scale: Scale, colouring: Colouring, partitions: Sequence[tuple[str, int]], top: float
) -> Iterator[Markup]:
    """Loads upon each other, in the order of the consumers' rows; what has no owner is on top."""
    unit = _STACK / len(partitions)
    layers = ["", *reversed(colouring.names), None]
    bottoms = [top + _STACK] * len(scale.columns)
    known = set(colouring.names)
    for layer in layers:
        heights = [_height(column, layer, known, len(partitions)) * unit for column in scale.columns]
        shade = "none" if layer is None else colouring.shade(layer)
        boxes = []
        for _, same in itertools.groupby(
            range(len(heights)), key=lambda at: (round(bottoms[at], 1), round(heights[at], 1))
        ):
            run = list(same)
            if heights[run[0]] > 0:
                left, right = scale.edges[run[0]], scale.edges[run[-1] + 1]
                low, high = bottoms[run[0]], bottoms[run[0]] - heights[run[0]]
                boxes.append(f"M{_n(left)} {_n(low)}H{_n(right)}V{_n(high)}H{_n(left)}z")
        if boxes:
            yield Markup('<path class="area {}" d="{}"/>').format(shade, "".join(boxes))
        bottoms = [bottom - height for bottom, height in zip(bottoms, heights, strict=True)]
    slivers = [
        f"M{_n(x + _SLIVER / 2)} {_n(top)}v{_n(len(lost) * unit)}"
        for column, x in zip(scale.columns, scale.edges, strict=False)
        if (lost := _without(column, partitions))
    ]
    yield Markup('<path class="sliver" d="{}"/>').format("".join(slivers))
    yield _label(words.count(len(partitions), "partition"), top + 6)
    yield _label("0", top + _STACK - 6)


def _height(column: Column, layer: str | None, known: set[str], partitions: int) -> int:
    if layer is None:
        return partitions - len(column.owners)
    if layer:
        return column.loads.get(layer, 0)
    return sum(load for name, load in column.loads.items() if name not in known)


def _moved(scale: Scale, top: float) -> Iterator[Markup]:
    most = max((one.moved for one in scale.columns), default=0)
    yield _heading("Partitions that changed hands in a rebalance", top)
    yield from _bars(scale, top, [one.moved for one in scale.columns], most, "needless")
    yield from _bars(scale, top, [one.least_moved for one in scale.columns], most, "needed")
    yield _label(f"at most {most:,}" if most else "none moved", top + _HEADING + 6)


def _unowned(scale: Scale, top: float) -> Iterator[Markup]:
    most = max((one.unowned_seconds for one in scale.columns), default=0.0)
    yield _heading("Time without an owner, added up over partitions", top)
    yield from _bars(scale, top, [one.unowned_seconds for one in scale.columns], most, "unowned")
    yield _label(
        f"at most {words.duration(most, short=True)}" if most else "never without", top + _HEADING + 6
    )


def _bars(scale: Scale, top: float, values: Sequence[float], most: float, shade: str) -> Iterator[Markup]:
    floor = top + _HEADING + _BARS
    bars = [
        f"M{_n(x + _SLIVER)} {_n(floor)}v-{_n(max(1.0, _BARS * value / most))}"
        for value, x in zip(values, scale.edges, strict=False)
        if value > 0
    ]
    if shade != "needed":
        yield Markup('<path class="floor" d="M{} {}H{}"/>').format(LEFT, _n(floor), RIGHT)
    yield Markup('<path class="upright {}" d="{}"/>').format(shade, "".join(bars))


def _tips(scale: Scale, height: float) -> Markup:
    """What a pointer over a column shows."""
    return Markup('<g class="tips">{}</g>').format(
        Markup().join(
            Markup('<path d="M{} 30H{}V{}H{}z"><title>{}</title></path>').format(
                _n(x), _n(after), _n(height), _n(x), _tip(column)
            )
            for column, x, after in zip(scale.columns, scale.edges, scale.edges[1:], strict=False)
            if column.rebalances
        )
    )


def _tip(column: Column) -> str:
    first = min(one.ended for one in column.rebalances)
    return (
        f"{_clock(first)}: {words.count(len(column.rebalances), 'rebalance')}, {column.moved:,} moved,"
        f" {words.duration(column.unowned_seconds, short=True)} without an owner"
    )


def _clock(time: datetime) -> str:
    return words.moment(time, seconds=True)


def _written(ink: str, texts: Sequence[tuple[float, str]], middle: float) -> Markup:
    """Texts at places in a row; those of one letter in one element."""
    short = [(x, text) for x, text in texts if len(text) == 1]
    parts = [([x for x, _ in short], "".join(text for _, text in short))] if short else []
    parts += [([x], text) for x, text in texts if len(text) > 1]
    return Markup().join(
        Markup('<text class="on {}" y="{}" x="{}">{}</text>').format(
            ink, _n(middle + 4), " ".join(map(_n, places)), text
        )
        for places, text in parts
    )


def _path(boxes: Iterable[tuple[float, float, float]]) -> str:
    """Strokes from, to and at a height; from the end of the one before if that is in the same row."""
    parts: list[str] = []
    x, y = -1, -1
    for left, right, middle in boxes:
        first, row = round(left), round(middle)
        length = max(round(right) - first - 1, 1)
        start = f"m{first - x} 0" if row == y else f"M{first} {row}"
        parts.append(f"{start}h{length}")
        x, y = first + length, row
    return "".join(parts)


def _n(value: float) -> str:
    """A length in whole units: at most half a pixel off, and a third less to write."""
    return str(round(value))
