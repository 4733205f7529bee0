"""The best possible: the best balance that subscriptions allow, and with it the fewest moves.

One rule for all who ask (docs/glossary.md): the plan of the library's exact planner. `find_best` gives
its two numbers for a rebalance. Racks, weights and priorities do not count unless they are given.
"""

from collections.abc import Sequence, Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kafka_assignors._common.words import by_topic
from kafka_assignors._groups.snapshots import Snapshot
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors._model.group import NOBODY, Group, Member
from kafka_assignors.planners import plan_exact

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """What was possible: the fewest moves that reach the best balance, and that balance.

    Either is None if it is unknown. `imbalance` is the largest load less the smallest.
    """

    partitions: int
    moved: int | None
    imbalance: int | None


def find_best(before: Snapshot, end: Snapshot, topics: TopicsSeen) -> Best:
    """What was possible in a rebalance, by the subscriptions of its end and the owners before.

    It is unknown of groups that no assignor of consumers could assign (`Snapshot.assignable`), or whose
    members cannot all be decoded. Partitions that were assigned before or after count anyway.
    """
    wanted = find_wanted(before, end, topics)
    if not _is_known(before, end):
        return Best(partitions=len(wanted), moved=None, imbalance=None)
    had, owned = before.by_identity, before.owned
    if wanted is not owned and not owned <= wanted:
        had = {name: one._replace(assignment=one.assignment & wanted) for name, one in had.items()}
        owned &= wanted
    if len(end.subscriptions) <= 1:
        loads = [len(had[one].assignment) if one in had else 0 for one in end.by_identity]
        return best_of_equals(loads, len(owned), len(wanted))
    claims = {name: by_topic(one.assignment) for name, one in had.items()}
    members = [
        Member(member_id=identity, topics=one.topics, claims=claims.get(identity, {}), generation=0)
        for identity, one in end.by_identity.items()
    ]
    plan = plan_exact(Group.of({**dict.fromkeys(end.topics, ()), **by_topic(wanted)}, members))
    settled = int(np.count_nonzero(plan.group.owner != NOBODY))
    return Best(
        partitions=len(wanted),
        # What was owned by members that are gone, or do not subscribe any more, has to move anyway.
        moved=plan.moves + len(owned) - settled,
        imbalance=int(plan.loads.max() - plan.loads.min()) if plan.loads.size else 0,
    )


def best_of_equals(loads: Sequence[int], owned: int, partitions: int) -> Best:
    """What is possible if all members subscribe to the same topics.

    Then every member gets the mean load, rounded down or up. It keeps what it has up to that. Members with
    more than the mean come first for the rounding up. That is what the exact planner counts, in 2 us instead
    of 700 (20 members, 200 partitions); tests hold the two to each other. `owned` counts what anybody had,
    members that are gone included.
    """
    if not loads:
        return Best(partitions=partitions, moved=0, imbalance=0)
    low, high = divmod(partitions, len(loads))
    above = [load - low for load in loads if load > low]
    kept = sum(loads) - sum(above) + min(high, len(above))
    return Best(partitions=partitions, moved=owned - kept, imbalance=int(high > 0))


def find_wanted(before: Snapshot, end: Snapshot, topics: TopicsSeen) -> AbstractSet[Partition]:
    """The partitions to assign, owned ones included."""
    had, has = before.owned, end.owned
    owned: AbstractSet[Partition] = has if had is has or had == has else had | has
    # A topic of which nobody has a partition any more was deleted.
    there = end.topics & end.owned_topics
    counts = [
        (topic, topics.count(topic, end.time_us))
        for topic in end.topics
        if topic in there or topic not in before.owned_topics
    ]
    seen = _all_of(tuple([one for one in counts if one[1] > 0]))
    if not (before.owned_topics <= there and end.owned_topics <= there):
        owned = {one for one in owned if one[0] in there}
    if seen <= owned:
        return owned  # most often the same object as `before.owned`
    return seen if owned <= seen else seen | owned


@lru_cache(maxsize=64)
def _all_of(counts: tuple[tuple[str, int], ...]) -> frozenset[Partition]:
    return frozenset((topic, partition) for topic, count in counts for partition in range(count))


def _is_known(before: Snapshot, end: Snapshot) -> bool:
    if not (before.assignable and end.assignable):
        return False
    if all(end.owned_topics <= topics for topics in end.subscriptions):
        return True
    return all(topic in member.topics for member in end.members for topic, _ in member.assignment)
