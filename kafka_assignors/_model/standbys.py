"""Who takes part in a topic: of its subscribers some are active, the others stand by."""

from typing import Final

import numpy as np

from kafka_assignors._model.arrays import BoolArray, IntArray, before_in_run, ranges, stable_order
from kafka_assignors._model.topic_sets import TopicNumbers, TopicSets

Subscriptions = tuple[TopicNumbers, IntArray]
"""The different sets of topics, in the order of the first member that has each, and (M,) which is whose."""


NO_OWNER: Final = np.iinfo(np.int32).max
"""Instead of the priority of a topic's owners: above all priorities."""


def of_highest_priority(
    subscriptions: Subscriptions,
    priorities: IntArray,
    active: IntArray | None = None,
    waits: BoolArray | None = None,
) -> tuple[Subscriptions, BoolArray]:
    """Leave each topic with those who have the highest priority among its subscribers.

    Args:
        subscriptions: What members subscribe to.
        priorities: (M,) their priorities.
        active: (T,) the highest priority of who owns partitions of each topic, or `NO_OWNER`.
        waits: (M,) who has to wait. Beside such owners, and subscribers that need not wait, of a lower
            priority only, it is their standby.

    Returns:
        Who subscribes then, and (M,) who is a standby of a lower priority.
    """
    subscribed, subscription_of = subscriptions
    if waits is None or active is None:
        waits = np.zeros(priorities.size, dtype=np.bool_)
    if (priorities == priorities[:1]).all():
        return subscriptions, np.zeros_like(waits)
    # Members that are alike in all of it are of one kind.
    key = subscription_of << _BITS | (priorities - priorities.min()) << 1 | waits
    _, first, kind_of = np.unique(key, return_index=True, return_inverse=True)
    entries, kind = _entries(subscribed, subscription_of[first])
    topic = subscribed.numbers[entries]
    rank = priorities[first][kind]
    below = np.zeros(rank.size, dtype=np.bool_)
    if active is not None:
        ceiling = active.copy()
        at_once = ~waits[first][kind]
        np.maximum.at(ceiling, topic[at_once], rank[at_once])
        below = rank > ceiling[topic]
        rank = np.where(below, ceiling[topic], rank)
    rank = 2 * rank - below  # behind those of the priority, before those of the next
    highest = np.full(subscribed.topics, np.iinfo(np.int64).min)
    np.maximum.at(highest, topic, rank)
    chosen = rank == highest[topic]
    is_below = np.isin(kind_of, kind[below])
    return _made_of(subscribed.topics, kind[chosen], topic[chosen], kind_of), is_below


def of_first(subscriptions: Subscriptions, order: IntArray, most: int) -> Subscriptions:
    """Leave each topic with so many of its subscribers at most: with those who come first.

    Args:
        subscriptions: What members subscribe to.
        order: (M,) the members, those first who come first.
        most: How many members a topic may have.
    """
    subscribed, subscription_of = subscriptions
    # Of one subscription only the first so many members can be among the first of a topic.
    candidates = order[_place_in_run(subscription_of[order], len(subscribed)) < most]
    entries, place = _entries(subscribed, subscription_of[candidates])
    topic = subscribed.numbers[entries]
    chosen = _place_in_run(topic, subscribed.topics) < most
    return _made_of(
        subscribed.topics, candidates[place[chosen]], topic[chosen], np.arange(subscription_of.size)
    )


_BITS: Final = 32  # that priorities fit in


def _entries(subscribed: TopicNumbers, sets: IntArray) -> tuple[IntArray, IntArray]:
    """The places of what some sets have, and for each the place of its set among them."""
    return ranges(subscribed.bounds[sets], (subscribed.bounds[1:] - subscribed.bounds[:-1])[sets])


def _place_in_run(keys: IntArray, end: int) -> IntArray:
    """How many equal keys come before each."""
    order = stable_order(keys, end)
    place = np.empty_like(keys)
    place[order] = before_in_run(keys[order], np.ones_like(keys))
    return place


def _made_of(topics: int, kind: IntArray, topic: IntArray, kind_of: IntArray) -> Subscriptions:
    """Subscriptions from pairs of a kind of members and a topic, and (M,) of which kind each member is."""
    order = np.argsort(kind, kind="stable")
    _, first = np.unique(kind_of, return_index=True)
    kinds = kind_of[np.sort(first)]
    bounds = np.append(0, np.bincount(kind, minlength=kinds.size).cumsum())
    names = [*map(str, range(topics))]
    sets = TopicSets(names=names, bounds=bounds, entries=topic[order]).chosen(kinds)
    subscribed, which = TopicNumbers.of(sets, {name: number for number, name in enumerate(names)})
    of_kind = np.empty_like(which)
    of_kind[kinds] = which
    return subscribed, of_kind[kind_of]
