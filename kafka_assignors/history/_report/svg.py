"""How shapes and texts are written in a picture's SVG. Lengths are in units of the viewBox."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, TypeVar

from markupsafe import Markup, escape

from kafka_assignors._common.escaping import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Value = TypeVar("Value")

ROW: Final = 18
HEADING: Final = 22
SLIVER: Final = 4

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
        f' {one.rstrip("_").replace("_", "-")}="{_text(value) if isinstance(value, str) else round(value)}"'
        for one, value in attributes.items()
    ]
    end = f">{''.join(map(_text, inside))}</{name}>" if inside else "/>"
    return Markup(f"<{name}{''.join(written)}{end}")  # noqa: S704 - all of it is escaped


def _text(text: str) -> Markup:
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
