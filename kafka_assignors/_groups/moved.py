"""What moved between two snapshots of a group: the one meaning of the word; see docs/glossary.md."""

from functools import partial
from typing import NamedTuple

from kafka_assignors._groups.snapshots import Partitions, Snapshot


class OwnerMove(NamedTuple):
    """A partition that has another owner than before, or would have; None for nobody.

    Of snapshots owners are identities, of what would move member ids.
    """

    topic: str
    partition: int
    source: str | None
    target: str | None


Owners = dict[tuple[str, int], str]
_new_move = partial(tuple.__new__, OwnerMove)  # in a third of the time: of all objects here most are moves


def find_owner_moves(before: Snapshot, after: Snapshot) -> tuple[OwnerMove, ...]:
    """The partitions whose owners differ, by topic and id; those that nobody had or has are among them.

    What one of its owners keeps has not moved, even if others had or have it. Else the last owners count.
    """
    return moves_of(*owners_that_differ(before, after))


def moves_of(had: Owners, has: Owners) -> tuple[OwnerMove, ...]:
    """The same of `owners_that_differ`."""
    return tuple(
        [
            _new_move((*one, source, target))
            for one in sorted(had.keys() | has.keys())
            if (source := had.get(one)) != (target := has.get(one))
        ]
    )


def count_moved(had: Owners, has: Owners) -> int:
    """How many partitions moved: they had an owner, and have another. The source may be gone."""
    return sum([has.get(one, owner) != owner for one, owner in had.items()])


def owners_that_differ(before: Snapshot, after: Snapshot) -> tuple[Owners, Owners]:
    """The owners before and after, at least of all partitions whose owners differ."""
    old, new = before.by_identity, after.by_identity
    if not (before.exclusive and after.exclusive):
        both = old.keys() & new.keys()
        kept = Partitions().union(*[old[one].assignment & new[one].assignment for one in both])
        former, latter = (
            {one: owner for one, owner in each.owners.items() if one not in kept} for each in (before, after)
        )
        return former, latter
    # Most members have what they had: comparing their sets is much less than comparing all owners (12 against
    # 90 us, 20 members and 200 partitions).
    had: Owners = {}
    has: Owners = {}
    for identity, member in old.items():
        mine = member.assignment
        its = new[identity].assignment if identity in new else Partitions()
        if mine is not its and mine != its:
            had.update(dict.fromkeys(mine - its, identity))
            has.update(dict.fromkeys(its - mine, identity))
    for identity in new.keys() - old.keys():
        has.update(dict.fromkeys(new[identity].assignment, identity))
    return had, has
