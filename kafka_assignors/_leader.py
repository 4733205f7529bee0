"""A leader's whole work on bytes: members' subscriptions in, their assignments out, without a client."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from kafka_assignors._assignors import Assignor
from kafka_assignors._common.escaping import get_logger
from kafka_assignors._common.strategies import ASSIGNORS, load
from kafka_assignors._model.group import Group
from kafka_assignors._model.members import canonical_order
from kafka_assignors._model.racks import KnownRacks
from kafka_assignors._wire.codec import read_subscriptions

log = get_logger(__name__)

STRATEGIES: Final[dict[str, type[Assignor]]] = {name: load(path) for name, path in ASSIGNORS.items()}
"""The strategies of this library by name."""


def lead(
    topics: Mapping[str, Collection[int]],
    members: Iterable[tuple[str, str | None, bytes]],
    strategy: str | Assignor = "sticky",
    replica_racks: KnownRacks | None = None,
) -> dict[str, bytes]:
    """Assign as a group's leader would.

    Args:
        topics: The partition ids of each topic.
        members: Member id, instance id (None for a dynamic member) and ConsumerProtocolSubscription of each
            member. One whose subscription cannot be read gets nothing.
        strategy: The name of a strategy, or an assignor.
        replica_racks: The racks of each (topic, partition id)'s replicas, or a function of topic and ids that
            gives a set of racks for each id in order. One that has lists by topic is several times faster.

    Returns:
        The ConsumerProtocolAssignment of each member by member id.

    Raises:
        ValueError: There is no strategy of this name, or two members have one member id.
        InvalidPlanError: The assignor's plan must not be sent.
    """
    if isinstance(strategy, str):
        if strategy not in STRATEGIES:
            raise ValueError(f"there is no strategy {strategy!r}; choose one of {', '.join(STRATEGIES)}")
        strategy = STRATEGIES[strategy]()
    listed = list(members)
    order = canonical_order([name for name, _, _ in listed], [instance for _, instance, _ in listed])
    listed = [listed[number] for number in order]
    ids = [member_id for member_id, _, _ in listed]
    subscriptions = read_subscriptions([subscription for _, _, subscription in listed])
    for number in subscriptions.unreadable:
        log.warning("Giving nothing to member %s, whose subscription cannot be read", ids[number])
    decoded = strategy.decode(ids, [instance_id for _, instance_id, _ in listed], subscriptions)
    group = Group.of(topics, decoded, replica_racks)
    return {member: assignment.encode() for member, assignment in strategy.lead(group).items()}
