"""A timeline as text: one row for each partition, one letter for each member."""

import itertools
import math
import string
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kafka import TopicPartition

from kafka_assignors._timelines.events import Event, name_of
from kafka_assignors._timelines.facts import TimelineFacts
from kafka_assignors._timelines.marks import SIGNS, colour_groups, looks_of
from kafka_assignors._timelines.ownership import Overlap, Ownership, Reading, by_partition

LETTERS: Final = string.ascii_uppercase + string.ascii_lowercase + string.digits
"""Members have these in the order of joining; those beyond share `OTHERS`."""

OTHERS: Final = "*"
NOBODY: Final = "."
TWICE: Final = "#"
SEVERAL: Final = "&"  # different marks in one column

_FEWEST_COLUMNS: Final = 20
_TICK_COLUMNS: Final = 10


def chart(
    timeline: TimelineFacts,
    *,
    width: int,
    reading: Reading,
    partitions: Collection[TopicPartition] | None,
    since: float | None,
    until: float | None,
) -> str:
    begin = timeline.begin if since is None else since
    end = max(begin, timeline.end if until is None else until)
    owned = by_partition(timeline.ownership(reading))
    rows = sorted(owned if partitions is None else partitions)
    if not rows:
        return "nobody had a partition"
    groups = colour_groups(timeline.members, timeline.identity)
    letters = looks_of(groups, itertools.chain(LETTERS, itertools.repeat(OTHERS)))
    label = max(len("generation"), *(len(name_of(one)) for one in rows))
    columns = _Columns(begin, end, max(_FEWEST_COLUMNS, width - label - 1))
    overlaps: dict[TopicPartition, list[Overlap]] = {}
    for overlap in timeline.overlaps(reading):
        overlaps.setdefault(overlap.partition, []).append(overlap)
    shown = [mark for mark in timeline.marks if columns.shows(mark.time)]
    lines = [
        ("seconds", columns.axis(timeline.begin)),
        (
            "generation",
            columns.labels([(one.end, str(one.generation)) for one in timeline.rebalances]),
        ),
        *([("members", columns.signs(shown))] if shown else []),
        *((name_of(one), columns.row(owned.get(one, ()), overlaps.get(one, ()), letters)) for one in rows),
    ]
    present = {
        timeline.identity[one.member]
        for row in rows
        for one in owned.get(row, ())
        if one.start <= end and (one.end is None or one.end >= begin)
    }
    key = _key({name: names for name, names in groups.items() if name in present}, letters, shown, width)
    return "\n".join([*(f"{name:<{label}} {text}".rstrip() for name, text in lines), *key])


class _Columns:
    """Columns of text, each for an equal part of the time."""

    def __init__(self, begin: float, end: float, count: int) -> None:
        self.begin = begin
        self.end = end
        self.count = count
        self.seconds = (end - begin) / count or 1.0

    def at(self, time: float) -> int:
        """The column of a moment; the last one is that of the end too."""
        return min(int((time - self.begin) / self.seconds), self.count - 1)

    def between(self, start: float, end: float) -> range:
        """The columns of a time that lasts; none if it does not."""
        if start >= end:
            return range(0)
        return range(self.at(start), min(math.ceil((end - self.begin) / self.seconds), self.count))

    def shows(self, time: float) -> bool:
        return self.begin <= time <= self.end

    def axis(self, zero: float) -> str:
        """Round times, counted from `zero`."""
        step = _round_step(self.count * self.seconds, self.count // _TICK_COLUMNS)
        first = -int((zero - self.begin) // step)
        ticks = itertools.takewhile(
            lambda time: self.shows(zero + time), (number * step for number in itertools.count(first))
        )
        labels = [(zero + time, f"|{time:g}") for time in ticks]
        return self.labels([(time, text) for time, text in labels if self.at(time) + len(text) <= self.count])

    def labels(self, labels: Sequence[tuple[float, str]]) -> str:
        """Texts that begin at their moments, or before if the line ends; one without room is left out."""
        line = ""
        for time, text in labels:
            column = min(self.at(time), self.count - len(text))
            if self.shows(time) and (column > len(line) or not line):
                line = line.ljust(column) + text
        return line

    def signs(self, marks: Sequence[Event]) -> str:
        line = [" "] * self.count
        for mark in marks:
            column, sign = self.at(mark.time), SIGNS[mark.kind].letter
            line[column] = sign if line[column] in {" ", sign} else SEVERAL
        return "".join(line)

    def row(self, owned: Sequence[Ownership], overlaps: Sequence[Overlap], letters: Mapping[str, str]) -> str:
        """Who has a partition for the longest part of each column; two at once are always shown."""
        shares: list[dict[str, float]] = [{NOBODY: self.seconds} for _ in range(self.count)]
        for one in owned:
            start = max(one.start, self.begin)
            end = min(self.end if one.end is None else one.end, self.end)
            letter = letters[one.member]
            for column in self.between(start, end):
                left = self.begin + column * self.seconds
                share = min(end, left + self.seconds) - max(start, left)
                shares[column][letter] = shares[column].get(letter, 0.0) + share
                shares[column][NOBODY] -= share
        line = [max(share, key=share.__getitem__) for share in shares]
        for overlap in overlaps:
            start = max(overlap.start, self.begin)
            for column in self.between(start, min(overlap.start + overlap.seconds, self.end)):
                line[column] = TWICE
        return "".join(line)


def _round_step(span: float, most: int) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is in the span at most so many times."""
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(factor * power for factor in (1, 2, 5, 10, 20) if span / (factor * power) <= most)


def _key(
    groups: Mapping[str, list[str]], letters: Mapping[str, str], marks: Sequence[Event], width: int
) -> list[str]:
    """What the letters and signs in the rows mean, in lines of the width."""
    words = [
        f"{letters[name]} {', '.join(names)}" for name, names in groups.items() if letters[name] != OTHERS
    ]
    others = len(groups) - len(words)
    words += [f"{OTHERS} {others} more members"] if others else []
    words += [f"{NOBODY} nobody", f"{TWICE} two owners at once"]
    seen = {mark.kind for mark in marks}
    words += [f"{sign.letter} {sign.word}" for kind, sign in SIGNS.items() if kind in seen]
    words += [f"{SEVERAL} several of these"] if len(seen) > 1 else []
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 3 + len(word) > width:
            lines.append("")
        lines[-1] += f"   {word}" if lines[-1] else word
    return lines
