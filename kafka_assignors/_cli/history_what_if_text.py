"""How what-if looks on a terminal."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from kafka_assignors._cli.output import table
from kafka_assignors._groups.saving import ACTUAL, best_saving

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from kafka_assignors._groups.saving import Saving, WhatIf

GROUPS_SHOWN: Final = 20
"""Of how many groups all rows are shown, those that could have saved the most; all are in the JSON."""

_HEAD: Final = ("", "scenario", "rebalances", "moved", "imbalance", "worst", "unowned s", "failed")


def what_if_lines(rows: Iterable[WhatIf]) -> Iterator[str]:
    """All that there is to say of replays."""
    listed = sorted(rows, key=lambda row: row.group)
    if not listed:
        yield "there are no groups of consumers to replay"
        return
    by_group = {group: list(each) for group, each in groupby(listed, key=lambda row: row.group)}
    saved = {group: best_saving(each) for group, each in by_group.items()}
    found = [saving for saving in saved.values() if saving is not None]
    shown = sorted(by_group, key=lambda group: _most_saved(group, saved[group]))[:GROUPS_SHOWN]
    for group in shown:
        happened = any(row.assignor == ACTUAL for row in by_group[group])
        yield f"{group}: {_text(saved[group])}" if happened else group
        yield from table(_table(by_group[group]), left=(0, 1))
        yield ""
    if len(by_group) > len(shown):
        yield f"and {len(by_group) - len(shown)} more groups"
    yield (
        "in all, by what is recommended for each group: "
        f"{sum(saving.moved for saving in found):,} fewer moves and "
        f"{sum(saving.unowned_seconds for saving in found):,.1f} fewer partition-seconds without an owner"
    )


def _most_saved(group: str, saving: Saving | None) -> tuple[object, ...]:
    """Sorts groups: those that could have saved the most first."""
    return (True, group) if saving is None else (False, -saving.unowned_seconds, -saving.moved, group)


def _text(saving: Saving | None) -> str:
    """What a group could have saved, in a sentence."""
    if saving is None:
        return "nothing that was tried would have helped much"
    change, actual = saving.row, saving.actual
    told = change.assignor if change.scenario == actual.scenario else f"{change.assignor} ({change.scenario})"
    saved = []
    if saving.moved > 0:
        saved.append(f"{saving.moved:,} of {actual.moved:,} moves")
    if saving.unowned_seconds > 0:
        saved.append(
            f"{saving.unowned_seconds:,.1f} of {actual.unowned_seconds:,.1f} partition-seconds"
            " without an owner"
        )
    if not saved:
        saved.append(f"{saving.rebalances:,} of {actual.rebalances:,} rebalances")
    told += f" would have saved {' and '.join(saved)}"
    return told if saving.moved >= 0 else f"{told}, for {-saving.moved:,} more moves"


def _table(rows: Collection[WhatIf]) -> Iterator[tuple[str, ...]]:
    """What happened first, then by cost."""
    yield _HEAD
    for row in sorted(rows, key=lambda row: (row.assignor != ACTUAL, row.unowned_seconds, row.moved)):
        yield (
            row.assignor,
            row.scenario,
            f"{row.rebalances:,}",
            f"{row.moved:,}",
            f"{row.imbalance:.2f}",
            f"{row.worst_imbalance:,}",
            f"{row.unowned_seconds:,.1f}",
            f"{row.failed:,}",
        )
