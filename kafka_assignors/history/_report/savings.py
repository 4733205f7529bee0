"""What another assignor or setting would have avoided, in words; the rule is in `_groups.saving`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors._groups.saving import ACTUAL, AS_IT_WAS
from kafka_assignors.history._report import words

if TYPE_CHECKING:
    from kafka_assignors._groups.saving import Saving, WhatIf


def change(row: WhatIf, strategy: str | None) -> str:
    """A what-if row's change, in words; the assignor that the group uses now is not named again."""
    if row.assignor == ACTUAL:
        return "what happened"
    parts = []
    if row.scenario != AS_IT_WAS:
        parts.append("static membership" if row.scenario == "static members" else row.scenario)
    if row.assignor != strategy:
        parts.append(_assignor(row.assignor))
    return " and ".join(parts) or f"the {row.assignor} assignor, replayed"


def _assignor(name: str) -> str:
    family, _, strategy = name.partition(":")
    if family == "kip848" and strategy:
        return f"the new protocol (KIP-848) with its {strategy} assignor"
    if family == "kafka-python" and strategy:
        return f"kafka-python's own {strategy} assignor"
    if name == "kip54":
        return "the sticky assignor of Kafka's Java clients"
    return f"the {name} assignor"


def saved(saving: Saving) -> str:
    """What a change would have avoided, such as "33 rebalances and 9 moves of partitions"."""
    parts = []
    if saving.rebalances > 0:
        parts.append(words.count(saving.rebalances, "rebalance"))
    if saving.moved > 0:
        parts.append(words.count(saving.moved, "move of a partition", "moves of partitions"))
    return " and ".join(parts) or "nothing"


def condition(saving: Saving) -> str:
    """What a saving depends on that no record says."""
    return "" if saving.is_certain else ", if the consumers were restarted, not lost"


def explained(saving: Saving) -> str:
    """From which rebalances a change of membership saves, what it depends on, and its price."""
    if saving.is_certain:
        return "."
    most, avoided = 3, [words.moment(one, seconds=True) for one in saving.row.avoided]
    more = f" and {words.count(len(avoided) - most, 'more', 'more')}" if len(avoided) > most else ""
    which = f" ({', '.join(avoided[:most])}{more})" if avoided else ""
    return (
        f"{which}{condition(saving)}: their logs say which. Until a static member is back, nobody reads its"
        " partitions."
    )


def spared(saving: Saving) -> str:
    """As `saved`, with what would have been worse: "33 rebalances, but 2 moves more"."""
    worse = []
    if saving.rebalances < 0:
        worse.append(f"{words.count(-saving.rebalances, 'rebalance')} more")
    if saving.moved < 0:
        worse.append(f"{words.count(-saving.moved, 'move', 'moves')} more")
    return ", but ".join(part for part in (saved(saving), " and ".join(worse)) if part)
