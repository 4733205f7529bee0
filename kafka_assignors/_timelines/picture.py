"""A timeline as a picture: partitions down, time across, a colour for each member. Needs matplotlib."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import matplotlib as mpl
from kafka import TopicPartition
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import blended_transform_factory

from kafka_assignors._timelines.events import Committed, Event, name_of
from kafka_assignors._timelines.facts import TimelineFacts
from kafka_assignors._timelines.marks import SIGNS, colour_groups, looks_of
from kafka_assignors._timelines.ownership import Gap, Overlap, Ownership, Reading
from kafka_assignors._timelines.rebalances import SeenRebalance

COLOURS: Final = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#832db6", "#a96b59"),
    *("#e76300", "#b9ac70", "#92dadd", "#717581", "#94a4a2"),
)
"""Ten colours that people with any colour vision can distinguish (Petroff, arXiv:2107.02270), greys last."""

HATCHES: Final = ("", "////", "....", "\\\\\\\\", "xxxx")
"""Beyond ten members the colours come again under these."""

# All lengths are in inches, all font sizes in points.
_WIDTH: Final = 10.0  # of the part that shows time
_ROW: Final = 0.3
_ROWS_AT_MOST: Final = 12.0  # all rows together: many of them become thinner
_ROWS_AT_LEAST: Final = 1.2
_ROW_WITH_NAME: Final = 0.13  # thinner rows have no names of their own
_ROW_WITH_MEMBERS: Final = 0.2  # and in thinner ones than this the members' names would not fit
_TICK: Final = 0.22  # of a commit, as a part of its row
_LANE: Final = 0.17
_LANES: Final = 5
_MARGIN: Final = 0.15
_LEGEND_ROW: Final = 0.21
_LEGEND_WIDTH: Final = 2.2
_AXIS: Final = 0.5
_FONT: Final = 8.0
_SMALL: Final = 7.0
_DOTS: Final = 150
_LEGEND_NAME: Final = 24  # letters
_NAMED: Final = 3  # members in one label

_INK: Final = "#1a1a1a"
_HATCH: Final = (1.0, 1.0, 1.0, 0.55)
_BAND: Final = "#000000"
_BAND_ALPHA: Final = 0.13

_Style = dict[str, Any]
"""How something is drawn, as matplotlib's arguments."""


class _Label(NamedTuple):
    """Marks of one kind that are near each other, in a lane above the rows, 0 the lowest.

    `times` are those that get a line; of many only the first, for lines in a row hide what they cross.
    """

    time: float
    text: str
    times: tuple[float, ...]
    lane: int


class _Scale(NamedTuple):
    """Where things are: times in seconds from the first event, rows by number, lengths in inches."""

    begin: float
    end: float
    rows: Mapping[TopicPartition, int]

    @property
    def height(self) -> float:
        return min(max(_ROW * len(self.rows), _ROWS_AT_LEAST), _ROWS_AT_MOST)

    @property
    def row(self) -> float:
        return self.height / max(len(self.rows), 1)

    @property
    def seconds(self) -> float:
        """How long an inch is."""
        return (self.end - self.begin or 1.0) / _WIDTH

    def at(self, time: float) -> float:
        return time - self.begin


