"""Groups and their coordinators, from the command line."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from kafka.errors import KafkaError

from kafka_assignors._cli.arguments import ClusterClient
from kafka_assignors._cli.client import open_admin
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.output import Answer
from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._cluster.command_config import CommandConfigError
from kafka_assignors.coordinator._election import elect_leader, elect_strategy
from kafka_assignors.coordinator._finding import GROUPS_TOPIC, partition_for_group
from kafka_assignors.coordinator._live import find_coordinator

ERRORS: Final = Errors(wrong=(CommandConfigError, ValueError), failed=(ClusterError, KafkaError))


def find(*, client: ClusterClient, group: str, partitions: int) -> Answer:
    """The partition that a group belongs to, and its coordinator if there is a cluster to ask."""
    if client.bootstrap_servers is None:
        partition = partition_for_group(group, partitions)
        return Answer(
            lambda: {"partition": partition, "partitions": partitions},
            [f"{GROUPS_TOPIC}-{partition}, of {partitions}"],
        )
    with open_admin(client) as admin:
        coordinator = find_coordinator(admin, group)
    return Answer(lambda: asdict(coordinator), [str(coordinator)])


def elect(*, members: Sequence[str]) -> Answer:
    """The strategy that members elect, and the leader.

    Args:
        members: "member=strategy,strategy" of each, in the order of joining.

    Raises:
        ValueError: One is something else, or named twice; or they know no common strategy.
    """
    preferences: dict[str, list[str]] = {}
    for text in members:
        member, equals, strategies = text.partition("=")
        if not (member and equals and strategies) or member in preferences:
            raise ValueError(f"{text!r} is not MEMBER=STRATEGY[,...] of a member that was not named before")
        preferences[member] = strategies.split(",")
    election = elect_strategy(preferences)
    leader = elect_leader(preferences, leader=next(iter(preferences)))
    return Answer(
        lambda: {**asdict(election), "tied": election.tied, "leader": leader},
        [*str(election).split("\n"), f"leader: {leader}, the first to join"],
    )
