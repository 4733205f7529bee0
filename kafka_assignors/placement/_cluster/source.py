"""Where placements are: on a running cluster, or given."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from kafka import TopicPartition

from kafka_assignors._cluster.admin import Admin
from kafka_assignors._cluster.handle import Cluster, connect
from kafka_assignors.placement._cluster import topics as live
from kafka_assignors.placement._explicit import check_placements
from kafka_assignors.placement._placement import PlacementError, holders
from kafka_assignors.placement._reassignment_file import Placements

Topics = dict[str, dict[int, list[int]]]


class Opened(NamedTuple):
    """A running cluster, or given placements."""

    brokers: live.Brokers
    topics: Topics
    admin: Admin | None  # of a running cluster
    states: Mapping[str, Mapping[int, live.PartitionState]]  # internal topics' as well
    moving: Mapping[TopicPartition, live.Reassignment]  # if asked for; then topics are without what these add


@contextmanager
def opened(
    source: Cluster | Placements,
    wanted: Sequence[str] = (),
    *,
    moving: bool = False,
    rack_aware: bool = True,
) -> Iterator[Opened]:
    """The cluster that is meant, with the topics that are asked for; with all if there are none.

    If it is not rack-aware, no broker has a rack.
    """
    if isinstance(source, Cluster):
        with connect(source) as admin:
            brokers = live.read_brokers(admin)
            if not rack_aware:
                brokers = live.Brokers(dict.fromkeys(brokers.up), dict.fromkeys(brokers.down))
            # First: what arrives meanwhile has too many replicas only in what was described before.
            moves = live.read_moving(admin) if moving else {}
            states = live.read_states(admin, wanted or None)
            topics = live.placed(states, internal=bool(wanted))
            for tp, move in moves.items():
                if tp.partition in topics.get(tp.topic, {}):
                    topics[tp.topic][tp.partition] = [*move.before]
            yield Opened(brokers, topics, admin, states, moves)
        return
    if not isinstance(source, Placements):
        raise PlacementError(
            f"{source!r} has no placements: give a Cluster, Placements(topics) or Placements.read(file)"
        )
    for topic in wanted:
        if topic not in source.topics:
            raise PlacementError(f"no topic {topic!r} in {source.name}: {', '.join(source.topics) or 'none'}")
    check_placements(source.topics)
    racks = source.racks or dict.fromkeys(sorted(holders(*source.topics.values())))
    up = dict(racks) if rack_aware else dict.fromkeys(racks)
    chosen = {
        topic: {partition: [*replicas] for partition, replicas in source.topics[topic].items()}
        for topic in wanted or sorted(source.topics)
    }
    yield Opened(live.Brokers(up, {}), chosen, None, {}, {})