# Text stays text, in SVG and between two dollars, and the same timeline gives the same file.
@mpl.rc_context(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "timeline",
        "text.parse_math": False,
        "hatch.linewidth": 0.6,
        "font.size": _FONT,
    }
)
def draw(timeline: TimelineFacts, path: Path, *, reading: Reading, title: str) -> None:
    owned = timeline.ownership(reading)
    rows = {partition: row for row, partition in enumerate(sorted({one.partition for one in owned}))}
    scale = _Scale(begin=timeline.begin, end=timeline.end, rows=rows)
    labels = _placed(timeline.marks, scale)
    lanes = 1 + max((label.lane for label in labels), default=-1)
    groups = colour_groups(timeline.members, timeline.identity)
    widths = [_text_width("generation", _SMALL), *(_text_width(name, _FONT) for name in _row_names(scale))]
    left = _MARGIN + 0.1 + max(widths)
    head = _LANE * (lanes + 1) + _MARGIN + (0.3 if title else 0.0)
    width, height = left + _WIDTH + _LEGEND_WIDTH, _AXIS + scale.height + head
    figure = Figure(figsize=(width, height), dpi=_DOTS)
    axes = figure.add_axes((left / width, _AXIS / height, _WIDTH / width, scale.height / height))
    _prepare(axes, scale)
    styles = looks_of(groups, _styles())
    _draw_owned(axes, scale, owned, styles)
    commits = timeline.of(Committed)
    _draw_commits(axes, scale, commits)
    _draw_gaps(axes, scale, timeline.gaps(reading))
    _draw_overlaps(axes, scale, timeline.overlaps(reading), styles)
    _draw_rebalances(axes, scale, timeline.rebalances)
    _draw_labels(axes, scale, labels)
    _draw_legend(axes, groups, styles, room=scale.height + head - _MARGIN, commits=bool(commits))
    if title:
        figure.text(left / width, 1 - _MARGIN / height, title, va="top", fontsize=_FONT + 2)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _styles() -> Iterator[_Style]:
    # Beyond all colours under all hatches they come once more: better than no picture.
    for hatch, colour in itertools.cycle(itertools.product(HATCHES, COLOURS)):
        yield {"facecolor": colour, "hatch": hatch, "hatchcolor": _HATCH}


def _prepare(axes: Axes, scale: _Scale) -> None:
    axes.set_xlim(0, scale.at(scale.end) or 1.0)
    axes.set_ylim(max(len(scale.rows), 1) - 0.5, -0.5)
    axes.set_xlabel("seconds")
    axes.xaxis.set_major_locator(MaxNLocator(12, steps=[1, 2, 5, 10]))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    names = _row_names(scale)
    axes.set_yticks(list(names.values()), list(names))
    by_topic = itertools.groupby(scale.rows, key=lambda partition: partition.topic)
    for row in itertools.accumulate(len(list(group)) for _, group in by_topic):
        if row < len(scale.rows):
            axes.axhline(row - 0.5, color=_INK, linewidth=0.6, zorder=4)


def _row_names(scale: _Scale) -> dict[str, float]:
    """Name -> its row: of partitions where there is room, else of topics."""
    if scale.row >= _ROW_WITH_NAME:
        return {name_of(partition): row for partition, row in scale.rows.items()}
    found: dict[str, float] = {}
    free = 0.0  # the next row that no name is in the way of
    for topic, group in itertools.groupby(scale.rows.items(), key=lambda item: item[0].topic):
        rows = [row for _, row in group]
        middle = (rows[0] + rows[-1]) / 2
        if middle >= free:
            found[f"{topic} ({len(rows)})"] = middle
            free = middle + _ROW_WITH_NAME / scale.row
    return found


def _draw_owned(axes: Axes, scale: _Scale, owned: Iterable[Ownership], styles: Mapping[str, _Style]) -> None:
    thickness, named = _thickness(scale), scale.row >= _ROW_WITH_MEMBERS
    framed: _Style = {"facecolor": _INK, "alpha": 0.55, "pad": 1, "linewidth": 0}
    written: _Style = {"va": "center_baseline", "fontsize": _SMALL, "color": "white", "zorder": 5}
    boxes: dict[str, list[Rectangle]] = {}
    for one in owned:
        start, row, seconds = scale.at(one.start), scale.rows[one.partition], one.ended(scale.end) - one.start
        box = Rectangle((start, row - thickness / 2), seconds, thickness)
        boxes.setdefault(one.member, []).append(box)
        if named and seconds > (_text_width(one.member, _SMALL) + 0.15) * scale.seconds:
            axes.text(start + 0.05 * scale.seconds, row, one.member, bbox=framed, **written)
    lines: _Style = {"edgecolor": "white", "linewidth": 0.5 if scale.row >= _ROW_WITH_NAME else 0.2}
    for member, rectangles in boxes.items():
        axes.add_collection(PatchCollection(rectangles, zorder=1, **lines, **styles[member]))


