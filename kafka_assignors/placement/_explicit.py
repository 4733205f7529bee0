"""Placements that are written out: the format of `kafka-topics --replica-assignment`, and checks.

In "2:0:1,0:1:2" there are two partitions, and the leader of the first is on broker 2. The partitions' ids are
not in the text: they count up from 0.
"""

import re
from collections.abc import Collection, Mapping, Sequence

from kafka_assignors._common.tree import HIGHEST_ID
from kafka_assignors._common.words import first_of
from kafka_assignors.placement._placement import Placement, PlacementError

_NUMBER = re.compile(r"[+-]?[0-9]{1,100}")
_SHOWN = 10  # brokers that an error names
_BLANKS = "".join(map(chr, range(0x21)))  # what Java's String.trim takes away


def parse_explicit(text: str) -> dict[int, list[int]]:
    """Read a placement as Kafka's own tool does (`TopicCommand.parseReplicaAssignment`), and check it.

    Blanks around a number are ignored, and so are separators at the end. A negative id or a partition without
    brokers (":") is refused: the tool reads it, but no broker takes it.
    """
    placement = {
        partition: [_broker(partition, entry, number) for number in _split(entry, ":")]
        for partition, entry in enumerate(_split(text, ","))
    }
    check_placement(placement)
    return placement


def check_placements(topics: Mapping[str, Placement], known: Collection[int] | None = None) -> None:
    """Check that topics can be placed so in a reassignment, on the brokers that are known."""
    for topic, placement in topics.items():
        if not topic:
            raise PlacementError("a topic has no name: give one")
        try:
            check_placement(placement, known, mixed=True)
        except PlacementError as error:
            raise PlacementError(f"topic {topic}: {error}") from error


def check_placement(
    placement: Placement, brokers: Collection[int] | None = None, *, mixed: bool = False
) -> None:
    """Check that Kafka would take a placement; with `brokers` also that these are all that there are.

    In a reassignment partitions may differ in how many replicas they have (`mixed`), in a new topic not.
    """
    if not placement:
        raise PlacementError("the placement has no partitions: give at least one")
    first = min(placement)
    if first < 0:
        raise PlacementError(f"partition {first} cannot be: ids are 0 or more")
    for partition, replicas in sorted(placement.items()):
        _check_replicas(f"partition {partition}: '{_entry(replicas)}'", replicas, brokers)
        if not mixed and len(replicas) != len(placement[first]):
            raise PlacementError(
                f"partition {partition}: '{_entry(replicas)}' has a replication factor of {len(replicas)}, "
                f"but partition {first} of {len(placement[first])}: give all partitions as many replicas"
            )


def _check_replicas(entry: str, replicas: Sequence[int], known: Collection[int] | None) -> None:
    if not replicas:
        raise PlacementError(f"{entry} has no replica: name at least one broker")
    seen: set[int] = set()
    for broker in replicas:
        if broker < 0:
            raise PlacementError(f"{entry} has broker {broker}: ids are 0 or more")
        if broker in seen:
            raise PlacementError(f"{entry} has broker {broker} twice: name each broker of a partition once")
        if known is not None and broker not in known:
            raise PlacementError(
                f"{entry} has broker {broker}, which does not exist or is not up: take one of"
                f" {first_of(sorted(known), _SHOWN)}"
            )
        seen.add(broker)


def _broker(partition: int, entry: str, text: str) -> int:
    number = text.strip(_BLANKS)
    if _NUMBER.fullmatch(number) is None or not -HIGHEST_ID <= int(number) <= HIGHEST_ID:
        raise PlacementError(
            f"partition {partition}: '{entry}' has '{text}' where a broker id should be: give numbers of at "
            f"most {HIGHEST_ID}, separated by colons, such as '0:1:2'"
        )
    return int(number)


def _split(text: str, separator: str) -> list[str]:
    """Split as Java does: empty parts at the end are left out, unless there is no other."""
    kept = text.rstrip(separator)
    return kept.split(separator) if kept or not text else []


def _entry(replicas: Sequence[int]) -> str:
    return ":".join(map(str, replicas))
