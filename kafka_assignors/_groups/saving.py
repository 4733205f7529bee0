"""What another assignor or setting would have saved a group, and which one to recommend: the one rule.

`history what-if` and `history report` say the same, in their own words.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

ACTUAL: Final = "actual"
"""The assignor of what happened."""

AS_IT_WAS: Final = "as it was"
"""The scenario of what happened."""

WORTH_MOVES: Final = 10
"""So many moves less are worth a recommendation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What a replay of a group came to; docs/history_tables.md says under `what_if` what the fields are."""

    group: str
    assignor: str
    scenario: str
    rebalances: int
    moved: int
    imbalance: float
    worst_imbalance: int
    failed: int
    since: datetime | None = None
    avoided: tuple[datetime, ...] = ()
    hottest: float | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What a change would have avoided: what happened (`actual`) less the what-if `row` with the change.

    Numbers are negative if there had been more. `moved` counts moves of partitions.
    """

    row: WhatIf
    actual: WhatIf

    @property
    def rebalances(self) -> int:
        return self.actual.rebalances - self.row.rebalances

    @property
    def moved(self) -> int:
        return self.actual.moved - self.row.moved

    @property
    def is_certain(self) -> bool:
        """Whether it follows from records: of a member that is gone none says whether it was restarted."""
        return self.row.scenario == AS_IT_WAS


def savings(rows: Iterable[WhatIf]) -> list[Saving]:
    """What each change of one group would have avoided, the best first; nothing without what happened.

    Best is what avoids most rebalances, then most moves. A change with which partitions would have been left
    out is never better than one without.
    """
    rows = list(rows)
    actual = next((row for row in rows if row.assignor == ACTUAL), None)
    if actual is None:
        return []
    return sorted(
        (Saving(row=row, actual=actual) for row in rows if row is not actual and row.problem is None),
        key=lambda one: (
            one.row.failed > 0,
            -one.rebalances,
            -one.moved,
            one.row.scenario != AS_IT_WAS,
            one.row.assignor,
        ),
    )


def best_saving(rows: Iterable[WhatIf]) -> Saving | None:
    """The change to recommend; None if none would have avoided much."""
    best = next(iter(savings(rows)), None)
    if best is None or best.row.failed:
        return None
    return best if best.rebalances > 0 or best.moved >= WORTH_MOVES else None