def _draw_commits(axes: Axes, scale: _Scale, commits: Iterable[Committed]) -> None:
    """A tick at the foot of the partition's bar; in thin rows there is no room for any."""
    at = [
        (scale.at(one.time), scale.rows[partition])
        for one in commits
        for partition in one.positions
        if partition in scale.rows
    ]
    if at and scale.row >= _ROW_WITH_NAME:
        times = [time for time, _ in at]
        feet = [row + _thickness(scale) / 2 for _, row in at]
        axes.vlines(times, [foot - _TICK for foot in feet], feet, color=_INK, linewidth=0.7, zorder=4)


def _draw_gaps(axes: Axes, scale: _Scale, gaps: Iterable[Gap]) -> None:
    boxes = [
        Rectangle((scale.at(gap.start), scale.rows[gap.partition] - 0.12), gap.seconds, 0.24) for gap in gaps
    ]
    axes.add_collection(PatchCollection(boxes, facecolor=_INK, linewidth=0, zorder=2))


def _draw_overlaps(
    axes: Axes, scale: _Scale, overlaps: Iterable[Overlap], styles: Mapping[str, _Style]
) -> None:
    """Half a row for each owner, in a frame that is seen however short it lasts."""
    thickness = _thickness(scale)
    for overlap in overlaps:
        seconds = max(overlap.seconds, 0.02 * scale.seconds)
        left, top = scale.at(overlap.start), scale.rows[overlap.partition] - thickness / 2
        for half, member in enumerate(overlap.members):
            at = left, top + half * thickness / 2
            axes.add_patch(Rectangle(at, seconds, thickness / 2, linewidth=0, zorder=6, **styles[member]))
        line: _Style = {"fill": False, "edgecolor": _INK, "linewidth": 1.2, "zorder": 7}
        axes.add_patch(Rectangle((left, top), seconds, thickness, **line))


def _draw_rebalances(axes: Axes, scale: _Scale, rebalances: Iterable[SeenRebalance]) -> None:
    """Bands, and above them the generations that there is room for."""
    free = 0.0
    above = blended_transform_factory(axes.transData, axes.transAxes)
    foot = 1 + 0.05 / scale.height
    written: _Style = {"fontsize": _SMALL, "color": "#555555"}
    for one in rebalances:
        end, text = scale.at(one.end), str(one.generation)
        axes.axvspan(scale.at(one.start), end, color=_BAND, alpha=_BAND_ALPHA, linewidth=0, zorder=3)
        axes.axvline(end, color=_BAND, alpha=0.45, linewidth=0.6, zorder=3)
        half = _text_width(text, _SMALL) / 2 * scale.seconds
        if end - half >= free:
            axes.text(end, foot, text, transform=above, ha="center", **written)
            free = end + half + 0.05 * scale.seconds
    axes.text(-0.05 / _WIDTH, foot, "generation", transform=axes.transAxes, ha="right", **written)


def _draw_labels(axes: Axes, scale: _Scale, labels: Iterable[_Label]) -> None:
    above = blended_transform_factory(axes.transData, axes.transAxes)
    written: _Style = {"transform": above, "fontsize": _SMALL, "color": _INK}
    dashed: _Style = {"color": _INK, "linewidth": 0.6, "alpha": 0.6, "linestyle": (0, (2, 2)), "zorder": 8}
    for label in labels:
        height, low = 1 + _LANE * (label.lane + 1) / scale.height, 0.04 / scale.height
        axes.text(scale.at(label.time) + 0.04 * scale.seconds, height + low, label.text, **written)
        heights = [height + 3 * low, *[1 + low] * (len(label.times) - 1)]
        axes.vlines([*map(scale.at, label.times)], 0, heights, transform=above, clip_on=False, **dashed)


