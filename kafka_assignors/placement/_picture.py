"""A placement as a picture: brokers by rack, the darker the more they have. Needs matplotlib."""

from io import BytesIO
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kafka_assignors._common.escaping import escaped
from kafka_assignors._common.files import write_whole
from kafka_assignors.placement._placement import PlacementError
from kafka_assignors.placement._quality import BrokerLoad, Quality

_CELL: Final = (0.62, 0.46)  # inches
_PER_ROW: Final = 16  # brokers of a rack in one row
_NAME: Final = 24  # letters of a rack's name
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
        OSError: It cannot be written.
    """
    path = Path(path)
    if not quality.brokers:
        raise PlacementError("there are no brokers to draw")
    rows = _rows(quality)
    width = 2 + _CELL[0] * max(len(row) for _, row in rows)
    height = 1.2 + 2 * _CELL[1] * len(rows)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "placement", "font.size": 8}):
        figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
        figure.suptitle(escaped(title), fontsize=10, color=_INK, parse_math=False)
        for axes, what in zip(figure.subplots(2, 1), ("replicas", "leaders"), strict=True):
            _draw_panel(axes, rows, what)
        if path.suffix.removeprefix(".") not in figure.canvas.get_supported_filetypes():
            raise PlacementError(f"{path.name} is no name for a picture: say .png, .svg or .pdf")
        # The same placement gives the same file.
        picture = BytesIO()
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(picture, format=path.suffix.removeprefix("."), metadata=metadata)
    write_whole(path, picture.getvalue())
    return path


def _rows(quality: Quality) -> list[tuple[str, list[BrokerLoad]]]:
    """Racks and their brokers; a large rack has several rows, of which the first bears its name."""
    racks: dict[str, list[BrokerLoad]] = {}
    for load in quality.brokers:
        name = "not up" if not load.known else escaped(load.rack) if load.rack is not None else "no rack"
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
    axes.set(xlim=(0, max(len(row) for _, row in rows)), ylim=(len(rows), 0), frame_on=False, xticks=[])
    names = [name if len(name) <= _NAME else f"{name[: _NAME - 1]}…" for name, _ in rows]
    axes.set_yticks([y + 0.5 for y in range(len(rows))], names, parse_math=False)
    axes.tick_params(length=0, labelcolor=_INK)
    axes.set_title(f"{what}: {min(loads)} to {max(loads)} on a broker", loc="left", fontsize=8, color=_INK)
    for y, (_, row) in enumerate(rows):
        for x, load in enumerate(row):
            number = getattr(load, what)
            edge, line = (_PALE, 0.6) if load.known else (_DEAD, 1.5)
            face = colours(scale(number) * 0.9)
            cell = Rectangle((x + 0.03, y + 0.04), 0.94, 0.92, facecolor=face, edgecolor=edge, linewidth=line)
            axes.add_patch(cell)
            ink: dict[str, Any] = {
                "color": "white" if scale(number) > _DARK else _INK,
                "ha": "center",
                "va": "center",
            }
            axes.text(x + 0.5, y + 0.38, str(number), fontsize=9, **ink)
            axes.text(x + 0.5, y + 0.78, f"broker {load.broker}", fontsize=5.5, **ink)
