"""Which groups are meant, and which broker coordinates one: the leader of a partition by the group's id."""

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Final

from kafka_assignors._wire.java.orders import string_hash

GROUPS_TOPIC: Final = "__consumer_offsets"
"""The topic whose partitions' leaders are the coordinators."""

_LEAST: Final = 2**31  # the least integer of 32 bits, without its sign


def is_meant(group_id: str, patterns: str | Collection[str]) -> bool:
    """Whether patterns as for `fnmatch`, or ids, mean a group; none mean all, and a text is one of them."""
    each = (patterns,) if isinstance(patterns, str) else patterns
    return not each or group_id in each or any(fnmatchcase(group_id, pattern) for pattern in each)


def partition_for_group(group_id: str, partitions: int = 50) -> int:
    """The partition of `__consumer_offsets` whose leader coordinates a group.

    As `GroupCoordinatorService.partitionFor` has it: the absolute value of Java's hash of the id, and 0 for
    the least integer, which has none (`Utils.abs`).

    Args:
        group_id: The group's id.
        partitions: How many the topic has: `offsets.topic.num.partitions`, 50 unless somebody changed it.

    Raises:
        ValueError: There are no partitions.
    """
    if partitions < 1:
        raise ValueError(f"{GROUPS_TOPIC} cannot have {partitions} partitions")
    hashed = string_hash(group_id)
    # As a signed number it is hashed - 2**32 from 2**31 on.
    absolute = hashed if hashed < _LEAST else (_LEAST * 2 - hashed) % _LEAST
    return absolute % partitions
