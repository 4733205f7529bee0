"""The cluster that a command on placements means: a running one, or what files say."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.errors import KafkaError

from kafka_assignors._cli.arguments import Where
from kafka_assignors._cli.client import open_admin
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cluster.admin import Admin, ClusterError
from kafka_assignors._cluster.command_config import CommandConfigError
from kafka_assignors.placement._cluster import topics as live
from kafka_assignors.placement._placement import PlacementError
from kafka_assignors.placement._reassignment_file import parse_reassignment

if TYPE_CHECKING:
    from kafka_assignors.placement._placement import Racks

ERRORS: Final = Errors(wrong=(PlacementError, CommandConfigError), failed=(ClusterError, KafkaError))

ONLY_SHOWN: Final = "nothing is changed: --execute does it"

Topics = Mapping[str, dict[int, list[int]]]


class OpenedCluster(NamedTuple):
    """A running cluster, or what files say.

    Attributes:
        racks: Its brokers that are up, and their racks.
        topics: The topics that were asked for, or all.
        admin: A client of a running one.
        down: Its brokers that are not up, and their racks.
        states: What a running one says of each partition.
    """

    racks: "Racks"
    topics: Topics
    admin: Admin | None
    down: "Racks"
    states: Mapping[str, Mapping[int, live.PartitionState]]

    @property
    def all_racks(self) -> "Racks":
        """All its brokers: what is where does not change when one goes down."""
        return {**self.racks, **self.down}


@contextmanager
def open_cluster(where: Where, wanted: Sequence[str] = ()) -> Iterator[OpenedCluster]:
    """The cluster that is meant, with the topics that are asked for; with all if there are none.

    Raises:
        PlacementError: A file cannot be read, or has no such topic.
        CommandConfigError: The client's properties cannot be used.
        ClusterError: No broker answers, or the cluster has no such topic.
    """
    if where.placements is None:
        with open_admin(where.client) as admin:
            up, down = live.read_brokers(admin)
            states = live.read_states(admin, wanted or None)
            topics = {topic: live.replicas_of(partitions) for topic, partitions in states.items()}
            yield OpenedCluster(up, topics, admin, down, states)
        return
    topics = read_placements(where.placements)
    for topic in wanted:
        if topic not in topics:
            raise PlacementError(f"{where.placements} has no topic {topic!r}: it has {', '.join(topics)}")
    racks = where.brokers or dict.fromkeys(sorted({b for one in topics.values() for b in holders(one)}))
    chosen = {topic: topics[topic] for topic in wanted or sorted(topics)}
    yield OpenedCluster(racks, chosen, None, {}, {})


def read_placements(path: Path) -> dict[str, dict[int, list[int]]]:
    """Placements from a file of Kafka's reassignment JSON.

    Raises:
        PlacementError: It cannot be read, or is something else.
    """
    try:
        return parse_reassignment(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PlacementError(f"cannot read {path}: {error}") from error


def holders(placement: Mapping[int, list[int]]) -> set[int]:
    """The brokers that have replicas."""
    return {broker for replicas in placement.values() for broker in replicas}
