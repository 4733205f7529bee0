"""What brokers say of groups, of many at once: a request for each coordinator, or for each leader.

kafka-python's own calls turn members' bytes into text, and do not know groups of KIP-848. If one group is
refused, they fail for all. So requests are sent over its connections from here.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args

from kafka import KafkaAdminClient
from kafka.errors import (
    AuthorizationError,
    GroupIdNotFoundError,
    KafkaError,
    NoError,
    TopicAuthorizationFailedError,
    for_code,
)
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest

from kafka_assignors._cluster.admin import Admin, ClusterError, SilentBrokerError, reason
from kafka_assignors._cluster.messages import ConsumerGroupDescribeRequest
from kafka_assignors._cluster.requests import find_coordinators, send
from kafka_assignors._common.escaping import get_logger
from kafka_assignors._wire.offsets_topic import GroupMetadataValue, MemberMetadata

Kind = Literal["classic", "consumer", "share", "streams", "unknown"]
"""The types of groups; "consumer" is KIP-848's."""

_KINDS: Final[Mapping[str, Kind]] = {kind: kind for kind in get_args(Kind)}

Partition = tuple[str, int]
"""A partition by its topic and id."""

Leaders = dict[str, dict[int, int]]
"""Topic -> partition id -> the broker that leads it; -1 for none."""

_AT_ONCE: Final = 500  # groups in one request: the response of a thousand large groups may be too long
_LATEST: Final = -1
_EARLIEST: Final = -2
_MANY_OFFSETS: Final = 8  # the version of OffsetFetch from which on it is of many groups
_MEMBER_KINDS: Final[Mapping[int, Literal["classic", "consumer"]]] = {0: "classic", 1: "consumer"}

_Read = TypeVar("_Read")
_log = get_logger(__name__)


class ListedGroup(NamedTuple):
    """A group in the list of a cluster's.

    If the broker is too old to say its state, that is empty. If it never had a member, its protocol type is.
    """

    group_id: str
    kind: Kind
    state: str
    protocol_type: str


class ClassicGroup(NamedTuple):
    """A classic group as its coordinator describes it: its state, and what a record of it would say.

    Its generation, its leader and timeouts are not described. While it rebalances, neither are its strategy
    and subscriptions: then it is as a group whose members are no consumers. A member's assignment is then
    that of the last generation. It is empty once a round was broken off after all had joined; before Kafka
    4.0 in any rebalance.
    """

    group_id: str
    state: str
    value: GroupMetadataValue


class EpochMember(NamedTuple):
    """A member of a group of KIP-848.

    It subscribes to `topics` by name, and by `expression`. It has its `assignment`, and is to have its
    `target`. `protocol` is the protocol by which it is a member, if that is known.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    epoch: int
    topics: tuple[str, ...]
    expression: str | None
    assignment: frozenset[Partition]
    target: frozenset[Partition]
    protocol: Literal["classic", "consumer"] | None


class EpochGroup(NamedTuple):
    """A group of KIP-848 as its coordinator describes it."""

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[EpochMember, ...]


class Refused(NamedTuple):
    """What the cluster did not say of a group, and why."""

    why: str
    unknown: bool


def list_groups(admin: Admin) -> tuple[ListedGroup, ...]:
    """The groups of a cluster, by id. If the user may not see all, a warning is in the log.

    Raises KafkaError if the cluster does not say.
    """
    may = admin.ask(lambda client: client.describe_cluster()).get("authorized_operations")
    if may is not None and "DESCRIBE" not in may:
        _log.warning("groups that the user may not describe are left out: all need DESCRIBE on the cluster")
    listed = {
        group["group_id"]: ListedGroup(
            group_id=group["group_id"],
            # Brokers that do not say have classic groups only.
            kind=_KINDS.get((group.get("group_type") or "classic").lower(), "unknown"),
            state=group.get("group_state", ""),
            protocol_type=group["protocol_type"],
        )
        for group in admin.ask(lambda client: client.list_groups())
    }
    return tuple(listed[group_id] for group_id in sorted(listed))


def describe_classic(admin: Admin, group_ids: Sequence[str]) -> dict[str, ClassicGroup | Refused]:
    """Classic groups by id; of others that they are refused. Raises KafkaError if none answers."""
    return _described(admin, group_ids, lambda ids: DescribeGroupsRequest(groups=ids), read_classic_group)


def describe_consumer(admin: Admin, group_ids: Sequence[str]) -> dict[str, EpochGroup | Refused]:
    """Groups of KIP-848 by id; of others that they are refused. Raises KafkaError if none answers."""
    return _described(
        admin, group_ids, lambda ids: ConsumerGroupDescribeRequest(group_ids=ids), _read_consumer_group
    )


def committed_offsets(admin: Admin, group_ids: Sequence[str]) -> dict[str, dict[Partition, int] | Refused]:
    """The offsets that groups have committed, by group and partition; nothing of a group that is not known.

    Raises KafkaError if a coordinator does not answer.
    """

    def read(group: Any) -> dict[Partition, int]:
        return {
            (topic.name, one.partition_index): one.committed_offset
            for topic in group.topics
            for one in topic.partitions
            if not one.error_code and one.committed_offset >= 0
        }

    def many(ids: list[str]) -> Any:
        groups = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=one, topics=None) for one in ids]
        return OffsetFetchRequest(groups=groups, min_version=_MANY_OFFSETS, max_version=_MANY_OFFSETS)

    found = _described(admin, group_ids, many, read)
    return found | {one: {} for one, its in found.items() if isinstance(its, Refused) and its.unknown}


def read_topics(admin: Admin, topics: list[str] | None = None) -> Leaders:
    """The leaders of a cluster's topics, or only of some. Raises KafkaError if the cluster does not say."""
    return {
        topic["name"]: {one["partition_index"]: one["leader_id"] for one in topic["partitions"]}
        for topic in admin.ask(lambda client: client.describe_topics(topics))
        if not topic["error_code"]
    }


