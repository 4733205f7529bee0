"""A classic group as its coordinator describes it, as a record of it would have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_assignors._wire.offsets_topic import GroupMetadataValue, MemberMetadata

if TYPE_CHECKING:
    from kafka_assignors._cluster.groups import ClassicGroup

_UNTOLD: Final = -1


def described_value(group: ClassicGroup) -> GroupMetadataValue:
    """What a record of the group would say; its generation, its leader and timeouts are missing.

    While it rebalances, its strategy and what members said are missing, too: then it is as a group whose
    members are no consumers.
    """
    return GroupMetadataValue(
        version=4,
        protocol_type=group.protocol_type if group.strategy is not None or not group.members else "",
        generation=_UNTOLD,
        protocol=group.strategy,
        leader=None,
        members=tuple(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.host,
                rebalance_timeout=_UNTOLD,
                session_timeout=_UNTOLD,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in group.members
        ),
    )
