"""A group's timeline as SVG: consumers and partitions across time, and what each rebalance cost.

Colours are classes of the page's style sheet: c0 to c9, with h for the same colours hatched. All consumers
without a row of their own have cz, and `none` is for no owner. Lengths are in units of the viewBox.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from kafka_assignors.history.report import _words as words
from kafka_assignors.history.report._layout import LEFT, RIGHT, Colouring, Scale
from kafka_assignors.history.report._partitions_svg import STACK, lanes, stack
from kafka_assignors.history.report._svg import (
    HEADING,
    ROW,
    SLIVER,
    heading,
    label,
    n,
    runs,
    shape,
    strokes,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from kafka_assignors.history.report._model import Column, ReportLimits

WIDTH: Final = 1000

_AXIS: Final = 46
_BARS: Final = 42
_LABEL: Final = 44  # from one time on the axis to the next
_DAY: Final = 84
_DIGIT: Final = 7


def timeline(columns: Sequence[Column], limits: ReportLimits, *, key: str, title: str) -> Markup:
    """The picture; empty if there is nothing to draw. The ids of its elements begin with `key`."""
    if not columns:
        return Markup()
    scale, colouring = Scale.of(columns), Colouring.of(columns, limits.consumers)
    partitions = sorted({one for column in columns for one in column.owners})
    top = float(_AXIS)
    parts: list[Markup] = []
    if colouring.names:
        parts += [
            heading("Consumers and how many partitions each had", top),
            *_consumers(scale, colouring, top + HEADING),
        ]
        top += HEADING + ROW * (len(colouring.names) + bool(colouring.others)) + 8
    if partitions:
        few = len(partitions) <= limits.lanes
        wording = "Partitions, in the colour of the consumer that had them"
        parts.append(heading(wording if few else f"{len(partitions):,} partitions, by who had them", top))
        top += HEADING
        parts += (lanes if few else stack)(scale, colouring, partitions, top)
        top += (ROW * len(partitions) if few else STACK) + 8
    for draw in (_moved, _unowned):
        parts += draw(scale, top)
        top += HEADING + _BARS + 8
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
        "The same is below the picture as text.",
        _axis(scale, height),
        Markup().join(parts),
        _tips(scale, height),
    )


def told(columns: Sequence[Column], limits: ReportLimits) -> list[tuple[str, str, str]]:
    """The picture's consumers as text: letter, name, and when each was there with how many partitions."""
    colouring = Colouring.of(columns, limits.consumers)
    found = []
    for name in colouring.names:
        stays = [run for run in runs(name if name in one.loads else "" for one in columns) if run.value]
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
                    n(x), words.moment(column.begin)[:-6]
                )
            )
            day, free_day = column.begin.date(), x + _DAY
        clock = f"{column.begin:%H:%M}"
        if x >= free and x + _LABEL - 6 <= WIDTH and f"{day} {clock}" != shown:
            parts.append(Markup('<text class="time" x="{}" y="27">{}</text>').format(n(x), clock))
            free, shown = x + _LABEL, f"{day} {clock}"
        if column.ended:
            lines.append(f"M{n(x)} 33V{n(height)}")
    ticks = [
        f"M{n(x)} 32v10h{min(2 + len(one.ended), 8)}v-10z"
        for one, x in zip(scale.columns, scale.edges, strict=False)
        if one.ended
    ]
    return Markup(
        '<text class="name" x="4" y="27">Time (UTC)</text><path class="line" d="{}"/>'
        '<path class="tick" d="{}"/>{}'
    ).format("".join(lines), "".join(ticks), Markup().join(parts))


def _consumers(scale: Scale, colouring: Colouring, top: float) -> Iterator[Markup]:
    edges = scale.edges
    for row, name in enumerate(colouring.names):
        middle = top + ROW * (row + 0.5)
        yield Markup(
            '<path class="chip {}" d="M4 {}h16"/><text class="on {}" x="12" y="{}">{}</text>'
        ).format(
            shade := colouring.shade(name),
            n(middle),
            ink := colouring.ink(name),
            n(middle + 4),
            colouring.letter(name),
        )
        yield label(name, middle, left=26)
        there = [run for run in runs(name if name in one.loads else "" for one in scale.columns) if run.value]
        yield shape(f"bar {shade}", strokes((edges[run.first], edges[run.after], middle) for run in there))
        loads = [
            ((edges[run.first] + edges[run.after]) / 2, run.value)
            for run in runs(str(one.loads.get(name, "")) for one in scale.columns)
            if run.value and edges[run.after] - edges[run.first] >= _DIGIT * len(run.value) + 6
        ]
        yield written(ink, loads, middle)
    if colouring.others:
        middle = top + ROW * (len(colouring.names) + 0.5)
        yield label(words.count(colouring.others, "other consumer"), middle, left=26)
        known = set(colouring.names)
        there = [
            run for run in runs("*" * bool(one.loads.keys() - known) for one in scale.columns) if run.value
        ]
        yield Markup('<path class="bar cz" d="{}"/>').format(
            strokes((edges[run.first], edges[run.after], middle) for run in there)
        )


def _moved(scale: Scale, top: float) -> Iterator[Markup]:
    most = max((one.moved for one in scale.columns), default=0)
    yield heading("Partitions that changed hands in a rebalance", top)
    yield from _bars(scale, top, [one.moved for one in scale.columns], most, "needless")
    yield from _bars(scale, top, [one.moved - one.needless for one in scale.columns], most, "needed")
    yield label(f"at most {most:,}" if most else "none moved", top + HEADING + 6)


def _unowned(scale: Scale, top: float) -> Iterator[Markup]:
    most = max((one.unowned_seconds for one in scale.columns), default=0.0)
    yield heading("Time without an owner, added up over partitions", top)
    yield from _bars(scale, top, [one.unowned_seconds for one in scale.columns], most, "unowned")
    yield label(f"at most {words.duration(most, short=True)}" if most else "never without", top + HEADING + 6)


def _bars(scale: Scale, top: float, values: Sequence[float], most: float, shade: str) -> Iterator[Markup]:
    floor = top + HEADING + _BARS
    bars = [
        f"M{n(x + SLIVER)} {n(floor)}v-{n(max(1.0, _BARS * value / most))}"
        for value, x in zip(values, scale.edges, strict=False)
        if value > 0
    ]
    if shade != "needed":
        yield Markup('<path class="floor" d="M{} {}H{}"/>').format(LEFT, n(floor), RIGHT)
    yield shape(f"upright {shade}", "".join(bars))


def _tips(scale: Scale, height: float) -> Markup:
    """What a pointer over a column shows."""
    return Markup('<g class="tips">{}</g>').format(
        Markup().join(
            Markup('<path d="M{} 30H{}V{}H{}z"><title>{}</title></path>').format(
                n(x), n(after), n(height), n(x), _tip(column)
            )
            for column, x, after in zip(scale.columns, scale.edges, scale.edges[1:], strict=False)
            if column.ended
        )
    )


def _tip(column: Column) -> str:
    first = min(column.ended)
    return (
        f"{_clock(first)}: {words.count(len(column.ended), 'rebalance')}, {column.moved:,} moved,"
        f" {words.duration(column.unowned_seconds, short=True)} without an owner"
    )


def _clock(time: datetime) -> str:
    return words.moment(time, seconds=True)
