"""Where columns are in a picture, and which consumers have a row, a colour and a letter in it."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_assignors.history import _limits as limits
from kafka_assignors.history._report.svg import Value, runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kafka_assignors.history._report.drawing import Column

LEFT: Final = 216  # of the part that shows time
RIGHT: Final = 992
COLOURS: Final = 10
_DARK: Final = frozenset({2, 3, 8})  # colours on which white is read better than black
LETTERS: Final = "ABCDEFGHIJKLMNOPQRST"


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
        return f"c{place % COLOURS}{' h' if place >= COLOURS else ''}"

    def ink(self, name: str) -> str:
        """The class of what is written on its colour; on hatches it has a halo."""
        if name not in self.names:
            return "dark"
        place = self.names.index(name)
        return "halo" if place >= COLOURS else "light" if place in _DARK else "dark"

    def letter(self, name: str) -> str:
        """The letter in its boxes; empty without a row."""
        return LETTERS[self.names.index(name)] if name in self.names else ""
