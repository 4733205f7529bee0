"""Why groups rebalance: what was a restart, and which reason is seen most."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from kafka_assignors._groups.advice import ReasonWords

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_assignors._groups.rebalances import Rebalance

_GONE: Final = frozenset({"member gone", "member left", "member lost"})
_RESTARTED: Final = frozenset({"member restarted", "static member came back"})

_HOST: Final = re.compile(r"/[0-9a-fA-F.:]+(%\w+)?\Z")

RESTART: Final = timedelta(minutes=10)
"""A consumer of the same name that joins within this time after one was gone has been restarted."""


RESTARTED: Final = ReasonWords(
    "A consumer restarted",
    "A consumer was gone, and one with the same client.id (or group.instance.id) joined within 10 minutes."
    " Such rebalances count here and once more below.",
    "With static membership a restart that takes no longer than session.timeout.ms is no rebalance.",
)
"""What `restarts` counts."""


def restarts(rebalances: Iterable[Rebalance]) -> int:
    """How many rebalances are the doing of a consumer that restarted.

    Either a reason says so, or a consumer was gone and joined again within `RESTART`. Consumers are the same
    here if their client ids are (or instance ids): what is before "/" and an address in a reason's `member`.
    A consumer that comes back on another host is one that was restarted.
    """
    ordered = sorted(rebalances, key=lambda one: one.ended)
    waiting: dict[str, list[int]] = {}
    found: set[int] = set()
    for position, rebalance in enumerate(ordered):
        # Who was gone in a rebalance can be the one that joined in the same.
        for reason in rebalance.reasons:
            if reason.kind in _GONE:
                waiting.setdefault(_client(reason.member), []).append(position)
            elif reason.kind in _RESTARTED:
                found.add(position)
        for reason in rebalance.reasons:
            left = waiting.get(_client(reason.member), [])
            while left and reason.kind == "member joined":
                before = left.pop(0)
                if rebalance.ended - ordered[before].ended <= RESTART:
                    found |= {before, position}
                    break
    return len(found)


def _client(member: str) -> str:
    return _HOST.sub("", member)


def main_reason(reasons: Mapping[str, int]) -> str | None:
    """The kind that was seen most often."""
    return min(reasons, key=lambda kind: (-reasons[kind], kind), default=None)