def _placed(marks: Sequence[Event], scale: _Scale) -> list[_Label]:
    """Marks as labels in lanes, no two in each other's way; the nearer ones together if need be."""
    near = 0.0
    while True:
        labels = _in_lanes(_gathered(marks, near * scale.seconds), scale)
        if near > _WIDTH or all(label.lane < _LANES for label in labels):
            return labels
        near = max(0.1, 1.5 * near)


def _gathered(marks: Iterable[Event], near: float) -> list[tuple[str, list[Event]]]:
    """Marks of one kind that begin not later than so many seconds after the first of them, by time."""
    found: list[tuple[str, list[Event]]] = []
    newest: dict[str, list[Event]] = {}
    for mark in marks:
        group = newest.get(mark.kind)
        if group and mark.time - group[0].time <= near:
            group.append(mark)
        else:
            newest[mark.kind] = [mark]
            found.append((mark.kind, newest[mark.kind]))
    return found


def _in_lanes(groups: Sequence[tuple[str, list[Event]]], scale: _Scale) -> list[_Label]:
    """Each above those that begin below its text, so that neither texts nor lines cross it."""
    labels: list[_Label] = []
    for kind, marks in reversed(groups):
        names = [mark.member for mark in marks]
        sign = SIGNS[kind]
        if len(names) == 1:
            text = f"{names[0]} {sign.word}"
        else:
            who = ", ".join(names) if len(names) <= _NAMED else str(len(names))
            text = f"{who} {sign.plural}"
        time = marks[0].time
        times = tuple(mark.time for mark in marks) if len(marks) <= _NAMED else (time,)
        end = time + (_text_width(text, _SMALL) + 0.1) * scale.seconds
        lane = 1 + max((label.lane for label in labels if label.time < end), default=-1)
        labels.append(_Label(time, text, times, lane))
    return labels


def _draw_legend(
    axes: Axes,
    groups: Mapping[str, Sequence[str]],
    styles: Mapping[str, _Style],
    room: float,
    *,
    commits: bool,
) -> None:
    boxes = [
        Rectangle((0, 0), 1, 1, facecolor=_INK, linewidth=0, label="no owner"),
        Rectangle((0, 0), 1, 1, facecolor="white", edgecolor=_INK, linewidth=1.2, label="two owners at once"),
        Rectangle((0, 0), 1, 1, facecolor=_BAND, alpha=2 * _BAND_ALPHA, linewidth=0, label="rebalance"),
    ]
    ticks = [Line2D([], [], color=_INK, marker="|", markersize=6, linestyle="none", label="commit")]
    signs: list[Rectangle | Line2D] = [*boxes, *(ticks if commits else [])]
    most = max(3, int(room / _LEGEND_ROW) - len(signs) - 1)
    names = list(groups)
    if len(names) > most:
        names = names[: most - 1]
    entries: list[Patch] = [
        Patch(linewidth=0, label=_shortened(", ".join(groups[name])), **styles[name]) for name in names
    ]
    if len(names) < len(groups):
        entries.append(Patch(alpha=0, label=f"… and {len(groups) - len(names)} more"))
    axes.legend(
        handles=[*entries, *signs],
        loc="lower left",
        bbox_to_anchor=(1 + 0.1 / _WIDTH, 0),
        borderaxespad=0,
        frameon=False,
        fontsize=_FONT,
        handlelength=1.6,
        labelspacing=0.5,
    )


def _shortened(name: str) -> str:
    return name if len(name) <= _LEGEND_NAME else name[: _LEGEND_NAME - 1] + "…"


def _thickness(scale: _Scale) -> float:
    """Of a bar, as a part of its row."""
    return 0.8 if scale.row >= _ROW_WITH_NAME else 0.94


@cache
def _text_width(text: str, size: float) -> float:
    return float(TextPath((0, 0), text, size=size).get_extents().width) / 72 if text.strip() else 0.0
