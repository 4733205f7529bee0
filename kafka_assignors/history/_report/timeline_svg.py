"""A group's timeline as SVG: consumers and partitions across time, and what each rebalance cost; and a strip.

Lengths are in units of the viewBox. Colours are classes of the page's style sheet: c0 to c9, with h the same
hatched, cz of all consumers without a row of their own, and `none` of no owner.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Self, TypeVar

from markupsafe import Markup, escape

from kafka_assignors._common.escaping import escaped
from kafka_assignors.history import _limits as limits
from kafka_assignors.history._report import words
from kafka_assignors.history._report.drawing import Column

Value = TypeVar("Value")

ROW: Final = 18
HEADING: Final = 22
SLIVER: Final = 4
LEFT: Final = 216  # of the part that shows time
RIGHT: Final = 992
_HEX: Final = "3f90da ffa90e bd1f01 832db6 a96b59 e76300 b9ac70 92dadd 717581 94a4a2"
COLOURS: Final = [f"#{colour}" for colour in _HEX.split()]
_DARK: Final = frozenset({2, 3, 8})  # colours on which white is read better than black
LETTERS: Final = "ABCDEFGHIJKLMNOPQRST"

_NAME: Final = 28  # letters of a consumer's or a partition's name
WIDTH: Final = 1000

_AXIS: Final = 46
_BARS: Final = 42
_STACK: Final = 170
_LETTER: Final = 11  # a box that is narrower has no letter
_LABEL: Final = 44  # from one time on the axis to the next
_DAY: Final = 84
_DIGIT: Final = 7

_STRIP_BARS: Final = 60
_STRIP: Final = 24
_STEPS: Final = [
    timedelta(seconds=seconds)
    for seconds in (1, 10, 60, 300, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 7 * 86_400)
]


def runs(values: Iterable[Value]) -> Iterator[tuple[int, int, Value]]:
    """Equal values that follow each other, together: from one to before another."""
    at = 0
    for value, same in itertools.groupby(values):
        length = sum(1 for _ in same)
        yield at, at + length, value
        at += length


def n(value: float) -> str:
    """A length in whole units: at most half a pixel off, and a third less to write."""
    return str(round(value))


def tag(name: str, *inside: str, **attributes: str | float) -> Markup:
    """An element; in the names of attributes _ stands for -, and behind them for nothing."""
    written = [
        f' {one.rstrip("_").replace("_", "-")}="{safe(value) if isinstance(value, str) else round(value)}"'
        for one, value in attributes.items()
    ]
    end = f">{''.join(map(safe, inside))}</{name}>" if inside else "/>"
    return Markup(f"<{name}{''.join(written)}{end}")  # noqa: S704 - all of it is escaped


def safe(text: str) -> Markup:
    """What is shown of a text; markup has gone through this before."""
    return text if isinstance(text, Markup) else escape(escaped(text))


def shape(classes: str, path: str) -> Markup:
    """A path, coloured by these classes of the style sheet."""
    return tag("path", class_=classes, d=path)


def heading(text: str, top: float) -> Markup:
    """What stands above a part of the picture."""
    return tag("text", text, class_="head", x=4, y=top + 15)


def label(text: str, middle: float, *, left: float = 4) -> Markup:
    """A name at the left of a row; a long one without its middle, and in full where a pointer is over it."""
    text = escaped(text)
    # Names that are alike differ at their ends, most often.
    short = text if len(text) <= _NAME else f"{text[: _NAME // 2 - 1]}…{text[-_NAME // 2 :]}"
    full = [tag("title", text)] if short != text else []
    return tag("text", short, *full, class_="name", x=left, y=middle + 4)


def written(ink: str, texts: Sequence[tuple[float, str]], middle: float) -> Markup:
    """Texts at places in a row; those of one letter in one element."""
    short = [(x, text) for x, text in texts if len(text) == 1]
    parts = [([x for x, _ in short], "".join(text for _, text in short))] if short else []
    parts += [([x], text) for x, text in texts if len(text) > 1]
    y = middle + 4
    return Markup().join(
        tag("text", text, class_=f"on {ink}", y=y, x=" ".join(map(n, places))) for places, text in parts
    )


def strokes(boxes: Iterable[tuple[float, float, float]]) -> str:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Where columns are drawn: `edges` are one more than columns."""

    columns: Sequence[Column]
    edges: Sequence[float]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Self:
        """Columns as wide as their weights say."""
        total = sum(one.weight for one in columns)
        sums = itertools.accumulate((one.weight for one in columns), initial=0.0)
        return cls(columns=columns, edges=[LEFT + (RIGHT - LEFT) * at / total for at in sums])

    @property
    def placed(self) -> list[tuple[Column, float]]:
        """The columns, and where each begins."""
        return [*zip(self.columns, self.edges[:-1], strict=True)]

    def runs(self, values: Iterable[Value], since: int = 0) -> Iterator[tuple[float, float, Value]]:
        """Equal values of columns that follow each other: from where to where, and which."""
        for first, after, value in runs(values):
            yield self.edges[since + first], self.edges[since + after], value


