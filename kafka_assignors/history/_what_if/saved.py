"""What another assignor, or static members, would have saved a group, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka_assignors.history._schemas import ACTUAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_COST = ("unowned_seconds", "moved", "rebalances")


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What happened to a group, beside the best that could have.

    Attributes:
        group: The group.
        actual: Its row of what happened, in the schema `WHAT_IF`.
        best: The row with the fewest partition-seconds without an owner; of such with the fewest moves, then
            rebalances. None if no replay without failures was better than what happened.
    """

    group: str
    actual: Mapping[str, Any]
    best: Mapping[str, Any] | None

    @property
    def moves(self) -> int:
        """How many moves less there would have been; negative if more."""
        return 0 if self.best is None else self.actual["moved"] - self.best["moved"]

    @property
    def unowned_seconds(self) -> float:
        """How many partition-seconds without an owner less."""
        return 0.0 if self.best is None else self.actual["unowned_seconds"] - self.best["unowned_seconds"]

    @property
    def text(self) -> str:
        """The saving in a sentence."""
        if self.best is None:
            return f"{self.group}: nothing tried would have been better than what happened"
        told = f"{self.group}: {self.best['assignor']}"
        if self.best["scenario"] != self.actual["scenario"]:
            told += f" ({self.best['scenario']})"
        saved = []
        if self.moves > 0:
            saved.append(f"{self.moves:,} of {self.actual['moved']:,} moves")
        if self.unowned_seconds > 0:
            saved.append(
                f"{self.unowned_seconds:,.1f} of {self.actual['unowned_seconds']:,.1f} partition-seconds"
                " without an owner"
            )
        rebalances = self.actual["rebalances"] - self.best["rebalances"]
        if not saved:
            saved.append(f"{rebalances:,} of {self.actual['rebalances']:,} rebalances")
        told += f" would have saved {' and '.join(saved)}"
        return told if self.moves >= 0 else f"{told}, for {-self.moves:,} more moves"


def savings(rows: Iterable[Mapping[str, Any]]) -> list[Saving]:
    """What each group could have saved, those that could have saved the most first.

    Args:
        rows: Rows in the schema `WHAT_IF`. Groups of which what happened is not among them are left out.
    """
    actual: dict[str, Mapping[str, Any]] = {}
    best: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        group = row["group"]
        if row["assignor"] == ACTUAL:
            actual[group] = row
        elif not row["failed"] and (group not in best or _cost(row) < _cost(best[group])):
            best[group] = row
    found = [
        Saving(
            group=group,
            actual=row,
            best=best[group] if group in best and _cost(best[group]) < _cost(row) else None,
        )
        for group, row in actual.items()
    ]
    return sorted(found, key=lambda saving: (-saving.unowned_seconds, -saving.moves, saving.group))


def _cost(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (*(row[name] for name in _COST), row["assignor"], row["scenario"])
