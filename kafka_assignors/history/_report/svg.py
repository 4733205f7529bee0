"""How a picture is laid out, and its shapes and texts in SVG; lengths are in units of the viewBox."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from markupsafe import Markup, escape

from kafka_assignors._common.escaping import escaped
from kafka_assignors.history import _limits as limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
    def of(cls, columns: Sequence[Column]) -> Scale:
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
    def of(cls, columns: Sequence[Column]) -> Colouring:
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
