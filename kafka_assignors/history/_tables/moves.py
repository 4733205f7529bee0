"""The moves between two records of a group: the partitions whose owners differ."""

from __future__ import annotations

from itertools import chain, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_assignors._common.garbage import no_garbage_collection
from kafka_assignors._wire.codec import compiled
from kafka_assignors.history._tables.native import int32s, strings
from kafka_assignors.history._tables.owners import Owners, Place, as_bytes, decode_owners, list_of, settled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors.history._tables.owners import Told

_Move = tuple[str, int, str | None, str | None]
"""A topic, its partition, who had it and who has it."""


class MovesTable(NamedTuple):
    """Partitions that changed their owner, by pair of records, topic and partition.

    Attributes:
        pair: (R,) the number of the pair.
        topic: (R,) the topic.
        partition: (R,) its partition.
        source: (R,) who had it before; null if nobody had.
        target: (R,) who has it now; null if nobody does.
    """

    pair: Any
    topic: Any
    partition: Any
    source: Any
    target: Any


def find_moves(before: Sequence[Told], after: Sequence[Told], *, fast: bool = True) -> MovesTable:
    """The partitions whose owners differ, for each pair of records.

    What one of its owners keeps has not moved, even if others had or have it. Else the last owners count.

    Args:
        before: (K,) owners of one record each.
        after: (K,) owners of another one.
        fast: Whether the compiled part may do it, should it be there. The result is the same.
    """
    if fast and compiled() is not None:
        return _at_once([*map(as_bytes, before)], [*map(as_bytes, after)])
    read = dict[int, Owners]()

    def owners_of(told: Told) -> Owners:
        """What is `after` in one pair is `before` in the next."""
        if isinstance(told, Owners):
            return told
        found = read.get(id(told))
        if found is None:
            found = read[id(told)] = decode_owners(told)
        return found

    with no_garbage_collection():
        moves = [_moved(owners_of(old), owners_of(new)) for old, new in zip(before, after, strict=True)]
    rows = [*chain.from_iterable(moves)]
    topic, partition, source, target = ([row[cell] for row in rows] for cell in range(4))
    return MovesTable(
        pa.array(np.repeat(np.arange(len(moves), dtype=np.int32), [*map(len, moves)])),
        pa.array(topic, pa.string()),
        pa.array(partition, pa.int32()),
        pa.array(source, pa.string()),
        pa.array(target, pa.string()),
    )


def _at_once(before: list[bytes], after: list[bytes]) -> MovesTable:
    found = compiled().moves(before, after)

    def texts(column: str, dictionary: str) -> Any:
        return strings(found[column], found[dictionary]).cast(pa.string())

    return MovesTable(
        int32s(found["pair"]),
        texts("topic", "topics"),
        int32s(found["partition"]),
        texts("source", "members"),
        texts("target", "members"),
    )


def _moved(before: Owners, after: Owners) -> list[_Move]:
    """The partitions that moved, in order.

    Most members have what they had: these need to be looked at only if another has any of it as well.
    """
    old, new = before.given, after.given
    left = {member: listed for member, listed in old.items() if new.get(member) != listed}
    came = {member: listed for member, listed in new.items() if old.get(member) != listed}
    passed_on = _passed_on(left, came) if before.is_exclusive else None
    if passed_on is not None:
        after.is_exclusive = True
        return passed_on
    (had, _), (has, is_exclusive) = settled(left), settled(came)
    # Where nothing was given to two members, those that stayed have nothing of what others had.
    suspect = has.keys() - had.keys() if before.is_exclusive else has.keys() | had.keys()
    shared = [
        suspect & list_of(listed).different
        for member, listed in old.items()
        if suspect and member not in left
    ]
    if before.is_exclusive:
        after.is_exclusive = is_exclusive and not any(shared)
    kept = [
        list_of(left[member]).different & list_of(came[member]).different for member in left.keys() & came
    ]
    moved = (had.keys() | has.keys()).difference(*shared, *kept)
    return [(*one, had.get(one), has.get(one)) for one in sorted(moved)]


_BY_PLACE: Final = itemgetter(0, 1)


def _passed_on(left: Mapping[str, bytes], came: Mapping[str, bytes]) -> list[_Move] | None:
    """The partitions that moved, if nobody was given anything but what another had and has no more.

    Args:
        left: What members had that now have something else. Nothing of it was given to two members.
        came: What members have that had something else.
    """
    lost: dict[Place, str] = {}
    for member, listed in left.items():
        kept = list_of(came[member]).different if member in came else _NOTHING
        lost.update(zip(list_of(listed).different - kept, repeat(member)))
    gained: dict[Place, str] = {}
    count = 0
    for member, listed in came.items():
        had = list_of(left[member]).different if member in left else _NOTHING
        taken = list_of(listed).different - had
        count += len(taken)
        gained.update(zip(taken, repeat(member)))
    if len(gained) < count or not gained.keys() <= lost.keys():
        return None
    return sorted([(*one, member, gained.get(one)) for one, member in lost.items()], key=_BY_PLACE)


_NOTHING: Final[frozenset[Place]] = frozenset()