@dataclass(frozen=True, slots=True, kw_only=True)
class Colouring:
    """Which consumers have a row, in this order, and how many have none."""

    names: Sequence[str]
    others: int

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Self:
        """Those that had the most partitions for the longest time, in the order in which they came."""
        had: Counter[str] = Counter()
        for column in columns:
            seconds = (column.end - column.begin).total_seconds()
            for name, load in column.loads.items():
                had[name] += round(1000 * (load + 0.01) * (seconds + 0.01))
        chosen = {name for name, _ in had.most_common(limits.CONSUMERS)}
        names = [name for name in had if name in chosen]
        return cls(names=names, others=len(had) - len(names))

    def shade(self, name: str) -> str:
        """The classes of a consumer's colour; "none" of nobody."""
        if name not in self.names:
            return "cz" if name else "none"
        place = self.names.index(name)
        return f"c{place % len(COLOURS)}{' h' if place >= len(COLOURS) else ''}"

    def ink(self, name: str) -> str:
        """The class of what is written on its colour; on hatches it has a halo."""
        if name not in self.names:
            return "dark"
        place = self.names.index(name)
        return "halo" if place >= len(COLOURS) else "light" if place in _DARK else "dark"

    def letter(self, name: str) -> str:
        """The letter in its boxes; empty without a row."""
        return LETTERS[self.names.index(name)] if name in self.names else ""


def timeline(columns: Sequence[Column], partitions: Sequence[str], *, key: str, title: str) -> Markup:
    """The picture; empty if there is nothing to draw. The ids of its elements begin with `key`."""
    if not columns:
        return Markup()
    scale, colouring = Scale.of(columns), Colouring.of(columns)
    top = float(_AXIS)
    parts: list[Markup] = []
    if colouring.names:
        parts += [
            heading("Consumers and how many partitions each had", top),
            *_consumers(scale, colouring, top + HEADING),
        ]
        top += HEADING + ROW * (len(colouring.names) + bool(colouring.others)) + 8
    if partitions:
        few = len(partitions) <= limits.LANES
        wording = "Partitions, in the colour of the consumer that had them"
        parts.append(heading(wording if few else f"{len(partitions):,} partitions, by who had them", top))
        top += HEADING
        parts += (_lanes if few else _stack)(scale, colouring, partitions, top)
        top += (ROW * len(partitions) if few else _STACK) + 8
    parts += _moved(scale, top)
    top += HEADING + _BARS + 8
    return tag(
        "svg",
        tag("title", title, id=f"{key}t"),
        tag("desc", "The same is below the picture as text.", id=f"{key}d"),
        *_axis(scale, top),
        *parts,
        tag("g", *_tips(scale, top), class_="tips"),
        class_="timeline",
        viewBox=f"0 0 {WIDTH} {n(top)}",
        role="img",
        aria_labelledby=f"{key}t {key}d",
    )


