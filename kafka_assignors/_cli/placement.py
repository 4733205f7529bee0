"""Where replicas are, from the command line: topics made, described, explained and expanded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_assignors._cli import placement_text as text
from kafka_assignors._cli.arguments import ClusterClient, Draws, Where
from kafka_assignors._cli.client import open_admin
from kafka_assignors._cli.output import Answer, count
from kafka_assignors._cli.placement_cluster import ERRORS, ONLY_SHOWN, open_cluster
from kafka_assignors.placement._cluster import topics as live
from kafka_assignors.placement._cluster.health import Health, read_health
from kafka_assignors.placement._cluster.logs import read_logs
from kafka_assignors.placement._expansion import expand
from kafka_assignors.placement._explicit import check_placement, parse_explicit
from kafka_assignors.placement._generators import place_rack_aware, place_rack_unaware
from kafka_assignors.placement._inference.infer import infer
from kafka_assignors.placement._placement import PlacementError
from kafka_assignors.placement._quality import Quality, measure
from kafka_assignors.placement._striped import place_striped

if TYPE_CHECKING:
    from kafka_assignors.placement._placement import Placement

__all__ = ["ERRORS", "create", "describe", "expand_topic", "infer_generators"]


def create(
    *,
    client: ClusterClient,
    topic: str,
    partitions: int | None,
    replication_factor: int | None,
    generator: str | None,
    draws: Draws,
    replica_assignment: str | None,
    config: Sequence[tuple[str, str]] | None,
    allow_fenced: bool,
    dry_run: bool,
) -> Answer:
    """Create a topic, its replicas placed by a generator or as `replica_assignment` says.

    Fenced brokers get replicas if `allow_fenced` and the others are too few, or `replica_assignment` says so.
    """
    with open_admin(client) as admin:
        brokers = live.read_brokers(admin)
        if partitions is None or replication_factor is None:
            placement = parse_explicit(str(replica_assignment))
            check_placement(placement, [*brokers.up, *brokers.down])
            live.check_up({topic: placement}, brokers, allow_fenced=allow_fenced)
        else:
            usable = _usable(topic, replication_factor, brokers, allow_fenced=allow_fenced)
            placement = _generate(generator, partitions, replication_factor, usable, draws)
        if not dry_run:
            live.create_topic(admin, topic, placement, dict(config or []))
    done = f"{topic} was not created: this is a dry run" if dry_run else f"{topic} is created"
    return Answer(
        lambda: {"created": not dry_run, "placements": {topic: placement}},
        [*text.placement_lines({topic: placement}), done],
    )


def _usable(
    topic: str, replication_factor: int, brokers: live.Brokers, *, allow_fenced: bool
) -> live.Brokers:
    """The brokers that are to get replicas: fenced ones only if there are too few others.

    Raises:
        PlacementError: Fenced ones are needed and not allowed.
    """
    if not brokers.down or replication_factor <= len(brokers.up):
        return live.Brokers(brokers.up, {})
    if not allow_fenced:
        raise PlacementError(
            f"{topic} is to have {replication_factor} replicas of each partition, but only"
            f" {count(len(brokers.up), 'broker')} of {len(brokers.up) + len(brokers.down)} can take them:"
            f" {text.are(brokers.down)} fenced. Start what is fenced, ask for fewer replicas,"
            " or say --allow-fenced"
        )
    return brokers


def _generate(
    generator: str | None, partitions: int, replication_factor: int, brokers: live.Brokers, draws: Draws
) -> dict[int, list[int]]:
    """Place partitions on brokers, of which those that are down are to have replicas as well."""
    racks = dict(sorted({**brokers.up, **brokers.down}.items()))
    generator = generator or ("rack-aware" if any(racks.values()) else "rack-unaware")
    if generator == "striped":
        fenced = [*brokers.down]
        return place_striped(partitions, replication_factor, racks, fenced=fenced, seed=draws.seed)
    if generator == "rack-aware":
        return place_rack_aware(partitions, replication_factor, racks, **draws._asdict())
    return place_rack_unaware(partitions, replication_factor, sorted(racks), **draws._asdict())


def describe(
    *,
    where: Where,
    topics: Sequence[str],
    min_insync: int,
    partitions: bool,
    draw: Path | None,
    check: bool,
) -> Answer:
    """Where replicas are, how good that is and, on a running cluster, how brokers and partitions are.

    `partitions` lists all partitions, `draw` names a file to draw. With `check` the status is 1 if a broker
    is not up, or a partition lacks a replica.
    """
    health: Health | None = None
    sizes = None
    with open_cluster(where, topics) as cluster:
        if cluster.admin is not None:
            logs = read_logs(cluster.admin, cluster.topics, cluster.racks)
            sizes = logs.largest(cluster.topics)
            brokers = live.Brokers({**cluster.racks}, {**cluster.down})
            states = live.read_states(cluster.admin, topics or None, internal="with")
            health = read_health(cluster.admin, states, brokers, logs)
    quality = measure(
        cluster.topics, cluster.all_racks, sizes=sizes, min_insync=min_insync, down=cluster.down
    )
    if draw is not None:
        from kafka_assignors.placement import _picture  # noqa: PLC0415 - optional, and slow to import

        _picture.draw(quality, draw, title=", ".join(cluster.topics))
    judged = {} if health is None else {"health": health.as_json()}
    return Answer(
        lambda: {"placements": cluster.topics, "quality": asdict(quality), **judged},
        _described(cluster.topics, quality, health, in_full=partitions),
        1 if check and health is not None and not health.healthy else 0,
    )


def _described(
    topics: Mapping[str, "Placement"], quality: Quality, health: Health | None, *, in_full: bool
) -> Iterator[str]:
    listed = list(text.placement_lines(topics))
    if len(listed) > text.SHOWN and not in_full:
        listed = [f"{len(listed)} partitions: --partitions lists them"]
    yield from [*listed, "", *text.quality_lines(quality, {} if health is None else health.brokers)]
    if health is not None:
        yield from ["", *text.health_lines(health)]


def infer_generators(*, where: Where, topics: Sequence[str]) -> Answer:
    """The generators that can have made placements; with the status 1 if none can for one of the topics."""
    with open_cluster(where, topics) as cluster:
        found = {topic: infer(placed, racks=cluster.all_racks) for topic, placed in cluster.topics.items()}
    return Answer(
        lambda: {topic: asdict(one) for topic, one in found.items()},
        [line for topic, one in found.items() for line in text.inference_lines(topic, one)],
        0 if all(one.fits for one in found.values()) else 1,
    )


def expand_topic(*, where: Where, topic: str, partitions: int, balanced: bool, execute: bool) -> Answer:
    """Add partitions to a topic, placed as its own are, or so that brokers are balanced."""
    with open_cluster(where) as cluster:
        if topic not in cluster.topics:
            raise PlacementError(f"there is no topic {topic!r}")
        present = cluster.topics[topic]
        if partitions <= len(present):
            raise PlacementError(
                f"{topic} has {len(present)} partitions already, and cannot have fewer than it has:"
                f" --partitions is {partitions}"
            )
        others = {name: placed for name, placed in cluster.topics.items() if name != topic}
        more = expand(
            present,
            partitions - len(present),
            cluster.racks,
            others=others,
            keep_pattern=not balanced,
        )
        if execute and cluster.admin is not None:
            live.add_partitions(cluster.admin, topic, present, more.partitions)
    return Answer(
        lambda: {"executed": execute, "how": more.how, "why": more.why, "added": more.partitions},
        [
            *text.placement_lines({topic: more.partitions}),
            f"{more.how}: {more.why}",
            f"{topic} has {partitions} partitions" if execute else ONLY_SHOWN,
        ],
    )
