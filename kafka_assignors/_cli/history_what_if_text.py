"""How what-if looks on a terminal."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from kafka_assignors._cli.output import table
from kafka_assignors.history._schemas import ACTUAL
from kafka_assignors.history._what_if.saved import savings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

GROUPS_SHOWN: Final = 20
"""Of how many groups all rows are shown, those that could have saved the most; all are in the JSON."""

_HEAD: Final = ("", "scenario", "rebalances", "moved", "imbalance", "worst", "unowned s", "failed")


def what_if_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """All that there is to say of rows in the schema `WHAT_IF`."""
    listed = sorted(rows, key=lambda row: row["group"])
    if not listed:
        yield "there are no groups of consumers to replay"
        return
    by_group = {group: list(each) for group, each in groupby(listed, key=lambda row: row["group"])}
    saved = savings(listed)
    texts = {saving.group: saving.text for saving in saved}
    shown = [*texts, *(group for group in by_group if group not in texts)][:GROUPS_SHOWN]
    for group in shown:
        yield texts.get(group, group)
        yield from table(_table(by_group[group]), left=(0, 1))
        yield ""
    if len(by_group) > len(shown):
        yield f"and {len(by_group) - len(shown)} more groups"
    yield (
        "in all, by what is the best for each group: "
        f"{sum(saving.moves for saving in saved):,} fewer moves and "
        f"{sum(saving.unowned_seconds for saving in saved):,.1f} fewer partition-seconds without an owner"
    )


def _table(rows: Collection[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """What happened first, then by cost."""
    yield _HEAD
    for row in sorted(
        rows, key=lambda row: (row["assignor"] != ACTUAL, row["unowned_seconds"], row["moved"])
    ):
        yield (
            row["assignor"],
            row["scenario"],
            f"{row['rebalances']:,}",
            f"{row['moved']:,}",
            f"{row['imbalance']:.2f}",
            f"{row['worst_imbalance']:,}",
            f"{row['unowned_seconds']:,.1f}",
            f"{row['failed']:,}",
        )