def told(columns: Sequence[Column]) -> list[tuple[str, str, str]]:
    """The picture's consumers as text: letter, name, and when each was there with how many partitions."""
    colouring = Colouring.of(columns)
    brief = _is_brief(columns)
    found = []
    for name in colouring.names:
        stays = [run for run in runs(name in one.loads for one in columns) if run[2]]
        loads = [one.loads[name] for one in columns if name in one.loads]
        low, high = min(loads), max(loads)
        had = (
            words.count(high, "partition") if low == high else f"{low:,} to {words.count(high, 'partition')}"
        )
        first, last = columns[stays[0][0]], columns[stays[-1][1] - 1]
        end = "the end" if last is columns[-1] else words.moment(last.end, seconds=brief)
        text = f"{had}; from {words.moment(first.begin, seconds=brief)} to {end}"
        if len(stays) > 1:
            text += f", away {words.times(len(stays) - 1)} in between"
        found.append((colouring.letter(name), name, text))
    if colouring.others:
        others = words.count(colouring.others, "other consumer")
        found.append(("", others, "fewer partitions, or for a shorter time; grey in the picture"))
    return found


def _is_brief(columns: Sequence[Column]) -> bool:
    return bool(columns) and words.is_brief(columns[0].begin, columns[-1].end)


def _axis(scale: Scale, height: float) -> Iterator[Markup]:
    """Days and times above; a line down for each column with a rebalance, a tick as thick as there were."""
    there = [(column, x) for column, x in scale.placed if column.ended]
    yield tag("text", "Time (UTC)", class_="name", x=4, y=27)
    yield shape("line", "".join(f"M{n(x)} 33V{n(height)}" for _, x in there))
    yield shape("tick", "".join(f"M{n(x)} 32v10h{min(2 + len(one.ended), 8)}v-10z" for one, x in there))
    brief = _is_brief(scale.columns)
    width = _LABEL + 18 * brief
    free = free_day = float(LEFT)
    day, shown = None, ""
    for column, x in scale.placed:
        if column.begin.date() != day and x >= free_day:
            yield tag("text", words.moment(column.begin)[:-6], class_="day", x=x, y=12)
            day, free_day = column.begin.date(), x + _DAY
        clock = f"{column.begin:%H:%M:%S}" if brief else f"{column.begin:%H:%M}"
        if x >= free and x + width - 6 <= WIDTH and f"{day} {clock}" != shown:
            yield tag("text", clock, class_="time", x=x, y=27)
            free, shown = x + width, f"{day} {clock}"


def _consumers(scale: Scale, colouring: Colouring, top: float) -> Iterator[Markup]:
    for row, name in enumerate(colouring.names):
        middle = top + ROW * (row + 0.5)
        shade, ink = colouring.shade(name), colouring.ink(name)
        yield shape(f"chip {shade}", f"M4 {n(middle)}h16")
        yield written(ink, [(12, colouring.letter(name))], middle)
        yield label(name, middle, left=26)
        yield _stays(scale, shade, [name in one.loads for one in scale.columns], middle)
        loads = [
            ((first + after) / 2, text)
            for first, after, text in scale.runs(str(one.loads.get(name, "")) for one in scale.columns)
            if text and after - first >= _DIGIT * len(text) + 6
        ]
        yield written(ink, loads, middle)
    if colouring.others:
        middle = top + ROW * (len(colouring.names) + 0.5)
        yield label(words.count(colouring.others, "other consumer"), middle, left=26)
        known = set(colouring.names)
        yield _stays(scale, "cz", [bool(one.loads.keys() - known) for one in scale.columns], middle)


def _stays(scale: Scale, shade: str, there: Sequence[bool], middle: float) -> Markup:
    stays = ((first, after, middle) for first, after, is_there in scale.runs(there) if is_there)
    return shape(f"bar {shade}", strokes(stays))


def _lanes(scale: Scale, colouring: Colouring, partitions: Sequence[str], top: float) -> list[Markup]:
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
        f"M{n(x + SLIVER / 2)} {n(top + ROW * first)}v{ROW * (after - first)}"
        for column, x in scale.placed
        for first, after, is_without in runs(
            column.stopped or row in column.without for row in range(len(partitions))
        )
        if is_without
    ]
    return [
        *names,
        *(shape(f"bar {shade}", strokes(found)) for shade, found in boxes.items()),
        *letters,
        shape("sliver", "".join(slivers)),
    ]


