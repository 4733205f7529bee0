"""Who takes part in a topic: of its subscribers some are active, the others stand by."""

import numpy as np

from kafka_assignors._model.arrays import IntArray, before_in_run, ranges, stable_order
from kafka_assignors._model.topic_sets import TopicNumbers, TopicSets

Subscriptions = tuple[TopicNumbers, IntArray]
"""The different sets of topics, in the order of the first member that has each, and (M,) which is whose."""


def of_highest_priority(
    subscriptions: Subscriptions, priorities: IntArray, ceilings: IntArray | None = None
) -> Subscriptions:
    """Leave each topic with those who have the highest priority among its subscribers.

    Args:
        subscriptions: What members subscribe to.
        priorities: (M,) their priorities.
        ceilings: (T,) who is above its topic's ceiling is a standby of those whose priority is the ceiling.
    """
    subscribed, subscription_of = subscriptions
    if ceilings is None and (priorities == priorities[:1]).all():
        return subscriptions
    # Members of one subscription and priority are alike.
    key = subscription_of << _BITS | priorities - priorities.min(initial=0)
    _, first, kind_of = np.unique(key, return_index=True, return_inverse=True)
    entries, kind = _entries(subscribed, subscription_of[first])
    topic = subscribed.numbers[entries]
    rank = 2 * priorities[first][kind]
    if ceilings is not None:
        ceiling = 2 * ceilings[topic]
        rank = np.where(rank > ceiling, ceiling - 1, rank)
    highest = np.full(subscribed.topics, np.iinfo(np.int64).min)
    np.maximum.at(highest, topic, rank)
    chosen = rank == highest[topic]
    return _made_of(subscribed.topics, kind[chosen], topic[chosen], kind_of)


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


_BITS = 32  # that priorities fit in


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
