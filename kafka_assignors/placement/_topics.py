"""Topics of a cluster described and created, and what placed them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

from kafka_assignors._cluster.handle import Cluster, connect
from kafka_assignors._common.words import are
from kafka_assignors.placement._cluster import topics as live
from kafka_assignors.placement._cluster.health import Health, read_health
from kafka_assignors.placement._cluster.logs import read_logs
from kafka_assignors.placement._cluster.source import Topics, opened
from kafka_assignors.placement._explicit import check_placement, parse_explicit
from kafka_assignors.placement._generators import place_rack_aware
from kafka_assignors.placement._inference.infer import GeneratorName, Inference, infer as infer_placement
from kafka_assignors.placement._placement import Placement, PlacementError
from kafka_assignors.placement._quality import Quality, measure
from kafka_assignors.placement._reassignment_file import Placements
from kafka_assignors.placement._striped import place_striped


@dataclass(frozen=True, slots=True)
class Description:
    """Where replicas are, how good that is, and what is wrong.

    Placements are topic -> partition -> brokers, the preferred leader first. The health is also of internal
    topics, unless topics were named; it is None without a cluster.
    """

    placements: Topics
    quality: Quality
    health: Health | None

    def to_json(self) -> dict[str, Any]:
        """In types that JSON has; without a cluster there is no `health`."""
        judged = {} if self.health is None else {"health": self.health}
        return {"placements": self.placements, "quality": self.quality, **judged}


def describe(source: Cluster | Placements, topics: Sequence[str] = (), *, min_insync: int = 1) -> Description:
    """Where replicas are, how good that is and, on a running cluster, how brokers and partitions are.

    Args:
        source: The cluster, or placements.
        topics: The topics' names; empty for all but internal ones.
        min_insync: With fewer replicas left, a partition counts as read-only when a rack is lost.

    Raises:
        PlacementError: There is no such topic.
        ClusterError: No broker answers.
    """
    health = sizes = None
    with opened(source, topics) as cluster:
        if cluster.admin is not None:
            logs = read_logs(cluster.admin, cluster.topics, cluster.brokers.up)
            sizes = logs.largest(cluster.topics)
            health = read_health(cluster.admin, cluster.states, cluster.brokers, logs)
    racks, down = cluster.brokers.all, cluster.brokers.down
    quality = measure(cluster.topics, racks, sizes=sizes, min_insync=min_insync, down=down)
    return Description(cluster.topics, quality, health)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A new topic: its name -> partition -> brokers, and whether it was `created`, or only placed."""

    created: bool
    placements: Topics


def create(
    cluster: Cluster,
    topic: str,
    partitions: int | None = None,
    replication_factor: int | None = None,
    *,
    placement: Placement | str | None = None,
    generator: GeneratorName | None = None,
    start_index: int | None = None,
    shift: int | None = None,
    seed: int | None = None,
    configs: Mapping[str, str] | None = None,
    allow_fenced: bool = False,
    dry_run: bool = False,
) -> CreatedTopic:
    """Create a topic, its replicas placed by a generator or as `placement` says.

    Args:
        cluster: The cluster.
        topic: The topic's name.
        partitions: How many partitions a generator is to place.
        replication_factor: How many replicas each of them gets.
        placement: The brokers of each partition, in place of a generator; or as text, such as `kafka-topics
            --replica-assignment` takes: "2:0:1,0:1:2".
        generator: None for `rack-aware` if brokers have racks, else for `rack-unaware`.
        start_index: Where leaders begin; drawn if None. Not of `striped`, as `shift`.
        shift: How far followers are; the start index if that is given, else drawn.
        seed: What is drawn is drawn from this.
        configs: Settings of the topic.
        allow_fenced: Let fenced brokers have replicas, if the others are too few or `placement` says so.
        dry_run: Create nothing.

    Raises:
        PlacementError: No such placement can be, or a fenced broker is needed and not allowed.
        ClusterError: The cluster does not create it.
    """
    given = parse_explicit(placement) if isinstance(placement, str) else placement
    with connect(cluster) as admin:
        brokers = live.read_brokers(admin)
        if given is not None:
            placed = {partition: [*replicas] for partition, replicas in given.items()}
            check_placement(placed, brokers.all)
            live.check_up(live.by_partition({topic: placed}), brokers, allow_fenced=allow_fenced)
        elif partitions is None or replication_factor is None:
            raise PlacementError(f"{topic}: give partitions and replication_factor, or a placement")
        else:
            usable = _usable(topic, replication_factor, brokers, allow_fenced=allow_fenced)
            place = _generator(generator, usable, start_index, shift, seed)
            placed = place(partitions, replication_factor)
        if not dry_run:
            live.create_topic(admin, topic, placed, configs)
    return CreatedTopic(not dry_run, {topic: placed})


def _generator(
    name: GeneratorName | None,
    brokers: live.Brokers,
    start_index: int | None,
    shift: int | None,
    seed: int | None,
) -> Callable[[int, int], dict[int, list[int]]]:
    """What places so many partitions of so many replicas."""
    racks = dict(sorted(brokers.all.items()))
    if name == "striped":
        if start_index is not None or shift is not None:
            raise PlacementError("striped draws, from a seed if given: it has no start index and shift")
        return partial(place_striped, racks=racks, fenced=[*brokers.down], seed=seed)
    if name is not None and name not in get_args(GeneratorName):
        raise PlacementError(f"no generator is named {name!r}: {', '.join(get_args(GeneratorName))}")
    known = dict.fromkeys(racks) if name == "rack-unaware" else racks
    return partial(place_rack_aware, racks=known, start_index=start_index, shift=shift, seed=seed)


def _usable(
    topic: str, replication_factor: int, brokers: live.Brokers, *, allow_fenced: bool
) -> live.Brokers:
    """The brokers that are to get replicas: fenced ones only if there are too few others."""
    if not brokers.down or replication_factor <= len(brokers.up):
        return live.Brokers(brokers.up, {})
    if not allow_fenced:
        up = len(brokers.up)
        raise PlacementError(
            f"{topic} is to have {replication_factor} replicas of each partition, but only"
            f" {up} broker{'' if up == 1 else 's'} of {len(brokers.all)} can take them:"
            f" {are(brokers.down)} fenced. Start what is fenced, ask for fewer replicas,"
            " or say --allow-fenced"
        )
    return brokers


def infer(source: Cluster | Placements, topics: Sequence[str] = ()) -> dict[str, Inference]:
    """What made the placement of each topic: the generators that fit, and what they drew.

    If the brokers that are up do not fit, those that the placement names are tried: there may be more now. No
    generator that goes by racks is tried where a broker has none. Arguments and errors are those of
    `describe`; a PlacementError also says that a partition has no replica or one broker twice.
    """
    with opened(source, topics) as cluster:
        return {
            topic: infer_placement(placed, racks=cluster.brokers.all)
            for topic, placed in cluster.topics.items()
        }
