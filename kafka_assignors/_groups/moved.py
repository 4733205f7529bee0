"""What moved between two snapshots of a group: the one meaning of the word; see docs/glossary.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_assignors._groups.snapshots import Snapshot


class OwnerMove(NamedTuple):
    """A partition whose owner differs from before, by identity; None for nobody."""

    topic: str
    partition: int
    source: str | None
    target: str | None


def find_owner_moves(before: Snapshot, after: Snapshot) -> tuple[OwnerMove, ...]:
    """The partitions whose owners differ, by topic and id; those that nobody had or has are among them."""
    return tuple(
        OwnerMove(*one, source, target)
        for one in sorted(_suspects(before, after))
        if (source := before.owners.get(one)) != (target := after.owners.get(one))
    )


def count_moved(moves: Iterable[OwnerMove]) -> int:
    """How many partitions moved: they had an owner, and have another. The source may be gone."""
    return sum(None not in (move.source, move.target) for move in moves)


def _suspects(before: Snapshot, after: Snapshot) -> set[tuple[str, int]]:
    """A set that includes all partitions whose owners differ."""
    if not (before.exclusive and after.exclusive):
        return before.owners.keys() | after.owners.keys()
    # Most members have what they had: comparing their sets is much less than comparing all owners (12 against
    # 90 us, 20 members and 200 partitions).
    old, new = before.by_identity, after.by_identity
    found: set[tuple[str, int]] = set()
    for identity, member in old.items():
        other = new.get(identity)
        if other is None:
            found |= member.assignment
        elif other.assignment is not member.assignment and other.assignment != member.assignment:
            found |= member.assignment ^ other.assignment
    for identity in new.keys() - old.keys():
        found |= new[identity].assignment
    return found
