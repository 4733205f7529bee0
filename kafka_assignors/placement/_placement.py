"""Placements: on which brokers the replicas of a topic's partitions are."""

from collections.abc import Mapping, Sequence

from kafka_assignors._common.errors import KafkaAssignorsError

Placement = Mapping[int, Sequence[int]]
"""Partition id -> its replicas' brokers, of which the first is the preferred leader."""

Racks = Mapping[int, str | None]
"""Broker id -> its rack, None if it has none."""


class PlacementError(KafkaAssignorsError, ValueError):
    """A placement that cannot be, or that cannot be asked for; the message names the entry and the reason."""
