"""A running cluster: its brokers and topics read, topics created and expanded."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import AuthorizationError, KafkaError, NoError, for_code
from kafka.protocol.admin import ListPartitionReassignmentsRequest
from kafka.protocol.metadata import MetadataRequest

from kafka_assignors._cluster.admin import CONTROLLER, LOOK_SECONDS, Admin, ClusterError, reason
from kafka_assignors._cluster.requests import send
from kafka_assignors._common.waiting import wait_until
from kafka_assignors.placement._placement import Placement, PlacementError

FENCED_WAYS_OUT: Final = "start it, take another, or say --allow-fenced"

_Value = TypeVar("_Value")

_VISIBLE_SECONDS: Final = 30.0
_LISTED_SECONDS: Final = 5.0
_UNKNOWN_TOPIC: Final = 3


class Brokers(NamedTuple):
    """The racks of the brokers that can hold new replicas, and of fenced brokers (KIP-631).

    Clusters without KIP-1073 do not name these.
    """

    up: dict[int, str | None]
    down: dict[int, str | None]

    @property
    def all(self) -> dict[int, str | None]:
        """Both: what is where does not change when one goes down."""
        return self.up | self.down


class PartitionState(NamedTuple):
    """What a cluster says of a partition now."""

    replicas: tuple[int, ...]  # during a reassignment with those that it adds and removes
    in_sync: frozenset[int]
    leader: int | None  # None if it is offline
    internal: bool = False  # of an internal topic


class Reassignment(NamedTuple):
    """What is under way of a partition, or to be begun."""

    before: list[int]  # the brokers that it would stay on if that were cancelled
    target: list[int]
    adding: list[int]


def read_moving(admin: Admin, *, patient: bool = True) -> dict[TopicPartition, Reassignment]:
    """All reassignments that are under way.

    If not `patient`, a controller that does not say within seconds is a SilentBrokerError.
    """

    def ask(client: KafkaAdminClient) -> Any:
        request = ListPartitionReassignmentsRequest(timeout_ms=int(_LISTED_SECONDS * 1000), topics=None)
        asked = client.describe_cluster()["controller_id"]
        # Any broker passes it on, but for those of clusters on ZooKeeper.
        response = send(client, request, None if asked in admin.left_out else asked, _LISTED_SECONDS)
        if (error := for_code(response.error_code)) is not NoError:
            raise error(response.error_message)
        return response.topics

    return {
        TopicPartition(topic.name, one.partition_index): Reassignment(
            [broker for broker in one.replicas if broker not in one.adding_replicas],
            [broker for broker in one.replicas if broker not in one.removing_replicas],
            [*one.adding_replicas],
        )
        for topic in admin.ask(ask, node=None if patient else CONTROLLER)
        for one in topic.partitions
    }


def by_partition(topics: Mapping[str, Placement]) -> dict[TopicPartition, list[int]]:
    return {
        TopicPartition(topic, p): [*brokers]
        for topic, placed in topics.items()
        for p, brokers in placed.items()
    }


def by_topic(partitions: Mapping[TopicPartition, _Value]) -> dict[str, dict[int, _Value]]:
    found: dict[str, dict[int, _Value]] = {}
    for tp, one in partitions.items():
        found.setdefault(tp.topic, {})[tp.partition] = one
    return found


def read_brokers(admin: Admin) -> Brokers:
    found = Brokers({}, {})
    for broker in admin.ask(lambda client: client.describe_cluster())["brokers"]:
        (found.down if broker.get("is_fenced") else found.up)[broker["broker_id"]] = broker["rack"]
    return found


def check_up(added: Mapping[TopicPartition, Sequence[int]], brokers: Brokers, *, allow_fenced: bool) -> None:
    """Check that replicas can be put on these brokers."""
    known = brokers.all
    for tp, replicas in sorted(added.items()):
        for broker in replicas:
            name = f"{tp.topic}-{tp.partition} is to have a replica on broker {broker}"
            if broker in brokers.down and not allow_fenced:
                raise PlacementError(f"{name}, which is fenced: {FENCED_WAYS_OUT}")
            if broker not in known:
                there = ", ".join(map(str, sorted(known)))
                raise PlacementError(f"{name}, which is not up or does not exist: there are {there}")


def read_topics(admin: Admin, topics: Collection[str] | None = None) -> dict[str, dict[int, list[int]]]:
    """The placements of topics, of all but internal ones if none are named."""
    return placed(read_states(admin, topics), internal=topics is not None)


def placed(
    topics: Mapping[str, Mapping[int, PartitionState]], *, internal: bool = True
) -> dict[str, dict[int, list[int]]]:
    """The placements of topics, of internal ones only if these are wanted."""
    return {
        topic: {partition: list(state.replicas) for partition, state in states.items()}
        for topic, states in topics.items()
        if internal or not any(state.internal for state in states.values())
    }


def read_states(
    admin: Admin, topics: Collection[str] | None = None, *, missing: bool = False
) -> dict[str, dict[int, PartitionState]]:
    """The state of each partition of some topics, or of all; they must exist unless they may be `missing`."""
    found: dict[str, dict[int, PartitionState]] = {}
    # Without names, kafka-python asks for all.
    names = None if topics is None else sorted(topics)
    for topic in admin.ask(lambda client: client.describe_topics(names)):
        name = topic["name"]
        if topic["error_code"] == _UNKNOWN_TOPIC:
            if missing:
                continue
            raise PlacementError(f"the cluster has no topic {name!r}")
        _check_described(name, topic["error_code"])
        found[name] = {
            one["partition_index"]: PartitionState(
                replicas=tuple(one["replica_nodes"]),
                in_sync=frozenset(one["isr_nodes"]),
                leader=None if one["leader_id"] < 0 else one["leader_id"],
                internal=topic["is_internal"],
            )
            for one in sorted(topic["partitions"], key=lambda one: int(one["partition_index"]))
        }
    return dict(sorted(found.items()))


def _check_described(topic: str, error_code: int, before: str = "") -> None:
    if error_code not in {0, _UNKNOWN_TOPIC}:
        raise ClusterError(f"{before}cannot describe topic {topic!r}: {_named(error_code)}")


def _named(error_code: int, more: str = "") -> str:
    error = for_code(error_code)
    return reason(error()) if issubclass(error, AuthorizationError) else error.__name__ + more


def create_topic(
    admin: Admin, topic: str, placement: Placement, configs: Mapping[str, str] | None = None
) -> None:
    """Create a topic with this placement; on return the cluster describes it so."""
    assignments = {partition: list(replicas) for partition, replicas in placement.items()}
    asked = {topic: {"assignments": assignments, "configs": dict(configs or {})}}

    def create(client: KafkaAdminClient) -> Any:
        return client.create_topics(asked, raise_errors=False)["topics"]

    _place(admin, topic, placement, "created", create)


def add_partitions(admin: Admin, topic: str, count: int, more: Placement) -> None:
    """Add partitions to a topic, which has so many then; on return the cluster describes them so."""
    assignments = [list(more[partition]) for partition in sorted(more)]
    asked = {topic: {"count": count, "assignments": assignments}}

    def add(client: KafkaAdminClient) -> Any:
        return client.create_partitions(asked, raise_errors=False).to_dict()["results"]

    _place(admin, topic, more, "expanded", add)


def _place(
    admin: Admin, topic: str, placement: Placement, done: str, request: Callable[[KafkaAdminClient], Any]
) -> None:
    """Send a request, raise what the cluster says against it, and wait until it was done."""
    try:
        (answer,) = admin.once(request)
    except KafkaError as error:
        raise ClusterError(f"topic {topic!r} was not {done}: {reason(error)}") from error
    if answer["error_code"]:
        why = _named(answer["error_code"], f": {answer['error_message']}")
        raise ClusterError(f"topic {topic!r} was not {done}: {why}")
    _wait_placed(admin, topic, placement)


def wait_described(wrong: Callable[[], Sequence[str]]) -> None:
    """Wait until a broker describes what was done: the one that is asked may hear of it later than others."""
    what = "the cluster to describe what was done"
    wait_until(wrong, _VISIBLE_SECONDS, what, error=ClusterError, every=LOOK_SECONDS)


def _wait_placed(admin: Admin, topic: str, placement: Placement) -> None:
    """Wait until each broker that is up describes partitions so: whoever comes next may ask any of them."""
    expected = {partition: list(replicas) for partition, replicas in sorted(placement.items())}
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
    )

    def wrong() -> list[str]:
        faults = []
        for broker in read_brokers(admin).up:
            try:
                answer = admin.ask(partial(send, request=request, node=broker), node=broker)
            except (ClusterError, KafkaError) as error:  # if it went down, it is not up at the next look
                faults.append(f"broker {broker} does not answer: {error}")
                continue
            (described,) = answer.topics
            _check_described(topic, described.error_code, "the cluster accepted the change, but ")
            found = {
                one.partition_index: one.replica_nodes
                for one in described.partitions
                if one.partition_index in expected
            }
            if found != expected:
                faults.append(f"broker {broker} describes {topic!r} as {found}, not as {expected}")
        return faults

    wait_described(wrong)
