"""Placements: on which brokers the replicas of a topic's partitions are."""

from collections.abc import Collection, Mapping, Sequence

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.words import are

Placement = Mapping[int, Sequence[int]]
"""Partition id -> its replicas' brokers, of which the first is the preferred leader."""

Racks = Mapping[int, str | None]
"""Broker id -> its rack, None if it has none."""


def holders(*placements: Placement) -> set[int]:
    """The brokers that have replicas."""
    return {broker for placement in placements for replicas in placement.values() for broker in replicas}


class PlacementError(KafkaAssignorsError, ValueError):
    """A placement that cannot be, or that cannot be asked for; the message names the entry and the reason."""


def check_request(
    partitions: int, replication_factor: int, brokers: Collection[int], **numbers: int | None
) -> None:
    """Check what is asked for, and the brokers to place on; `numbers` are settings that may be left out."""
    if partitions < 1:
        raise PlacementError(f"partitions is {partitions}: there is nothing to place; ask for 1 or more")
    if replication_factor < 1:
        raise PlacementError(
            f"replication_factor is {replication_factor}: each partition has a leader; ask for 1 or more"
        )
    for name, value in numbers.items():
        if value is not None and value < 0:
            raise PlacementError(f"{name} is {value}: give 0 or more, or leave it out")
    if replication_factor > len(brokers):
        raise PlacementError(
            f"replication_factor is {replication_factor}, but there are {len(brokers)} brokers, and each "
            f"takes one replica of a partition: ask for at most {len(brokers)}, or give more brokers"
        )


def check_racks(racks: Racks) -> None:
    """Check that all brokers have an id that can be, and a rack, or none of them a rack."""
    if min(racks, default=0) < 0:
        raise PlacementError(f"broker {min(racks)} cannot be: ids are 0 or more")
    without = [broker for broker, rack in racks.items() if rack is None]
    if 0 < len(without) < len(racks):
        raise PlacementError(
            f"{are(without)} without a rack, and others have one: name the rack of each (ID=RACK), or place "
            "without racks: --disable-rack-aware, create --generator rack-unaware, in Python None for all"
        )