def _stack(scale: Scale, colouring: Colouring, partitions: Sequence[str], top: float) -> Iterator[Markup]:
    """Loads upon each other, in the order of the consumers' rows; what has no owner is on top."""
    unit = _STACK / len(partitions)
    known = set(colouring.names)
    layers = [
        ("cz", [sum(one.loads[name] for name in one.loads.keys() - known) for one in scale.columns]),
        *(
            (colouring.shade(name), [one.loads.get(name, 0) for one in scale.columns])
            for name in reversed(colouring.names)
        ),
        ("none", [one.free for one in scale.columns]),
    ]
    bottoms = [top + _STACK] * len(scale.columns)
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
    lost = [(len(partitions) if one.stopped else len(one.without), x) for one, x in scale.placed]
    slivers = [f"M{n(x + SLIVER / 2)} {n(top)}v{n(count * unit)}" for count, x in lost if count]
    yield shape("sliver", "".join(slivers))
    yield label(words.count(len(partitions), "partition"), top + 6)
    yield label("0", top + _STACK - 6)


def _moved(scale: Scale, top: float) -> Iterator[Markup]:
    most = max((one.moved for one in scale.columns), default=0)
    yield heading("Partitions that changed hands in a rebalance", top)
    yield shape("floor", f"M{LEFT} {n(top + HEADING + _BARS)}H{RIGHT}")
    yield _bars(scale, top, [one.moved for one in scale.columns], most, "needless")
    yield _bars(scale, top, [one.moved - one.needless for one in scale.columns], most, "moved")
    yield label(f"at most {most:,}" if most else "none moved", top + HEADING + 6)


def _bars(scale: Scale, top: float, values: Sequence[float], most: float, shade: str) -> Markup:
    bars = [
        f"M{n(x + SLIVER)} {n(top + HEADING + _BARS)}v-{n(max(1.0, _BARS * value / most))}"
        for value, (_, x) in zip(values, scale.placed, strict=True)
        if value > 0
    ]
    return shape(f"upright {shade}", "".join(bars))


def _tips(scale: Scale, height: float) -> Iterator[Markup]:
    """What a pointer over a column shows."""
    for (column, x), after in zip(scale.placed, scale.edges[1:], strict=True):
        if column.ended:
            path = f"M{n(x)} 30H{n(after)}V{n(height)}H{n(x)}z"
            rebalances = words.count(len(column.ended), "rebalance")
            tip = f"{words.moment(min(column.ended), seconds=True)}: {rebalances}, {column.moved:,} moved"
            yield tag("path", tag("title", tip), d=path)


def bar_step(since: datetime, until: datetime) -> timedelta:
    """How long a bar stands for: the shortest of some round times with which there are at most 60 bars."""
    span = until - since
    return next((step for step in _STEPS if span <= _STRIP_BARS * step), span / _STRIP_BARS)


def strip(ended: Sequence[datetime], since: datetime, until: datetime) -> Markup:
    """How many rebalances of a group ended in each step of time; empty without any."""
    if not ended:
        return Markup()
    step = bar_step(since, until)
    total = max((until - since) / step, 1.0)
    found = Counter(int((one - since) / step) for one in ended)
    most = max(found.values())
    width = 240 / total
    thickness = max(width - 0.6, 1.2)
    bars = "".join(
        f"M{at * width:.1f} {_STRIP}v-{max(2.0, _STRIP * value / most):.1f}h{thickness:.1f}V{_STRIP}z"
        for at, value in sorted(found.items())
    )
    text = (
        f"{words.count(len(ended), 'rebalance')}, at most {most:,} within"
        f" {words.duration(step.total_seconds())}"
    )
    return tag(
        "svg",
        shape("floor", f"M0 {_STRIP}h240"),
        shape("spark", bars),
        class_="strip",
        viewBox=f"0 0 240 {_STRIP}",
        preserveAspectRatio="none",
        role="img",
        aria_label=text,
    )
