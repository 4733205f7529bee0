"""Which broker coordinates a group."""

from dataclasses import dataclass

from kafka.errors import KafkaError, TopicAuthorizationFailedError

from kafka_assignors._cluster.admin import Admin, ClusterError, reason
from kafka_assignors._cluster.groups import hidden_error
from kafka_assignors._cluster.handle import Cluster, connect
from kafka_assignors._groups.finding import GROUPS_TOPIC, partition_for_group


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCoordinator:
    """A group's coordinator: the broker that leads a partition of `__consumer_offsets`, by the group's id.

    The topic has so many `partitions`. There is no broker if none leads it at the moment, and no address,
    "host:port", of one that is not up.
    """

    partition: int
    partitions: int
    broker: int | None
    address: str | None

    def __str__(self) -> str:
        if self.broker is None:
            return f"none: {GROUPS_TOPIC}-{self.partition} has no leader"
        at = "down" if self.address is None else f"at {self.address}"
        return f"broker {self.broker} ({at}), which leads {GROUPS_TOPIC}-{self.partition}"


def find_coordinator(cluster: Cluster, group_id: str) -> GroupCoordinator:
    """Find the broker that coordinates a group, whether there is such a group or not.

    Raises:
        ClusterError: The cluster has no `__consumer_offsets`, or does not say.
    """
    with connect(cluster) as admin:
        return coordinator_of(admin, group_id)


def coordinator_of(admin: Admin, group_id: str) -> GroupCoordinator:
    try:
        (described,) = admin.ask(lambda client: client.describe_topics([GROUPS_TOPIC]))
    except KafkaError as error:
        raise ClusterError(f"the cluster does not describe {GROUPS_TOPIC}: {reason(error)}") from error
    leaders = {one["partition_index"]: one["leader_id"] for one in described["partitions"]}
    if described["error_code"] == TopicAuthorizationFailedError.errno:
        raise hidden_error([GROUPS_TOPIC])
    if not leaders:
        raise ClusterError(f"the cluster has no {GROUPS_TOPIC}: the first look-up of a group creates it")
    partition = partition_for_group(group_id, len(leaders))
    leader = leaders.get(partition, -1)
    addresses = {
        broker["broker_id"]: f"{broker['host']}:{broker['port']}"
        for broker in admin.ask(lambda client: client.describe_cluster())["brokers"]
    }
    return GroupCoordinator(
        partition=partition,
        partitions=len(leaders),
        broker=None if leader < 0 else leader,
        address=addresses.get(leader),
    )
