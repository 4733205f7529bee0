"""A placement as a picture: brokers by rack, the darker the more they have. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import matplotlib as mpl
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kafka_assignors.placement._placement import PlacementError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kafka_assignors.placement._quality import BrokerLoad, Quality

# Lengths in inches, font sizes in points.
_CELL: Final = 0.62
_HEIGHT: Final = 0.46
_PER_ROW: Final = 16  # brokers of a rack in one row
_MARGIN: Final = 0.2
_HEAD: Final = 0.62
_BETWEEN: Final = 0.35
_LETTER: Final = 0.075
_NAME: Final = 24  # letters of a rack's name
_FONT: Final = 8.0
_DOTS: Final = 150
_DARK: Final = 0.6  # of the scale: from here on, letters are white

_INK: Final = "#1a1a1a"
_PALE: Final = "#5c6370"
_DEAD: Final = "#bd1f01"


def draw(quality: Quality, path: Path | str, *, title: str = "") -> Path:
    """Draw the brokers of a cluster, rack by rack, coloured by their replicas and by what they lead.

    Args:
        quality: What to show.
        path: Where to write it; its ending says how: .png, .svg, .pdf.
        title: A line above.

    Returns:
        The path.

    Raises:
        PlacementError: There are no brokers, or no picture has such an ending.
    """
    path = Path(path)
    if not quality.brokers:
        raise PlacementError("there are no brokers to draw")
    rows = _rows(quality)
    names = max(len(_short(name)) for name, _ in rows)
    left = _MARGIN + max(names * _LETTER, 0.3)
    across = _CELL * max(len(row) for _, row in rows)
    panel = _HEIGHT * len(rows)
    width = max(left + across + _MARGIN, 4.2)
    head = _HEAD if title else _HEAD - 0.25
    height = head + 2 * panel + _BETWEEN + _MARGIN
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "placement", "font.size": _FONT}):
        figure = Figure(figsize=(width, height), dpi=_DOTS)
        if title:
            figure.text(_MARGIN / width, 1 - 0.2 / height, title, fontsize=10, color=_INK, va="center")
        for place, what in enumerate(("replicas", "leaders")):
            bottom = _MARGIN + (1 - place) * (panel + _BETWEEN)
            axes = figure.add_axes(
                (left / width, bottom / height, across / width, panel / height),
            )
            _draw_panel(axes, rows, what)
        if path.suffix.removeprefix(".") not in figure.canvas.get_supported_filetypes():
            raise PlacementError(f"{path.name} is no name for a picture: say .png, .svg or .pdf")
        # The same placement gives the same file.
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return path


def _rows(quality: Quality) -> list[tuple[str, list[BrokerLoad]]]:
    """Racks and their brokers; a large rack has several rows, of which the first bears its name."""
    racks: dict[str, list[BrokerLoad]] = {}
    for load in quality.brokers:
        name = "not up" if not load.known else load.rack if load.rack is not None else "no rack"
        racks.setdefault(name, []).append(load)
    return [
        (name if begin == 0 else "", loads[begin : begin + _PER_ROW])
        for name, loads in sorted(racks.items())
        for begin in range(0, len(loads), _PER_ROW)
    ]


def _draw_panel(axes: Axes, rows: list[tuple[str, list[BrokerLoad]]], what: str) -> None:
    loads = [getattr(load, what) for _, row in rows for load in row]
    scale = Normalize(0, max(*loads, 1))
    colours = mpl.colormaps["Blues"]
    axes.set_xlim(0, max(len(row) for _, row in rows))
    axes.set_ylim(len(rows), 0)
    axes.axis("off")
    axes.text(0, -0.12, f"{what}: {min(loads)} to {max(loads)} on a broker", color=_INK, va="bottom")
    for y, (name, row) in enumerate(rows):
        axes.text(-0.12, y + 0.5, _short(name), color=_INK, ha="right", va="center")
        for x, load in enumerate(row):
            number = getattr(load, what)
            ink = "white" if scale(number) > _DARK else _INK
            axes.add_patch(
                Rectangle(
                    (x + 0.03, y + 0.04),
                    0.94,
                    0.92,
                    facecolor=colours(scale(number) * 0.9),
                    edgecolor=_PALE if load.known else _DEAD,
                    linewidth=0.6 if load.known else 1.5,
                )
            )
            axes.text(x + 0.5, y + 0.38, str(number), color=ink, ha="center", va="center", fontsize=9)
            axes.text(
                x + 0.5, y + 0.78, f"broker {load.broker}", color=ink, ha="center", va="center", fontsize=5.5
            )


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
