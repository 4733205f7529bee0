"""What all texts of groups are made of.

They fit a terminal of 80 columns, as far as names are not longer; tables take what a wider one has.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kafka_assignors._cli.output import count, filled, screen_width, table
from kafka_assignors._common.escaping import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kafka_assignors._groups.lag import GroupLag, PartitionLag
    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors.groups._live import NotedRebalance

LAGS_SHOWN: Final = 10
"""How many partitions are listed with their lags, the greatest first; all of them are in the JSON."""

_LEAST: Final = 12  # letters of a column that is cut


def wrapped(text: str, indent: int = 0) -> list[str]:
    """Text in lines; the second and later ones are indented by two more."""
    space = " " * indent
    return filled(text, space, f"{space}  ")


def generations(rebalance: Rebalance | NotedRebalance) -> str:
    """The generations of a rebalance; those of a hand-over are several."""
    first, last = rebalance.first_generation, rebalance.generation
    return f"generation {last}" if first == last else f"generations {first} to {last}"


def when(time_ms: int) -> str:
    """A time in milliseconds since 1970."""
    return datetime.fromtimestamp(time_ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def fitted(columns: Mapping[str, Sequence[str]], *, left: set[str], cut: Sequence[str] = ()) -> Iterator[str]:
    """A table of columns, cells by heading; those without cells are left out, those of `left` to the left.

    On a terminal, cells of the columns `cut` are shortened, the first ones first, until the table fits. Each
    keeps its share of the room that the others leave.
    """
    shown = {name: [escaped(cell) for cell in (name, *cells)] for name, cells in columns.items() if cells}
    widths = {name: max(map(len, cells)) for name, cells in shown.items()}
    able = [name for name in cut if name in shown] if sys.stdout.isatty() else []
    whole = screen_width() - 2 * (len(shown) - 1)
    share = (whole - sum(widths[name] for name in shown if name not in able)) // max(len(able), 1)
    for name in able:
        over = sum(widths.values()) - whole
        if over > 0:
            room = widths[name] = min(widths[name], max(_LEAST, share, widths[name] - over))
            shown[name] = [cell if len(cell) <= room else f"{cell[: room - 3]}..." for cell in shown[name]]
    yield from table(
        zip(*shown.values(), strict=True),
        left=[number for number, name in enumerate(shown) if name in left],
    )


def lag_lines(lag: GroupLag, names: Mapping[str, str]) -> Iterator[str]:
    """How far a group is behind: in all, and the partitions with the greatest lags and without commits."""
    if not lag.partitions:
        yield "lag: there is no partition that it reads or has read"
        return
    yield from wrapped(lag_words(lag))
    behind = sorted(
        (
            one
            for one in lag.partitions
            if one.lag or one.beyond or one.unknown or (one.committed is None and one.end)
        ),
        key=lambda one: (-(one.lag or 0), one.topic, one.partition),
    )
    shown = behind[:LAGS_SHOWN]
    yield from fitted(
        {
            "partition": [str(one) for one in shown],
            "owner": [names.get(one.owner or "", one.owner or "nobody") for one in shown],
            "committed": ["no commit" if one.committed is None else f"{one.committed:,}" for one in shown],
            "end": ["-" if one.end is None else f"{one.end:,}" for one in shown],
            "lag": ["-" if one.lag is None or one.beyond else f"{one.lag:,}" for one in shown],
            "lag s": seconds_cells(shown),
        },
        left={"partition", "owner"},
        cut=("owner", "partition"),
    )
    if len(behind) > LAGS_SHOWN:
        yield f"and {len(behind) - LAGS_SHOWN:,} more that lag: see --json"


def seconds_cells(lags: Sequence[GroupLag | PartitionLag | None]) -> list[str]:
    """For how long each lags, in a table; nothing if no time is known, as where nobody asked."""
    known = [None if one is None else one.seconds for one in lags]
    if all(seconds is None for seconds in known):
        return []
    return ["-" if seconds is None else f"{seconds:,.0f}" for seconds in known]


def lag_words(lag: GroupLag) -> str:
    """How far a group is behind, in a sentence."""
    words = f"lag: {count(lag.total, 'record')} in {count(len(lag.partitions), 'partition')}"
    if lag.total and lag.seconds is not None:
        words += f", the oldest written {lag.seconds:,.0f} s ago"
    if uncommitted := len(lag.uncommitted):
        words += f", {uncommitted:,} of which {'has' if uncommitted == 1 else 'have'} records and no commit"
    if lost := lag.counts()["lost"]:
        words += f"; {count(lost, 'record')} deleted before being read"
    if unknown := len(lag.unknown):
        words += f"; the end of {count(unknown, 'partition')} is not known"
    return words


def lag_cell(lag: GroupLag | None) -> str:
    """How far a group or a member is behind, in a table; None of one that has nothing."""
    if lag is None:
        return "-"
    if not lag.uncommitted and not lag.unknown:
        return f"{lag.total:,}"
    if lag.total:
        return f">={lag.total:,}"
    return "?" if lag.unknown else "no commit"
