"""What groups are put through in more than one test."""

import re
from collections.abc import Callable
from typing import Any

from kafka_assignors.testing import ConsumerGroup


def all_members_lost_at_once(
    assignor: Any, topic_factory: Callable[..., str], consumer_group: Callable[..., ConsumerGroup]
) -> tuple[ConsumerGroup, int]:
    """Two members lose their membership and return, and a third one joins, all in one round.

    They share six partitions, and freeze until the group has lost both. A member with a topic of its own
    then holds the round open: the coordinator waits for it, frozen as it is, until the others have
    asked to join. It subscribes by a pattern, for which it knows all topics when it leads.

    Returns:
        The group, and how many of the six partitions that one round gave to somebody.
    """
    # Polls that outlast sessions and the round: a stock leader whose poll ends in it may forget its join.
    session = {"session_timeout_ms": 4000}
    group = consumer_group(topic_factory(6), [assignor], settings=session, poll_ms=20_000)
    lost = [group.join(name) for name in "ab"]
    longer = {"session_timeout_ms": 45_000}
    doorstop = group.join("doorstop", topics=re.compile(topic_factory(1)), settings=longer)
    assert {len(owned) for name, owned in group.wait_stable().assignments.items() if name in "ab"} == {3}
    for member in lost:
        member.freeze()
    group.wait_stable()
    doorstop.freeze()
    before = doorstop.generation
    group.join("new")
    for member in lost:
        member.thaw()
    group.wait_for(lambda: len(group.describe().assignments) == 4, what="all to ask to join")
    doorstop.thaw()
    returned = [*lost, group.members["new"]]
    group.wait_for(
        lambda: all(member.generation > before for member in (*returned, doorstop)), what="all to be back"
    )
    first = next(one for one in group.timeline.rebalances if one.generation > before)
    assert first.assignments.keys() == {"a", "b", "new", "doorstop"}
    return group, sum(len(first.assignments[member.name]) for member in returned)
