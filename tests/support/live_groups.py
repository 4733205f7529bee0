"""Running groups as they are read, from records of the simulator."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kafka.protocol.admin import DescribeGroupsResponse

from kafka_assignors._assignors import RangeAssignor
from kafka_assignors._cluster.groups import ClassicGroup, read_classic_group
from kafka_assignors._groups.joining import Look
from kafka_assignors._wire.offsets_topic import GroupMetadataValue
from kafka_assignors.coordinator import Simulation
from kafka_assignors.groups._live import LiveGroup
from website import examples

Described = DescribeGroupsResponse.DescribedGroup


def record_of(topics: Mapping[str, int], *names: str, **options: Any) -> GroupMetadataValue:
    """The record of a group at rest whose members have these names."""
    group = Simulation(topics, [RangeAssignor], **options)
    for name in names:
        group.join(name)
    group.run_until_stable()
    return group.group.record()


def described(
    value: GroupMetadataValue, state: str, *more: str, without: str = "", broken_off: bool = False
) -> ClassicGroup:
    """The group of a record as its coordinator describes it, in a rebalance with new members.

    Once a round was broken off, no assignments are left.
    """
    stable = state == "Stable"
    old = [
        Described.DescribedGroupMember(
            member_id=one.member_id,
            group_instance_id=one.group_instance_id,
            client_id=one.client_id,
            client_host=one.client_host,
            member_metadata=one.subscription if stable else b"",
            member_assignment=b"" if broken_off else one.assignment,
        )
        for one in value.members
        if one.client_id != without
    ]
    new = [
        Described.DescribedGroupMember(member_id=f"{name}-id", client_id=name, client_host="/127.0.0.1")
        for name in more
    ]
    return read_classic_group(
        Described(
            group_id="billing",
            group_state=state,
            protocol_type="consumer",
            protocol_data=value.protocol if stable else "",
            members=[*old, *new],
        )
    )


def live_group(
    *values: GroupMetadataValue, topics: Mapping[str, int], look: ClassicGroup | None = None
) -> LiveGroup:
    """Values as if they had been written three seconds after one another, and the group described later."""
    return replace(
        examples.live_group(),
        looks=(Look(1_750_000_060_000, look or described(values[-1], "Stable")),),
        records=tuple(
            examples.live_record(1_750_000_000_000 + 3000 * number, value)
            for number, value in enumerate(values)
        ),
        topics={name: dict.fromkeys(range(count), 2) for name, count in topics.items()},
        committed={},
    )
