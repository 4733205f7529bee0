"""Rebalances that an application asks for."""

import math
from collections.abc import Mapping
from typing import Any

from kafka_assignors._assignors._load_aware import LoadAwareAssignor
from kafka_assignors._common.escaping import get_logger

log = get_logger(__name__)


def enforce_rebalance(consumer: Any, reason: str) -> None:
    """Have a consumer's group rebalance, as Java's `enforceRebalance` does (KIP-568).

    Returns at once; the consumer joins with its next poll, and aiokafka's by itself. If a rebalance is under
    way already, another one may follow. A coordinator does nothing if a member that does not lead joins again
    with the same bytes. Assignors of this library say their last generation, which differs each time;
    kafka-python's and aiokafka's own do not.

    The reason is logged here. Neither client can send it: they join by versions before 8 (KIP-800).

    Args:
        consumer: A KafkaConsumer; or an AIOKafkaConsumer that was started, on its event loop.
        reason: Why, for the log.

    Raises:
        ValueError: The consumer is in no group, not started, or does not subscribe to topics.
    """
    coordinator = _coordinator_of(consumer)
    if not coordinator._subscription.partitions_auto_assigned():  # noqa: SLF001
        raise ValueError(
            "the consumer subscribes to no topics, or assigned its partitions by hand: there is no group to"
            " rebalance"
        )
    log.info("Asking for a rebalance of group %s: %s", coordinator.group_id, reason)
    coordinator.request_rejoin()


def rebalance_when(consumer: Any, *, uneven_for: float, at_least: float, cool_down: float) -> None:
    """Have a consumer with `LoadAwareAssignor` ask for a rebalance when it has too much of the group's load.

    Call it for each consumer of the group. With each assignment the leader tells what the mean member needs
    for what waits and arrives, standbys aside. A member compares itself with what the mean member has not
    worked off since then, while it polls. It asks if
    it needs at least half of its time, and `at_least` times the mean, for `uneven_for` seconds in a row. If
    nothing was measured when the leader planned, as when a group starts, half of its time is enough.

    The members judge, not the leader: it knows what others measured as of their last join only. They ask no
    sooner than `cool_down` seconds after any rebalance, so a group rebalances for load once in this time at
    most. If the load of all grows alike, or one partition is too much for any member, one may ask in vain:
    then nothing moves. If a rebalance that it asked for changes nothing for a member, it waits twice as long
    before it asks again, a day at most, until its partitions change.

    Args:
        consumer: A KafkaConsumer; or an AIOKafkaConsumer that was started.
        uneven_for: Seconds for which its load has to be uneven, more than 0.
        at_least: How many times the mean counts as uneven, more than 1.
        cool_down: Seconds without a rebalance of the group before it asks, 0 or more.

    Raises:
        ValueError: A number is out of range, or the consumer has no LoadAwareAssignor.
    """
    for name, value, least in (("uneven_for", uneven_for, 0.0), ("at_least", at_least, 1.0)):
        if not least < value < math.inf:
            raise ValueError(f"{name} must be more than {least:g}, not {value!r}")
    if not 0 <= cool_down < math.inf:
        raise ValueError(f"cool_down must be 0 s or more, not {cool_down!r}")
    listed = _coordinator_of(consumer)._assignors  # noqa: SLF001
    assignors = listed.values() if isinstance(listed, Mapping) else listed
    ours: list[Any] = [getattr(one, "assignor", one) for one in assignors]  # aiokafka has them wrapped
    aware = [one for one in ours if isinstance(one, LoadAwareAssignor)]
    if not aware:
        names = ", ".join(str(one.name) for one in ours)
        raise ValueError(f"the consumer has no LoadAwareAssignor among its strategies ({names})")
    for one in aware:
        one.ask_when_uneven(uneven_for=uneven_for, at_least=at_least, cool_down=cool_down)


def _coordinator_of(consumer: Any) -> Any:
    coordinator = getattr(consumer, "_coordinator", None)
    if coordinator is None:
        raise ValueError(f"{type(consumer).__name__} has no group coordinator: start it first")
    if getattr(coordinator, "group_id", None) is None:
        raise ValueError(f"{type(consumer).__name__} is in no group: give it a group_id")
    return coordinator