def find_hidden(admin: Admin, topics: Collection[str]) -> frozenset[str]:
    """Which of these topics the user may not describe, whether there are such or not."""
    described = admin.ask(lambda client: client.describe_topics(sorted(topics))) if topics else ()
    refused = TopicAuthorizationFailedError.errno
    return frozenset(topic["name"] for topic in described if topic["error_code"] == refused)


def hidden_error(topics: Iterable[str]) -> ClusterError:
    """The error for topics that have to be known, but are hidden from the user."""
    why = reason(TopicAuthorizationFailedError())
    return ClusterError(f"{', '.join(sorted(topics))} cannot be described: {why}")


class Extent(NamedTuple):
    """The offset of the first record that a partition still has, and the one after its last."""

    beginning: int
    end: int


def find_extents(admin: Admin, partitions: Iterable[Partition], topics: Leaders) -> dict[Partition, Extent]:
    """The extents of partitions; not of one that is gone, or has no leader that answers.

    Raises KafkaError if a leader does not say.
    """
    by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic, partition in partitions:
        leader = topics.get(topic, {}).get(partition, -1)
        if leader >= 0:
            by_leader[leader][topic].append(partition)
    found: dict[Partition, Extent] = {}
    for leader, wanted in by_leader.items():
        with suppress(SilentBrokerError):
            found |= admin.ask(partial(_ask_leader, leader=leader, wanted=wanted), node=leader)
    return found


def _ask_leader(
    client: KafkaAdminClient, leader: int, wanted: Mapping[str, Collection[int]]
) -> dict[Partition, Extent]:
    topic = ListOffsetsRequest.ListOffsetsTopic
    asked = topic.ListOffsetsPartition

    def offsets(which: int) -> dict[Partition, int]:
        topics = [
            topic(name=name, partitions=[asked(partition_index=one, timestamp=which) for one in sorted(ids)])
            for name, ids in wanted.items()
        ]
        request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)
        return {
            (found.name, one.partition_index): one.offset
            for found in send(client, request, leader).topics
            for one in found.partitions
            if not one.error_code and one.offset >= 0
        }

    # Beginnings first: retention never moves one beyond an end that is asked for later.
    beginnings, ends = offsets(_EARLIEST), offsets(_LATEST)
    return {one: Extent(beginnings[one], ends[one]) for one in beginnings.keys() & ends.keys()}


def _described(
    admin: Admin,
    group_ids: Sequence[str],
    request: Callable[[list[str]], Any],
    read: Callable[[Any], _Read],
) -> dict[str, _Read | Refused]:
    """Ask the coordinators of groups; each is asked of many at once."""

    def ask(client: KafkaAdminClient) -> dict[str, _Read | Refused]:
        found: dict[str, _Read | Refused] = {}
        coordinators = defaultdict(list)
        for group_id, node in find_coordinators(client, group_ids).items():
            if isinstance(node, KafkaError):
                found[group_id] = Refused(reason(node), unknown=False)
            else:
                coordinators[node].append(group_id)
        for node, ids in coordinators.items():
            for begin in range(0, len(ids), _AT_ONCE):
                # Coordinators answer in an order of their own.
                groups = send(client, request(ids[begin : begin + _AT_ONCE]), node).groups
                found |= {group.group_id: _read_group(group, read) for group in groups}
        return found

    return admin.ask(ask) if group_ids else {}


def _read_group(group: Any, read: Callable[[Any], _Read]) -> _Read | Refused:
    error = for_code(group.error_code)
    if error is NoError:
        return read(group)
    if issubclass(error, AuthorizationError):
        return Refused(reason(error()), unknown=False)
    message = getattr(group, "error_message", None) or error.description
    if issubclass(error, KafkaError) and error.retriable:  # by another request, or another broker
        raise error(f"{group.group_id}: {message}")
    return Refused(str(message), unknown=error is GroupIdNotFoundError)


def read_classic_group(group: Any) -> ClassicGroup:
    strategy = group.protocol_data or None
    members = tuple(
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            session_timeout=-1,
            subscription=bytes(member.member_metadata),
            assignment=bytes(member.member_assignment),
        )
        for member in group.members
    )
    value = GroupMetadataValue(
        version=4,
        protocol_type=group.protocol_type if strategy or not members else "",
        generation=-1,
        protocol=strategy,
        leader=None,
        members=members,
    )
    return ClassicGroup(group.group_id, group.group_state, value)


def _read_consumer_group(group: Any) -> EpochGroup:
    members = [
        EpochMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            host=member.client_host,
            rack=member.rack_id or None,
            epoch=member.member_epoch,
            topics=tuple(sorted(member.subscribed_topic_names)),
            expression=member.subscribed_topic_regex or None,
            assignment=_flat(member.assignment),
            target=_flat(member.target_assignment),
            protocol=_MEMBER_KINDS.get(member.member_type),
        )
        for member in group.members
    ]
    return EpochGroup(
        group_id=group.group_id,
        state=group.group_state,
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=group.assignor_name,
        members=tuple(sorted(members, key=lambda member: (member.client_id, member.member_id))),
    )


def _flat(assignment: Any) -> frozenset[Partition]:
    return frozenset(
        (one.topic_name, partition) for one in assignment.topic_partitions for partition in one.partitions
    )
