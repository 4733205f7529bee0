"""When a group rebalanced, in true time: a small bar chart, the same axis for all groups of a report."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from kafka_assignors.history._report import words
from kafka_assignors.history._report.svg import shape, tag

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

_BARS: Final = 60
_HEIGHT: Final = 24
_STEPS: Final = [
    timedelta(seconds=seconds)
    for seconds in (1, 10, 60, 300, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 7 * 86_400)
]


def bar_step(since: datetime, until: datetime) -> timedelta:
    """How long a bar stands for: the shortest of some round times with which there are at most 60 bars."""
    span = until - since
    return next((step for step in _STEPS if span <= _BARS * step), span / _BARS)


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
        f"M{at * width:.1f} {_HEIGHT}v-{max(2.0, _HEIGHT * value / most):.1f}h{thickness:.1f}V{_HEIGHT}z"
        for at, value in sorted(found.items())
    )
    text = (
        f"{words.count(len(ended), 'rebalance')}, at most {most:,} within"
        f" {words.duration(step.total_seconds())}"
    )
    return tag(
        "svg",
        shape("floor", f"M0 {_HEIGHT}h240"),
        shape("spark", bars),
        class_="strip",
        viewBox=f"0 0 240 {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=text,
    )
